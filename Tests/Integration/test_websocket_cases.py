"""Frames as raw bytes, right and wrong, to an echo server: through the proxy every case ends byte for byte as without it.

The kinds of cases are those of the Autobahn suite, which `test_autobahn.py` runs itself; here every byte is compared:
framing, pings and pongs, reserved bits, opcodes, fragmentation, UTF-8, closing, size, compression.
"""

import os
import socket
import struct
import zlib

import pytest

from conftest import running_proxy
from harness.http2websocket import Client
from harness.proxy import ROUTES
from harness.stream import Stream, read_head
from harness.websocket import Echo, handshake
from translation import LISTENER

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
MASK = b"\x37\xfa\x21\x3d"
DEFLATE = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover"


def masked(payload: bytes) -> bytes:
    key = int.from_bytes(MASK * (len(payload) // 4 + 1))
    whole = payload.ljust(4 * (len(payload) // 4 + 1), b"\0")
    return (int.from_bytes(whole) ^ key).to_bytes(len(whole))[:len(payload)]


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, length: int | None = None,
          is_masked: bool = True) -> bytes:
    """One frame of a client (RFC 6455, section 5.2). `length` says how the length is written: 7, 16 or 64 bits."""
    size, flag = len(payload), 0x80 if is_masked else 0
    length = length or (7 if size < 126 else 16 if size < 65_536 else 64)
    head = bytes([fin << 7 | rsv << 4 | opcode])
    head += {7: lambda: bytes([flag | size]), 16: lambda: bytes([flag | 126]) + struct.pack(">H", size),
             64: lambda: bytes([flag | 127]) + struct.pack(">Q", size)}[length]()
    return head + (MASK + masked(payload) if is_masked else payload)


def close(code: int | None = 1000, reason: bytes = b"") -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack(">H", code) + reason)


def fragments(opcode: int, payload: bytes, size: int) -> list[bytes]:
    pieces = [payload[at:at + size] for at in range(0, len(payload), size)] or [b""]
    return [frame(opcode if not at else CONTINUATION, piece, fin=at == len(pieces) - 1)
            for at, piece in enumerate(pieces)]


def deflated(payload: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return (compressor.compress(payload) + compressor.flush(zlib.Z_SYNC_FLUSH))[:-4]


BYE = [close()]
GREEK = "κόσμε ∮ 𝔘 Hello-µ@ßöäüàá-UTF-8!!".encode()
CASES: dict[str, list[bytes]] = {}

# Framing, whole and in small pieces of TCP.
for kind, name in ((TEXT, "text"), (BINARY, "binary")):
    for size in (0, 1, 125, 126, 127, 128, 65_535, 65_536):
        payload = b"*" * size if kind == TEXT else bytes(index * 31 % 251 for index in range(size))
        CASES[f"1-{name}-{size}"] = [frame(kind, payload), *BYE]
        if size <= 126:
            data = frame(kind, payload)
            CASES[f"1-{name}-{size}-by-byte"] = [data[at:at + 1] for at in range(len(data))] + BYE
data = frame(TEXT, b"*" * 65_536)
CASES["1-text-997-chops"] = [data[at:at + 997] for at in range(0, len(data), 997)] + BYE
CASES["1-length-not-shortest-16"] = [frame(TEXT, b"hi", length=16), *BYE]
CASES["1-length-not-shortest-64"] = [frame(TEXT, b"hi", length=64), *BYE]
CASES["1-not-masked"] = [frame(TEXT, b"hi", is_masked=False), *BYE]

# Pings and pongs.
for size in (0, 1, 125):
    CASES[f"2-ping-{size}"] = [frame(PING, os.urandom(size)), *BYE]
    CASES[f"2-pong-{size}"] = [frame(PONG, os.urandom(size)), frame(TEXT, b"hi"), *BYE]
CASES["2-ping-126"] = [frame(PING, b"*" * 126)]
CASES["2-ping-fragmented"] = [frame(PING, b"*", fin=False), *BYE]
CASES["2-ten-pings"] = [frame(PING, b"%d" % number) for number in range(10)] + BYE
CASES["2-ping-chopped"] = [bytes([byte]) for byte in frame(PING, b"chopped")] + BYE

# Reserved bits and opcodes.
for rsv in range(1, 8):
    CASES[f"3-rsv-{rsv}"] = [frame(TEXT, b"fine"), frame(TEXT, b"not fine", rsv=rsv), frame(PING, b"p")]
for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
    CASES[f"4-opcode-{opcode}"] = [frame(TEXT, b"fine"), frame(opcode, b"what"), frame(PING, b"p")]

# Fragmentation.
CASES["5-two-fragments"] = [*fragments(TEXT, b"fragment1fragment2", 9), *BYE]
CASES["5-ping-between"] = [frame(TEXT, b"one", fin=False), frame(PING, b"ping"), frame(CONTINUATION, b"two"), *BYE]
CASES["5-pong-between"] = [frame(TEXT, b"one", fin=False), frame(PONG, b"pong"), frame(CONTINUATION, b"two"), *BYE]
CASES["5-many-pings-between"] = [
    piece for part in fragments(TEXT, b"0123456789" * 5, 10) for piece in (part, frame(PING, b"p"))] + BYE
CASES["5-empty-fragments"] = [
    frame(TEXT, fin=False), frame(CONTINUATION, b"middle", fin=False), frame(CONTINUATION), *BYE]
CASES["5-only-empty-fragments"] = [frame(TEXT, fin=False), frame(CONTINUATION, fin=False), frame(CONTINUATION), *BYE]
CASES["5-text-inside-text"] = [frame(TEXT, b"one", fin=False), frame(TEXT, b"two"), *BYE]
for fin in (False, True):
    CASES[f"5-nothing-to-continue-{fin}"] = [frame(CONTINUATION, b"lost", fin=fin), frame(TEXT, b"hi"), *BYE]
    CASES[f"5-continued-twice-{fin}"] = [*fragments(TEXT, b"abcdef", 3), frame(CONTINUATION, b"lost", fin=fin), *BYE]
CASES["5-close-inside"] = [frame(TEXT, b"one", fin=False), *BYE]

# UTF-8.
VALID = {"greek": GREEK, "boundaries": "\u0000\u007f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff".encode(),
         "no-characters": "\ufffe\uffff\U0001fffe".encode()}
WRONG = {"surrogate": b"\xed\xa0\x80", "overlong-slash": b"\xc0\xaf", "overlong-3": b"\xe0\x80\xaf",
         "too-high": b"\xf4\x90\x80\x80", "lonely-tail": b"\x80", "lonely-head": b"\xce", "cut-off": b"\xf0\x9f\x98",
         "five-bytes": b"\xf8\x88\x80\x80\x80", "ff": b"\xff", "fe": b"\xfe\xfe\xff\xff"}
for name, payload in VALID.items():
    CASES[f"6-{name}"] = [frame(TEXT, payload), *BYE]
    for size in (1, 2, 3):
        CASES[f"6-{name}-fragments-of-{size}"] = [*fragments(TEXT, payload, size), *BYE]
for name, payload in WRONG.items():
    CASES[f"6-{name}"] = [frame(TEXT, b"before " + payload + b" behind"), *BYE]
    CASES[f"6-{name}-at-the-end"] = [frame(TEXT, b"before " + payload), *BYE]
    CASES[f"6-{name}-in-fragments"] = [*fragments(TEXT, GREEK + payload + GREEK, 4), *BYE]
    CASES[f"6-{name}-is-fine-in-binary"] = [frame(BINARY, payload), *BYE]

# Closing.
for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1014, 3000, 3999, 4000, 4999,
             0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535):
    CASES[f"7-code-{code}"] = [frame(TEXT, b"hi"), close(code)]
CASES |= {
    "7-no-code": [close(None)], "7-one-byte": [frame(CLOSE, b"\x03")], "7-reason": [close(1000, b"Hello World!")],
    "7-reason-123": [close(1000, b"*" * 123)], "7-reason-124": [frame(CLOSE, b"\x03\xe8" + b"*" * 124, length=16)],
    "7-reason-not-utf-8": [close(1000, b"\xce\xba\xff")], "7-twice": [close(), close()],
    "7-text-behind": [close(), frame(TEXT, b"late")], "7-ping-behind": [close(), frame(PING, b"late")],
    "7-fragment-behind": [frame(TEXT, b"one", fin=False), close(), frame(CONTINUATION, b"two")],
    "7-large-before": [frame(TEXT, b"*" * 262_144), close()], "7-fragmented": [frame(CLOSE, b"\x03\xe8", fin=False)]}

# Size.
for size in (1 << 18, 1 << 20, 1 << 22):
    CASES[f"9-binary-{size}"] = [frame(BINARY, os.urandom(size)), *BYE]
    CASES[f"9-fragments-{size}"] = [*fragments(BINARY, os.urandom(size), 4096), *BYE]
CASES["9-1000-messages"] = [frame(TEXT, b"%d" % number * 16) for number in range(1000)] + BYE

# Compression; the deflate stream is the ends' own.
COMPRESSED: dict[str, list[bytes]] = {
    "12-small": [frame(TEXT, deflated(GREEK), rsv=4), *BYE],
    "12-large": [frame(TEXT, deflated(b"abc" * 100_000), rsv=4), *BYE],
    "12-not-compressible": [frame(BINARY, deflated(os.urandom(100_000)), rsv=4), *BYE],
    "12-mixed": [frame(TEXT, deflated(b"one"), rsv=4), frame(TEXT, b"two"), frame(TEXT, deflated(b"three"), rsv=4), *BYE],
    "12-fragments": [frame(TEXT, (data := deflated(b"fragments " * 100))[:5], rsv=4, fin=False),
                     frame(CONTINUATION, data[5:]), *BYE],
    "12-garbage": [frame(TEXT, b"\xff" * 20, rsv=4), *BYE], "12-rsv-in-continuation": [
        frame(TEXT, deflated(b"one"), rsv=4, fin=False), frame(CONTINUATION, b"", rsv=4), *BYE]}


@pytest.fixture(scope="module")
def backend():
    backend = Echo()
    yield backend
    backend.stop()


@pytest.fixture(scope="module")
def proxy(backend, key_file):
    with running_proxy([backend], key_file, routes=ROUTES, listener=LISTENER) as proxy:
        yield proxy


def transcript(port: int, pieces: list[bytes], *fields: str) -> bytes:
    """Everything that the other end sends until it closes."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.settimeout(15)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = Stream(sock)
        sock.sendall(handshake("/monitored/case", *fields))
        assert read_head(stream).start_line.startswith("HTTP/1.1 101 ")
        send_all(sock.sendall, pieces)
        return stream.take_rest()


def send_all(send, pieces: list[bytes]):
    try:
        for piece in pieces:
            send(piece)
    except (ConnectionError, BrokenPipeError):
        pass  # It has closed already; what it said is still to be read.


def transcript_over_http2(port: int, pieces: list[bytes], *fields: str) -> bytes:
    names = [tuple(part.strip() for part in field.lower().split(":", 1)) for field in fields]
    with Client(port) as client:
        stream = client.open("/monitored/case", *names)
        assert stream.status == 200
        # Bytes alone: no library looks at the frames.
        stream.websocket.receive_data = lambda _: None
        for piece in pieces:
            if stream.is_over or stream.reset is not None:
                break
            stream.send(piece)
        while not stream.is_over and stream.reset is None:
            client.pump()
        return stream.data


def ends_with_a_close_frame(data: bytes) -> bool:
    return any(data[-2 - size:-1 - size] == b"\x88" and data[-1 - size:][:1] == bytes([size]) for size in range(126))


@pytest.mark.parametrize("name", [*CASES, *COMPRESSED])
def test_every_case_ends_as_without_the_proxy(backend, proxy, name):
    fields = [DEFLATE] if name in COMPRESSED else []
    pieces = (CASES | COMPRESSED)[name]
    expected = transcript(backend.port, pieces, *fields)
    assert ends_with_a_close_frame(expected), "the case itself is not what it should be"
    assert transcript(proxy.port, pieces, *fields) == expected
    assert transcript_over_http2(proxy.port, pieces, *fields) == expected
