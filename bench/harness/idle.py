"""Memory that idle keep-alive connections hold."""

import resource
import socket
import ssl
from contextlib import contextmanager

from .probes import any_certificate
from .processes import Broken

_REQUEST = b"GET /small HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
# Descriptors that the proxies and this process need besides the connections.
_SPARE = 500


def possible(wanted: int) -> int:
    """How many of `wanted` connections the descriptor limit allows; raises the soft limit to the hard."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, hard - _SPARE)


@contextmanager
def connections(port: int, count: int, *, tls: bool = False):
    """`count` open connections, each of which has had one request answered and then kept silent."""
    context = any_certificate()
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), 10)
            if tls:
                connection = context.wrap_socket(connection)
            sockets.append(connection)
            connection.sendall(_REQUEST)
            _read_answer(connection)
        yield sockets
    finally:
        for connection in sockets:
            connection.close()


def still_open(sockets: list[socket.socket]) -> int:
    """How many of them the proxy has not closed in the meantime."""
    count = 0
    for connection in sockets:
        connection.setblocking(False)
        try:
            if connection.recv(1):
                raise Broken("an idle connection received an answer that nobody asked for")
        except (BlockingIOError, ssl.SSLWantReadError):
            count += 1
        except OSError:
            pass
    return count


def _read_answer(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise Broken(f"an idle connection's request was answered with {head[:60]!r}")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += _some(connection)


def _some(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise Broken("closed a connection before answering on it")
    return data
