"""A socket with a buffer, and HTTP/1.1 messages read from it byte for byte."""

import hashlib
import socket
from dataclasses import dataclass, field

# Bodies up to this size are kept; of larger ones only length and digest.
KEPT_BODY_BYTES = 1 << 20


class Closed(Exception):
    """The peer closed, or reset, the connection in mid-message."""


class Stream:
    """Reads from a socket exactly what is asked for and keeps the rest. Counts what it took from the peer."""

    def __init__(self, sock: socket.socket):
        self.socket = sock
        self.buffer = b""
        self.received = 0

    def fill(self) -> bool:
        """Waits for more bytes; false at the end of the stream."""
        try:
            piece = self.socket.recv(1 << 16)
        except ConnectionError:
            return False
        self.received += len(piece)
        self.buffer += piece
        return bool(piece)

    def take(self, count: int) -> bytes:
        """Exactly `count` bytes."""
        while len(self.buffer) < count:
            if not self.fill():
                raise Closed(f"ended {count - len(self.buffer)} bytes early, after {self.buffer!r}")
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def take_through(self, marker: bytes) -> bytes:
        """Everything up to and including `marker`."""
        while (at := self.buffer.find(marker)) < 0:
            if not self.fill():
                raise Closed(f"ended before {marker!r}, after {self.buffer!r}")
        return self.take(at + len(marker))

    def take_some(self, most: int = 1 << 16) -> bytes:
        """At least one byte, at most `most`; nothing at the end of the stream."""
        if not self.buffer and not self.fill():
            return b""
        return self.take(min(most, len(self.buffer)))

    def take_rest(self) -> bytes:
        """Everything until the peer closes."""
        while self.fill():
            pass
        return self.take(len(self.buffer))


@dataclass
class Body:
    """A body as it arrived: small ones whole, large ones by length and digest."""

    kept: bytes = b""
    length: int = 0
    chunks: list[int] = field(default_factory=list)
    trailers: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self):
        self._digest = hashlib.sha256()

    def append(self, piece: bytes):
        self.length += len(piece)
        self._digest.update(piece)
        if len(self.kept) < KEPT_BODY_BYTES:
            self.kept += piece

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


@dataclass
class Message:
    """A request or a response: its head as bytes and as fields, and its body once that was read."""

    head: bytes
    start_line: str
    fields: list[tuple[str, str]]
    body_read: Body = field(default_factory=Body)

    @property
    def body(self) -> bytes:
        return self.body_read.kept

    @property
    def trailers(self) -> list[tuple[str, str]]:
        return self.body_read.trailers

    def all(self, name: str) -> list[str]:
        """Every value of a field, in order."""
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        """The value of a field that occurs at most once, or None."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} occurs {len(values)} times: {values}"
        return values[0] if values else None

    def names(self) -> list[str]:
        """The field names, lower case, in order."""
        return [name.lower() for name, _ in self.fields]


def parse_fields(lines: list[bytes]) -> list[tuple[str, str]]:
    """Field lines as the peer wrote them; a line without a colon fails the test that sees it."""
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        assert colon, f"not a field line: {line!r}"
        fields.append((name.decode("latin-1"), value.strip(b" \t").decode("latin-1")))
    return fields


def read_head(stream: Stream) -> Message:
    """Reads a start line and fields; every line must end in CRLF."""
    head = stream.take_through(b"\r\n\r\n")
    lines = head[:-4].split(b"\r\n")
    assert not any(b"\n" in line or b"\r" in line for line in lines), f"bare CR or LF in {head!r}"
    return Message(head, lines[0].decode("latin-1"), parse_fields(lines[1:]))


def read_chunked(stream: Stream, body: Body):
    """Reads a chunked body with its trailers (RFC 9112, section 7.1)."""
    while True:
        size = int(stream.take_through(b"\r\n")[:-2].split(b";")[0], 16)
        if size == 0:
            break
        body.chunks.append(size)
        while size:
            piece = stream.take_some(size)
            if not piece:
                raise Closed("ended in a chunk")
            body.append(piece)
            size -= len(piece)
        assert stream.take(2) == b"\r\n", "a chunk does not end in CRLF"
    lines = []
    while line := stream.take_through(b"\r\n")[:-2]:
        lines.append(line)
    body.trailers = parse_fields(lines)


def read_length(stream: Stream, body: Body, length: int):
    """Reads a body of known length."""
    while body.length < length:
        piece = stream.take_some(length - body.length)
        if not piece:
            raise Closed(f"ended after {body.length} of {length} bytes of body")
        body.append(piece)


def chunked(*pieces: bytes, trailers: str = "") -> bytes:
    """A chunked body: one chunk a piece."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + (
        b"0\r\n" + trailers.encode("latin-1") + b"\r\n")
