"""The clients of the nights: checkers that verify each answer, and wrk and h2load for the load."""

import os
import random
import re
import socket
import ssl
import subprocess
import threading
import time
import zlib
from dataclasses import dataclass

from harness import http2
from harness.client import Closed, Connection, request
from harness.replay import limited
from harness import tokens
from harness.websocket import handshake

from .events import STREAM_PIECES


@dataclass
class Failure:
    """A request that was not answered as it should be."""

    kind: str
    target: str
    began: float
    ended: float
    # The status, or 0 where the connection ended.
    status: int
    what: str


class Checker(threading.Thread):
    """Asks until it is told to stop. Subclasses ask one thing in `ask`, by their `kind`."""

    kind = ""
    pause = 0.02

    def __init__(self, night, number: int):
        super().__init__(daemon=True)
        self.night = night
        self.random = random.Random(f"{night.seed} {self.kind} {number}")
        self.name = f"{self.kind}-{number}"
        self.asked = 0
        self.answered: list[str] = []
        self.failures: list[Failure] = []
        self.connection = None

    def run(self):
        while not self.night.is_over:
            self.asked += 1
            target = f"/{self.route}/c/{self.name}/{self.asked}"
            began = time.time()
            self.status = 0
            try:
                self.ask(target)
                self.answered.append(target)
            except (OSError, Closed, AssertionError, ssl.SSLError) as error:
                self.failures.append(
                    Failure(self.kind, target, began, time.time(), self.status, f"{type(error).__name__}: {error}"[:300]))
                self.drop()
            time.sleep(self.random.random() * 2 * self.pause)
        self.drop()

    route = "open"

    def drop(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def converse(self, method: str, target: str, body: bytes | None = None, token: str | None = None, **options):
        """One request over the connection that is open, or a new one; one that its answer closes is not used again."""
        if self.connection is None:
            self.connection = Connection(self.night.port, **options)
        response = self.connection.ask(request(method, target, body=body, token=token))
        self.status = response.status
        if response.get("connection") == "close":
            self.drop()
        return response

    @staticmethod
    def expect(response, method: str, target: str, body: bytes = b""):
        assert response.status == 200, f"{response.status} {bytes(response.body)[:200]!r}"
        wanted = f"{method} {target} {len(body)} {zlib.crc32(body)}".encode()
        assert bytes(response.body) == wanted, f"another one's answer: {bytes(response.body)!r}"


class Getting(Checker):
    kind, route = "get", "enforced"

    def ask(self, target):
        self.expect(self.converse("GET", target, token=self.night.token), "GET", target)


class Dawdling(Getting):
    """Leaves its connection idle for a while: a drain must not close it in the moment of the next request."""

    kind, pause = "dawdle", 0.3


class Named(Checker):
    """Asks the upstream whose name the resolver lies about."""

    kind, route = "named", "named"

    def ask(self, target):
        self.expect(self.converse("GET", target), "GET", target)


class Posting(Checker):
    kind = "post"

    def ask(self, target):
        body = self.random.randbytes(self.random.randrange(20_000))
        self.expect(self.converse("POST", target, body), "POST", target, body)


class Secure(Checker):
    """A connection for each request, with a certificate that was put there by the test."""

    kind, pause = "tls", 0.05

    def ask(self, target):
        with Connection(self.night.tls_port, tls=self.night.authority.client("http/1.1"), name="api.example.test") as connection:
            self.night.saw(connection.socket.getpeercert(True))
            response = connection.ask(request("GET", target, "Connection: close"))
            self.status = response.status
            self.expect(response, "GET", target)


class Multiplexed(Checker):
    kind = "h2"

    def ask(self, target):
        if self.connection is None or self.connection.goaways or self.connection.is_closed:
            self.drop()
            self.connection = http2.Client(self.night.port)
        stream = self.connection.begin("GET", target, token=self.night.token, end=True)
        half = self.connection.end(stream, 20)
        if not half.is_over and self.connection.goaways and self.connection.goaways[-1].last_stream_id < stream:
            # It was not taken, and the client knows that (RFC 9113, section 6.8): it asks again.
            self.drop()
            return self.ask(target)
        assert half.is_over, f"cut off: reset {half.reset}, goaway {self.connection.goaways}"
        self.status = half.status
        self.expect(half, "GET", target)


class Once(Checker):
    """Each limited-use token is good for one request, whatever is going on."""

    kind, route = "once", "once"
    used: list[str] = []

    def ask(self, target):
        if self.used and self.random.random() < 0.5:
            response = self.converse("GET", target, token=self.random.choice(self.used))
            assert response.status == 401 and response.code == "token_already_used", f"{response.status} for a used token"
            return
        token = limited(self.night.keys.first)
        tokens.minted.discard(token)
        response = self.converse("GET", target, token=token)
        self.expect(response, "GET", target)
        self.used = (self.used + [token])[-500:]


class Streaming(Checker):
    """An answer that takes seconds."""

    kind = "stream"

    def ask(self, target):
        target = target.replace("/c/", "/stream/c/")
        with Connection(self.night.port) as connection:
            response = connection.ask(request("GET", target))
            self.status = response.status
            pieces = [f"data: {number} {target}" for number in range(STREAM_PIECES)]
            assert bytes(response.body).decode().split("\n\n")[:-1] == pieces, bytes(response.body)[-200:]


class Tunnelling(Checker):
    """A WebSocket that says something now and then for seconds."""

    kind = "websocket"

    def ask(self, target):
        with Connection(self.night.port) as connection:
            connection.send(handshake(target))
            head = connection.read_response()
            self.status = head.status
            assert head.status == 101, head.status
            for _ in range(30):
                message = self.random.randbytes(1 + self.random.randrange(500))
                connection.send(message)
                assert connection.stream.take(len(message)) == message
                time.sleep(0.1)
        # Its line in the log is a success, but written in the end: nothing to find for a moment.


CHECKERS = [(Getting, 2), (Dawdling, 2), (Named, 1), (Posting, 2), (Secure, 1), (Multiplexed, 1), (Once, 1), (Streaming, 2),
            (Tunnelling, 2)]


class Wrk:
    """wrk over connections that it keeps; what it could not do is in `errors`."""

    def __init__(self, port: int, seconds: float, token: str):
        self.process = subprocess.Popen(
            ["wrk", "-t1", "-c8", f"-d{int(seconds)}s", "--timeout", "20s", "-H", f"X-Firebase-AppCheck: {token}",
             f"http://127.0.0.1:{port}/enforced/wrk"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self):
        self.output = self.process.communicate(timeout=60)[0]
        self.requests = int(re.search(r"(\d+) requests in", self.output)[1])
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", self.output)
        self.errors = dict(zip(("connect", "read", "write", "timeout"), map(int, errors.groups()))) if errors else {}
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", self.output)
        self.refused = int(refused[1]) if refused else 0
        return self


class H2Load:
    """h2load in short runs, one after the other. It begins nothing more on a connection that got GOAWAY, and counts what it
    never began as errors: what counts here is what it began. A stream that the last GOAWAY does not take was not begun by
    the server (RFC 9113, section 6.8), and h2load cannot say which these are: `unfinished` is their number, at most those
    that a connection has at a time, and the checker `h2` asks for each of its own.
    """

    RUN, STREAMS = 400, 8

    def __init__(self, night):
        self.night, self.requests, self.refused = night, 0, 0
        self.errors: list[str] = []
        self.unfinished = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.night.is_over:
            done = subprocess.run(
                ["h2load", "-n", str(self.RUN), "-c2", "-m4", f"http://127.0.0.1:{self.night.port}/open/h2load"],
                capture_output=True, text=True, timeout=120)
            numbers = re.search(r"requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, "
                                r"(\d+) errored, (\d+) timeout", done.stdout)
            total, started, answered, good, failed, errored, late = map(int, numbers.groups())
            self.requests += good
            bad = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", done.stdout)
            self.refused += int(bad[4]) + int(bad[3])
            unfinished = answered - good - int(bad[4]) - int(bad[3])
            self.unfinished += max(0, unfinished)
            if late or answered != started or unfinished > self.STREAMS:
                self.errors.append(numbers[0])

    def end(self):
        self.thread.join(120)
        return self
