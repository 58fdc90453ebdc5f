"""HTTP/2 by the `h2` package: a client and a scripted origin, both with prior knowledge."""

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from h2.connection import ConnectionInputs, ConnectionState, H2ConnectionStateMachine

from .client import HOST, PATIENCE
from .listening import Server
from .stream import Closed, Message

# After GOAWAY what is under way goes on (RFC 9113, section 6.8), which the library does not know: it is closed for it, and
# a frame that comes in the same piece is an error.
for _state in (ConnectionState.CLIENT_OPEN, ConnectionState.SERVER_OPEN):
    H2ConnectionStateMachine._transitions[(_state, ConnectionInputs.RECV_GOAWAY)] = (None, _state)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """One frame as bytes (RFC 9113, section 4.1), whatever it says."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


@dataclass
class Half(Message):
    """One side of a stream: its fields and what followed, as far as it came."""

    status: int = 0
    stream: int = 0
    interim: list["Half"] = field(default_factory=list)
    has_head: bool = False
    is_over: bool = False
    # The peer's END_STREAM came with the head.
    is_head_only: bool = False
    # The error code of RST_STREAM, if one came.
    reset: int | None = None

    def json(self):
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The stable code of a problem document, or None for any other answer."""
        return self.json().get("code") if self.get("content-type") == "application/problem+json" else None

    def take(self, fields):
        self.fields = [(text(name), text(value)) for name, value in fields]
        self.head = "".join(f"{name}: {value}\n" for name, value in self.fields).encode("latin-1")
        self.has_head = True


def text(value) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


class Peer:
    """One connection, read by a thread of its own. Every wait has an end."""

    def __init__(self, sock: socket.socket, is_client: bool, settings: dict | None = None, *,
                 reads: bool = True):
        self.socket = sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.changed = threading.Condition(threading.RLock())
        self.halves: dict[int, Half] = {}
        # Windows open for what comes; a test that wants a slow reader says no.
        self.opens_windows = True
        self.is_closed = False
        self.goaways: list[h2.events.ConnectionTerminated] = []
        self.pongs = 0
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=is_client, validate_outbound_headers=False, normalize_outbound_headers=False,
            header_encoding="latin-1"))
        if settings:
            self.h2.local_settings = h2.settings.Settings(
                client=is_client, initial_values={**dict(self.h2.local_settings), **settings})
        self.h2.initiate_connection()
        self.flush()
        if reads:
            threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def flush(self):
        with self.changed, contextlib.suppress(OSError):
            self.socket.sendall(self.h2.data_to_send())

    def send_raw(self, data: bytes):
        """Bytes between the library's own."""
        with self.changed:
            self.socket.sendall(data)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def abort(self):
        """Ends the connection with a reset, as a vanished peer's kernel would."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def wait(self, condition: Callable[[], object], what: str, within: float = PATIENCE):
        with self.changed:
            assert self.changed.wait_for(condition, within), f"never happened: {what}"

    def wait_closed(self, within: float = PATIENCE):
        self.wait(lambda: self.is_closed, "the peer closes", within)

    # Sending

    def half(self, stream: int) -> Half:
        with self.changed:
            return self.halves.setdefault(stream, Half(b"", "", [], stream=stream))

    def send_head(self, stream: int, fields, end: bool = False):
        with self.changed:
            self.h2.send_headers(stream, fields, end_stream=end)
            self.flush()

    def send(self, stream: int, data: bytes = b"", end: bool = False):
        """Sends content as the peer's windows allow, then perhaps the end."""
        data = memoryview(data)
        with self.changed:
            while data:
                self.wait(lambda: self.is_closed or self.half(stream).reset is not None
                          or self.h2.local_flow_control_window(stream) > 0, "the window opens")
                if self.is_closed or self.half(stream).reset is not None:
                    raise Closed("the stream was reset")
                count = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size,
                            len(data))
                self.h2.send_data(stream, bytes(data[:count]))
                data = data[count:]
                self.flush()
            if end:
                self.h2.end_stream(stream)
                self.flush()

    def send_trailers(self, stream: int, fields):
        self.send_head(stream, fields, end=True)

    def reset(self, stream: int, code: int = h2.errors.ErrorCodes.CANCEL):
        with self.changed:
            self.h2.reset_stream(stream, code)
            self.flush()

    # Receiving

    def _read(self):
        try:
            while data := self.socket.recv(1 << 16):
                with self.changed:
                    for event in self.h2.receive_data(data):
                        self._take(event)
                    self.flush()
                    self.changed.notify_all()
        except OSError:
            pass
        finally:
            with self.changed:
                self.is_closed = True
                self.changed.notify_all()

    def _take(self, event):
        match event:
            case h2.events.RequestReceived() | h2.events.ResponseReceived():
                half = self.half(event.stream_id)
                half.take(event.headers)
                half.is_head_only = event.stream_ended is not None
                self.head_came(half)
            case h2.events.InformationalResponseReceived():
                interim = Half(b"", "", [])
                interim.take(event.headers)
                interim.status = int(interim.get(":status"))
                self.half(event.stream_id).interim.append(interim)
            case h2.events.DataReceived():
                self.half(event.stream_id).body_read.append(event.data)
                if self.opens_windows and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.TrailersReceived():
                self.half(event.stream_id).body_read.trailers = [
                    (text(name), text(value)) for name, value in event.headers]
            case h2.events.StreamEnded():
                half = self.half(event.stream_id)
                half.is_over = True
                self.message_came(half)
            case h2.events.StreamReset():
                self.half(event.stream_id).reset = int(event.error_code)
            case h2.events.ConnectionTerminated():
                self.goaways.append(event)
            case h2.events.PingAckReceived(): self.pongs += 1

    def head_came(self, half: Half):
        half.status = int(half.get(":status"))

    def message_came(self, half: Half):
        pass


