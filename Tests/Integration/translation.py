"""The four ways through the proxy: a client of either version before an origin of either version."""

import contextlib
from dataclasses import dataclass, field

from harness import http2, origin
from harness.client import Connection, request
from harness.proxy import route
from harness.stream import chunked

LISTENER = 'protocols = ["h2", "http/1.1"]'
ROUTES = "".join((
    route("to-1", path="/1/*", app_check="off"),
    route("to-2", path="/2/*", upstream="second", app_check="off"),
    route("enforced", projects=["production"], app_check="enforce"),
    route("enforced-2", upstream="second", projects=["production"], app_check="enforce"),
    route("monitored", projects=["production"], app_check="monitor"),
    route("ios-only", path="/ios/*", projects=["production"], apps=["ios"], app_check="enforce"),
    route("browser", projects=["production"], app_check="enforce",
          cors={"allow_origins": ["https://app.example.com"], "answer_preflights": True}),
    route("once", upstream="second", projects=["production"], app_check="enforce", replay="enforce")))


def second(port: int, more: str = "") -> str:
    """The upstream that speaks HTTP/2."""
    return f'''
[replay]
store = "memory"

[upstream.second]
servers = ["127.0.0.1:{port}"]
protocol = "h2c"
{more}
'''


@dataclass
class Answer:
    """What a client of either version got."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    sha256: str
    length: int
    trailers: list[tuple[str, str]]
    interim: list[int] = field(default_factory=list)

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key.lower() == name), None)


@dataclass
class Way:
    """One of the four."""

    proxy: object
    origins: dict[int, object]
    client: int
    server: int

    def path(self, rest: str = "x") -> str:
        return f"/{self.server}/{rest}"

    @property
    def origin(self):
        return self.origins[self.server]

    def ask(self, method: str = "GET", rest: str = "x", *fields: tuple[str, str], body: bytes | None = None,
            has_length: bool = True, trailers=None) -> Answer:
        """A request and its whole answer."""
        if self.client == 1:
            return self._ask_1(method, rest, fields, body, has_length, trailers)
        with http2.Client(self.proxy.port) as client:
            lines = [(name.lower(), value) for name, value in fields]
            if body is not None and has_length:
                lines.append(("content-length", str(len(body))))
            half = client.ask(method, self.path(rest), *lines, body=body, trailers=trailers)
        return Answer(half.status, half.fields[1:], half.body, half.body_read.sha256, half.body_read.length,
                      half.trailers, [interim.status for interim in half.interim])

    def _ask_1(self, method, rest, fields, body, has_length, trailers) -> Answer:
        lines = [f"{name}: {value}" for name, value in fields]
        with Connection(self.proxy.port) as connection:
            if body is not None and not has_length:
                lines.append("Transfer-Encoding: chunked")
                pieces = [body[at:at + 50_000] for at in range(0, len(body), 50_000)]
                tail = "".join(f"{name}: {value}\r\n" for name, value in trailers or [])
                connection.send(request(method, self.path(rest), *lines) + chunked(*pieces, trailers=tail))
            else:
                connection.send(request(method, self.path(rest), *lines, body=body))
            response = connection.read_response(method)
        return Answer(response.status, response.fields, response.body, response.body_read.sha256,
                      response.body_read.length, response.trailers,
                      [int(interim.start_line.split(" ")[1]) for interim in response.interim])

    # The origin's side, in one vocabulary

    def on(self, rest: str, script, early: bool = False):
        """`script` gets an `Answering`, whatever version the origin speaks."""
        self.origin.on(self.path(rest), lambda exchange: script(Answering(exchange)), early=early)

    def request(self) -> "Seen":
        return Seen(self.origin.last())


class Seen:
    """The newest request as the origin got it, without what only one version has."""

    def __init__(self, message):
        self.message = message
        self.method, self.target = message.method, message.target
        self.body, self.trailers = message.body, message.trailers
        self.sha256, self.length = message.body_read.sha256, message.body_read.length

    @property
    def host(self) -> str:
        return self.message.get("host") or self.message.get(":authority")

    def get(self, name: str) -> str | None:
        return self.message.get(name)


class Answering:
    """An exchange of either origin."""

    def __init__(self, exchange):
        self.exchange = exchange
        self.is_1 = isinstance(exchange, origin.Exchange)

    def interim(self, status: int, *fields):
        if self.is_1:
            self.exchange.send(head(status, fields))
        else:
            self.exchange.head(status, *fields)

    def respond(self, status: int, *fields, body: bytes | None = b"ok", has_length: bool = True, trailers=None):
        """A whole answer; a `body` of None stands for no content at all, as for 204."""
        if body is not None and has_length:
            fields = (*fields, ("content-length", str(len(body))))
        has_body = body is not None and self.exchange.request.method != "HEAD"
        if self.is_1:
            if body is not None and not has_length:
                fields = (*fields, ("transfer-encoding", "chunked"))
            self.exchange.send(head(status, fields))
            if has_body and has_length:
                self.exchange.send(body)
            elif has_body:
                pieces = [body[at:at + 50_000] for at in range(0, len(body), 50_000)]
                self.exchange.send(chunked(*pieces, trailers="".join(f"{a}: {b}\r\n" for a, b in trailers or [])))
            return
        self.exchange.head(status, *fields, end=not has_body)
        if has_body:
            self.exchange.send(body, end=trailers is None)
            if trailers is not None:
                self.exchange.trailers(*trailers)

    def break_off(self):
        if self.is_1:
            self.exchange.reset()
        else:
            self.exchange.reset(2)


def head(status: int, fields) -> bytes:
    return (f"HTTP/1.1 {status} Scripted\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields)
            + "\r\n").encode("latin-1")


@contextlib.contextmanager
def origins():
    """One origin of each version."""
    both = {1: origin.Origin(), 2: http2.Origin()}
    try:
        yield both
    finally:
        for one in both.values():
            one.stop()
