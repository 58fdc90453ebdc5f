"""A client that behaves: one request after the other, and how long each takes."""

import socket
import time
from dataclasses import dataclass

from .contestants import PORT

# From one request to the next.
_PAUSE = 0.002
# Far from the attackers, who come from 127.0.0.1: limits count by network.
_SOURCE = ("127.9.0.1", 0)


@dataclass(frozen=True)
class Latencies:
    """Of one client's requests, milliseconds."""

    p50: float
    p99: float
    requests: int
    failed: int


def behave(seconds: float, token: str = "", between=lambda: None) -> Latencies:
    """Asks for so long, and calls `between` once a second, off the clock of any request."""
    clients = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client = _Client(token)
        client.run(min(1, seconds))
        clients.append(client)
        between()
    times = sorted(time for client in clients for time in client.times)
    return Latencies(
        times[len(times) // 2],
        times[len(times) * 99 // 100],
        len(times),
        sum(client.failed for client in clients),
    )


class _Client:
    """Sends one request after the other, every second one on a new connection."""

    def __init__(self, token: str):
        self.fields = f"X-Firebase-AppCheck: {token}\r\n".encode() if token else b""
        self.kept: socket.socket | None = None
        self.times: list[float] = []
        self.failed = 0

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            begun = time.perf_counter()
            try:
                self._ask(is_new=number % 2 == 0)
            except OSError:
                self.failed += 1
                self._drop()
            self.times.append((time.perf_counter() - begun) * 1000)
            time.sleep(_PAUSE)
        self._drop()

    def _drop(self) -> None:
        if self.kept:
            self.kept.close()
        self.kept = None

    def _ask(self, is_new: bool) -> None:
        if is_new:
            with socket.create_connection(("127.0.0.1", PORT), 10, _SOURCE) as connection:
                _exchange(connection, self.fields + b"Connection: close\r\n")
            return
        if self.kept is None:
            self.kept = socket.create_connection(("127.0.0.1", PORT), 10, _SOURCE)
            self.kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _exchange(self.kept, self.fields)


def _exchange(connection: socket.socket, fields: bytes) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + fields + b"\r\n")
    answer = b""
    # 200 bytes of x behind the head.
    while not answer.endswith(b"x" * 200):
        data = connection.recv(65536)
        if not data:
            raise ConnectionError("no answer")
        answer += data
    if not answer.startswith(b"HTTP/1.1 200"):
        raise ConnectionError("refused")