class Client(Peer):
    """One connection of a client."""

    def __init__(self, port: int, settings: dict | None = None, *, receive_buffer: int | None = None,
                 header: bytes = b"", **options):
        """`header` goes before the connection's own first bytes."""
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.connect(("127.0.0.1", port))
        sock.sendall(header)
        super().__init__(sock, True, settings, **options)

    def begin(self, method: str = "GET", path: str = "/", *fields: tuple[str, str], token: str | None = None,
              authority: str | None = HOST, scheme: str = "http", end: bool = False) -> int:
        """Sends a head; the number of its stream."""
        lines = [(":method", method), (":scheme", scheme), (":path", path)]
        if authority is not None:
            lines.append((":authority", authority))
        if token is not None:
            lines.append(("x-firebase-appcheck", token))
        return self.begin_raw(lines + list(fields), end)

    def begin_raw(self, fields, end: bool = True) -> int:
        with self.changed:
            stream = self.h2.get_next_available_stream_id()
            self.send_head(stream, fields, end)
            return stream

    def head(self, stream: int) -> Half:
        """The final head of the answer."""
        half = self.half(stream)
        self.wait(lambda: half.has_head or half.reset is not None or self.is_closed, "the answer's head")
        if not half.has_head:
            raise Closed(f"no head: reset {half.reset}, goaway {self.goaways}")
        return half

    def end(self, stream: int, within: float = PATIENCE) -> Half:
        """The stream once it is over, or reset."""
        half = self.half(stream)
        self.wait(lambda: half.is_over or half.reset is not None or self.is_closed, "the answer's end", within)
        return half

    def answer(self, stream: int, within: float = PATIENCE) -> Half:
        """The whole answer."""
        half = self.end(stream, within)
        if not half.is_over:
            raise Closed(f"cut off: reset {half.reset}, goaway {self.goaways}")
        return half

    def ask(self, method: str = "GET", path: str = "/", *fields: tuple[str, str], body: bytes | None = None,
            trailers=None, **options) -> Half:
        """A request and its whole answer."""
        stream = self.begin(method, path, *fields, end=body is None and trailers is None, **options)
        if body is not None or trailers is not None:
            self.send(stream, body or b"", end=trailers is None)
            if trailers is not None:
                self.send_trailers(stream, trailers)
        return self.answer(stream)

    def ping(self):
        """Everything that was sent before was read by the peer when this returns."""
        with self.changed:
            before = self.pongs
            self.h2.ping(b"12345678")
            self.flush()
            self.wait(lambda: self.pongs > before or self.is_closed, "the pong")


