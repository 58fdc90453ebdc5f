"""An OTLP collector that reads what it gets with OpenTelemetry's own message types."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SERVER, CLIENT = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT
IDS = ("traceId", "spanId", "parentSpanId")


def parse(body: bytes) -> ExportTraceServiceRequest:
    """A request in OTLP's JSON. Its one difference to protobuf's own mapping is that names are hexadecimal."""

    def fix(pairs):
        return {key: base64.b64encode(bytes.fromhex(value)).decode() if key in IDS else value for key, value in pairs}

    return json_format.ParseDict(json.loads(body, object_pairs_hook=fix), ExportTraceServiceRequest())


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


class Collected:
    """One span with its attributes as a mapping."""

    def __init__(self, span: Span, resource: dict):
        self.span, self.resource = span, resource
        self.attributes = {item.key: value_of(item.value) for item in span.attributes}
        assert len(self.attributes) == len(span.attributes), "an attribute is there twice"
        self.trace, self.id, self.parent = (
            name.hex() for name in (span.trace_id, span.span_id, span.parent_span_id))

    def __getitem__(self, name: str):
        return self.attributes.get(name)


class Collector:
    """Listens on loopback, with `tls` over TLS. `answer` makes the answer of each export: status, fields, body."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None):
        self.changed = threading.Condition()
        self.bodies: list[bytes] = []
        self.fields: list[dict[str, str]] = []
        self.spans: list[Collected] = []
        self.errors: list[Exception] = []
        self.answer = lambda: (200, {}, b"{}")
        # Cleared, the collector takes requests and does not answer.
        self.may_answer = threading.Event()
        self.may_answer.set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.may_answer.wait(30)
                status, fields, answer = collector.answer()
                collector.take(self.path, dict(self.headers.items()), body, taken=status == 200)
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if tls else "http"
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path: str, fields: dict[str, str], body: bytes, taken: bool):
        with self.changed:
            try:
                assert path == "/v1/traces", path
                request = parse(body)
                for resource in request.resource_spans if taken else ():
                    about = {item.key: value_of(item.value) for item in resource.resource.attributes}
                    for scope in resource.scope_spans:
                        assert scope.scope.name == "portcullis"
                        self.spans += [Collected(span, about) for span in scope.spans]
            except Exception as error:  # noqa: BLE001
                self.errors.append(error)
            self.bodies.append(body)
            self.fields.append(fields)
            self.changed.notify_all()

    @property
    def settings(self) -> str:
        return f'\n[tracing]\notlp = "{self.scheme}://127.0.0.1:{self.port}/v1/traces"\n'

    def wait(self, count: int, kind=SERVER, within: float = 15) -> list[Collected]:
        """The spans of one kind once there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.of(kind)) >= count, within), (
                f"{len(self.of(kind))} of {count} spans came")
            return self.of(kind)

    def wait_exports(self, count: int, within: float = 20):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.bodies) >= count, within), len(self.bodies)

    def of(self, kind) -> list[Collected]:
        return [span for span in self.spans if span.span.kind == kind]

    def stop(self):
        self.may_answer.set()
        self.server.shutdown()
        self.server.server_close()
        assert self.errors == []
