"""A client that sends exactly the bytes that it is told to, and reads answers strictly."""

import socket
import ssl
import struct
from dataclasses import dataclass, field

from .stream import Closed, Message, Stream, read_chunked, read_head, read_length

HOST = "api.example.test"
# Longer than anything takes that goes right; a test that runs into it has failed.
PATIENCE = 15.0


@dataclass
class Response(Message):
    """A final answer with the interim ones (1xx) that came before it."""

    status: int = 0
    interim: list[Message] = field(default_factory=list)
    # How the body was delimited: "length", "chunked", "close" or "none".
    framing: str = "none"

    def json(self):
        import json

        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The stable code of a problem document, or None for any other answer."""
        if self.get("content-type") != "application/problem+json":
            return None
        return self.json().get("code")


def request(method: str = "GET", target: str = "/", *fields: str, host: str | None = HOST,
            token: str | None = None, body: bytes | None = None) -> bytes:
    """A request as bytes. `fields` are whole lines without CRLF; a body brings its Content-Length."""
    lines = [f"{method} {target} HTTP/1.1"]
    if host is not None:
        lines.append(f"Host: {host}")
    if token is not None:
        lines.append(f"X-Firebase-AppCheck: {token}")
    lines += fields
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


class Connection:
    """One connection to a port on loopback, or to a socket in the file system."""

    def __init__(self, address: int | str, *, patience: float = PATIENCE,
                 receive_buffer: int | None = None, tls: ssl.SSLContext | None = None,
                 name: str | None = None, session: ssl.SSLSession | None = None, source: str | None = None):
        """`source` is the address on loopback that the connection comes from."""
        family = socket.AF_INET if isinstance(address, int) else socket.AF_UNIX
        sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(patience)
        if source is not None:
            sock.bind((source, 0))
        sock.connect(("127.0.0.1", address) if isinstance(address, int) else address)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                sock = tls.wrap_socket(sock, server_hostname=name, session=session)
            except BaseException:
                sock.close()
                raise
        self.socket = sock
        self.stream = Stream(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data: bytes):
        self.socket.sendall(data)

    def half_close(self):
        """Says that nothing more will be sent; answers can still come."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self):
        self.socket.close()

    def reset(self):
        """Closes with a reset, as a vanished client's kernel would."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def read_head(self) -> Response:
        """The next final head; its body is left for the caller."""
        interim = []
        while True:
            message = read_head(self.stream)
            version, status, *_ = message.start_line.split(" ", 2)
            assert version == "HTTP/1.1", message.start_line
            if int(status) >= 200 or status == "101":
                return Response(message.head, message.start_line, message.fields,
                                status=int(status), interim=interim)
            interim.append(message)

    def read_interim(self) -> Message:
        """The next head, which must be an interim one."""
        message = read_head(self.stream)
        assert message.start_line.split(" ")[1].startswith("1"), message.start_line
        return message

    def read_body(self, response: Response, method: str = "GET"):
        """Reads the body of `response` as its head frames it (RFC 9112, section 6.3)."""
        encodings, lengths = response.all("transfer-encoding"), response.all("content-length")
        assert not (encodings and lengths), f"both framings at once: {response.head!r}"
        if method == "HEAD" or response.status in (204, 304):
            return
        if encodings:
            assert encodings == ["chunked"], encodings
            response.framing = "chunked"
            read_chunked(self.stream, response.body_read)
        elif lengths:
            assert len(lengths) == 1, lengths
            response.framing = "length"
            read_length(self.stream, response.body_read, int(lengths[0]))
        else:
            response.framing = "close"
            while piece := self.stream.take_some():
                response.body_read.append(piece)

    def read_response(self, method: str = "GET") -> Response:
        """The next answer with its body."""
        response = self.read_head()
        self.read_body(response, method)
        return response

    def ask(self, data: bytes) -> Response:
        """Sends one request and reads its answer."""
        self.send(data)
        return self.read_response(data.split(b" ", 1)[0].decode("latin-1"))

    def is_closed(self) -> bool:
        """Whether the peer closes, or has closed, without sending one byte more."""
        return self.stream.take_some() == b""

    def read_until_closed(self) -> list[Response]:
        """Every answer until the peer closes."""
        responses = []
        while self.stream.buffer or self.stream.fill():
            responses.append(self.read_response())
        return responses


def ask(address: int | str, method: str = "GET", target: str = "/", *fields: str,
        tls: ssl.SSLContext | None = None, name: str | None = None, source: str | None = None,
        **options) -> Response:
    """One request on a connection of its own, and its answer. With `tls` the connection is made to `name`."""
    with Connection(address, tls=tls, name=name, source=source) as connection:
        return connection.ask(request(method, target, *fields, **options))


__all__ = ["Closed", "Connection", "HOST", "PATIENCE", "Response", "ask", "request"]
