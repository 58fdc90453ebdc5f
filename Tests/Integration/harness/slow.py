"""Clients that keep connections busy with next to nothing: `python slow.py KIND PORT COUNT SECONDS [PATH [SOURCE]]`.

Says "ready" on a line of its own once every connection was tried, and at the end (or at SIGTERM) a JSON object: how many connections
were opened, how many the server ended, and how many are open. What the server ends is opened again: an attacker does not
go away. No relative imports: the benchmark runs the file, too.
"""

import errno
import json
import os
import resource
import select
import signal
import socket
import sys
import time

# How often each connection does its little something, in seconds.
BEAT = float(os.environ.get("SLOW_BEAT", "0.5"))
BATCH = 200


class Slow:
    """One connection."""

    first = b""
    beat = b""
    receive_buffer = 0

    def __init__(self, host: str, port: int, path: str, source: str):
        self.sock = socket.socket()
        self.sock.setblocking(False)
        if self.receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        if source:
            self.sock.bind((source, 0))
        error = self.sock.connect_ex((host, port))
        if error not in (0, errno.EINPROGRESS):
            self.sock.close()
            raise OSError(error, "connect")
        self.path = path
        self.is_connected = False

    def begin(self):
        """The connection stands."""
        self.is_connected = True
        if self.first:
            self.sock.send(self.first.replace(b"PATH", self.path.encode()))

    def step(self):
        """Some time has passed."""
        if self.is_connected and self.beat:
            self.sock.send(self.beat)

    def readable(self) -> bool:
        """False when the server ended the connection."""
        return len(self.sock.recv(4096)) > 0


class Silent(Slow):
    """Says nothing at all."""


class Headers(Slow):
    """A head that never ends."""

    first = b"GET PATH HTTP/1.1\r\nHost: slow.test\r\n"
    beat = b"X: 1\r\n"


class Bodies(Slow):
    """A body that comes byte by byte."""

    first = b"POST PATH HTTP/1.1\r\nHost: slow.test\r\nContent-Length: 1000000\r\n\r\n"
    beat = b"b"


class Readers(Slow):
    """An answer that is taken byte by byte."""

    first = b"GET PATH HTTP/1.1\r\nHost: slow.test\r\n\r\n"
    receive_buffer = 4096
    left = 0

    def readable(self) -> bool:
        if self.left <= 0:
            return True
        self.left -= 1
        return len(self.sock.recv(1)) > 0

    def step(self):
        self.left = 1


KINDS = {"silent": Silent, "slow_headers": Headers, "slow_bodies": Bodies, "slow_readers": Readers}


def run(kind, port: int, count: int, seconds: float, path: str, source: str) -> dict:
    poll = select.epoll()
    slow: dict[int, Slow] = {}
    told = {"opened": 0, "ended": 0, "refused": 0, "open": 0}

    def open_one():
        try:
            one = kind("127.0.0.1", port, path, source)
        except OSError:
            told["refused"] += 1
            return
        slow[one.sock.fileno()] = one
        # A reader that waits for its beat must not spin: its bytes are looked for when it is due.
        events = select.EPOLLOUT if kind is Readers else select.EPOLLIN | select.EPOLLOUT
        poll.register(one.sock, events | select.EPOLLET)

    def end(number: int):
        poll.unregister(number)
        slow.pop(number).sock.close()
        told["ended"] += 1

    def look(timeout: float):
        for number, events in poll.poll(timeout, 1000):
            one = slow.get(number)
            if one is None:
                continue
            try:
                if not one.is_connected and events & select.EPOLLOUT and not events & select.EPOLLERR:
                    told["opened"] += 1
                    one.begin()
                if events & (select.EPOLLHUP | select.EPOLLERR):
                    end(number)
                elif events & select.EPOLLIN and not one.readable():
                    end(number)
            except BlockingIOError:
                pass
            except OSError:
                end(number)

    def beat_all():
        for number, one in list(slow.items()):
            try:
                one.step()
                if kind is Readers and one.is_connected and not one.readable():
                    end(number)
            except BlockingIOError:
                pass
            except OSError:
                end(number)

    finish = time.monotonic() + seconds
    is_over = []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(True))
    for _ in range(0, count, BATCH):
        for _ in range(min(BATCH, count - len(slow))):
            open_one()
        look(0.01)
    while any(not one.is_connected for one in slow.values()) and time.monotonic() < finish:
        look(0.05)
    print("ready", flush=True)
    due = time.monotonic()
    while time.monotonic() < finish and not is_over:
        look(0.05)
        if time.monotonic() >= due:
            due = time.monotonic() + BEAT
            beat_all()
            for _ in range(min(BATCH, count - len(slow))):
                open_one()
    told["open"] = len(slow)
    return told


if __name__ == "__main__":
    name, port, count, seconds, *rest = sys.argv[1:]
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    path, source = rest + ["/", ""][len(rest):]
    print(json.dumps(run(KINDS[name], int(port), int(count), float(seconds), path, source)))