class Exchange:
    """One request and the answer under way, in the hands of a script."""

    def __init__(self, origin: "Origin", peer: "Served", request: Half):
        self.origin, self.peer, self.request, self.stream = origin, peer, request, request.stream

    def head(self, status: int = 200, *fields: tuple[str, str], end: bool = False):
        self.peer.send_head(self.stream, [(":status", str(status)), *fields], end)

    def send(self, data: bytes = b"", end: bool = False):
        self.peer.send(self.stream, data, end)

    def trailers(self, *fields: tuple[str, str]):
        self.peer.send_trailers(self.stream, fields)

    def respond(self, status: int = 200, *fields: tuple[str, str], body: bytes = b"ok"):
        if status in (204, 304) or self.request.method == "HEAD":
            return self.head(status, *fields, end=True)
        self.head(status, ("content-length", str(len(body))), *fields)
        self.send(body, end=True)

    def reset(self, code: int):
        self.peer.reset(self.stream, code)

    def goaway(self, last: int, code: int = 0):
        """The connection takes no streams above `last`."""
        self.peer.send_raw(frame(7, payload=struct.pack(">II", last, code)))

    def wait_for_body(self):
        self.peer.wait(lambda: self.request.is_over or self.request.reset is not None, "the request's end")

    def wait_for_reset(self) -> int | None:
        self.peer.wait(lambda: self.request.reset is not None or self.peer.is_closed, "the stream is reset")
        return self.request.reset


class Served(Peer):
    """A connection that the origin accepted."""

    def __init__(self, origin: "Origin", sock: socket.socket, number: int, settings):
        self.origin, self.number = origin, number
        super().__init__(sock, False, settings)

    def head_came(self, half: Half):
        half.method, half.target, half.connection = half.get(":method"), half.get(":path"), self.number
        self.origin.take(self, half)

    def message_came(self, half: Half):
        self.origin.take_end(self, half)


class Origin(Server):
    """Listens on loopback with prior knowledge, or with TLS. Scripts are chosen by path; others get `200 ok`."""

    def __init__(self, settings: dict | None = None, port: int = 0, *, tls: ssl.SSLContext | None = None):
        self.settings, self.tls = settings, tls
        self.changed = threading.Condition()
        self.scripts: dict[str, tuple[Callable[[Exchange], None], bool]] = {}
        self.requests: list[Half] = []
        self.errors: list[str] = []
        self.peers: list[Served] = []
        super().__init__(port)

    def on(self, path: str, script: Callable[[Exchange], None], *, early: bool = False):
        """Runs `script` for requests of `path`, when they are complete or, with `early`, at their head."""
        self.scripts[path] = (script, early)

    def forget(self):
        with self.changed:
            self.scripts.clear()
            self.requests.clear()
            self.errors.clear()

    @property
    def connections(self) -> int:
        return len(self.peers)

    def last(self) -> Half:
        with self.changed:
            assert self.requests, "the origin saw no request"
            return self.requests[-1]

    def targets(self) -> list[str]:
        with self.changed:
            return [request.target for request in self.requests]

    def wait(self, condition: Callable[[], object], what: str, within: float = 10):
        with self.changed:
            assert self.changed.wait_for(condition, within), f"never happened: {what}"

    def take(self, peer: Served, half: Half):
        with self.changed:
            self.requests.append(half)
            self.changed.notify_all()
        if self._script(half)[1]:
            self._run(peer, half)

    def take_end(self, peer: Served, half: Half):
        if not self._script(half)[1]:
            self._run(peer, half)

    def _script(self, half: Half):
        return self.scripts.get(half.target.split("?")[0], (Exchange.respond, False))

    def _run(self, peer: Served, half: Half):
        script = self._script(half)[0]

        def run():
            try:
                script(Exchange(self, peer, half))
            except (Closed, OSError, h2.exceptions.StreamClosedError, h2.exceptions.StreamIDTooLowError):
                pass  # The stream ended meanwhile, and the library has forgotten it.
            except Exception as error:
                with self.changed:
                    self.errors.append(repr(error))

        threading.Thread(target=run, daemon=True).start()

    def _take(self, sock: socket.socket):
        if self.tls is not None:
            try:
                sock = self.tls.wrap_socket(sock, server_side=True)
            except OSError:
                return
        with self.changed:
            self.peers.append(Served(self, sock, len(self.peers) + 1, self.settings))
            self.changed.notify_all()

    def close_connections(self):
        for peer in list(self.peers):
            peer.close()

    def stop(self):
        super().stop()
        self.close_connections()
