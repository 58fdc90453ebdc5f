"""Mixed traffic for a while: memory and descriptors must stay where they were.

SOAK_SECONDS sets how long (20 s in the ordinary tests, ten minutes in `make soak`).
"""

import os
import random
import threading
import time

import pytest

from harness import tokens
from harness.client import Closed, request
from harness.origin import wait_until
from harness.stream import chunked

SECONDS = float(os.environ.get("SOAK_SECONDS", "20"))
CLIENTS = 12


class Traffic:
    """What one client does, over and over: one of the things that clients do, at random but repeatable."""

    def __init__(self, proxy, keys, seed: int):
        self.proxy, self.keys = proxy, keys
        self.random = random.Random(seed)
        self.counts: dict[str, int] = {}
        self.errors: list[str] = []
        self.token = tokens.mint(keys.first, lifetime=7200)
        self.ways = [self.good, self.fresh, self.missing, self.bad, self.unknown_key, self.upload, self.download,
                     self.aborted_upload, self.aborted_download, self.slow, self.malformed, self.broken_origin,
                     self.half_a_head, self.pipelined, self.long_polled_away]

    def run(self, until: float):
        while time.monotonic() < until:
            way = self.random.choice(self.ways)
            try:
                way()
                self.counts[way.__name__] = self.counts.get(way.__name__, 0) + 1
            except (OSError, Closed, AssertionError) as error:
                self.errors.append(f"{way.__name__}: {error!r}")

    def expect(self, status: int, data: bytes):
        with self.proxy.connect() as connection:
            response = connection.ask(data)
            assert response.status == status, (response.status, status)

    def good(self):
        with self.proxy.connect() as connection:
            for _ in range(20):
                assert connection.ask(request("GET", "/enforced/x", token=self.token)).status == 200

    def fresh(self):
        # Not registered with the output search: the set would grow with the time of the soak.
        token = tokens.mint(self.keys.first)
        tokens.minted.discard(token)
        self.expect(200, request("GET", "/enforced/x", token=token))

    def missing(self):
        self.expect(401, request("GET", "/enforced/x"))

    def bad(self):
        self.expect(401, request("POST", "/enforced/x", token="x.y.z", body=b"a" * self.random.randrange(100_000)))

    def unknown_key(self):
        header = tokens.encode(b'{"alg":"RS256","kid":"%d"}' % self.random.randrange(10**9))
        self.expect(401, request("GET", "/enforced/x", token=header + self.token[self.token.index("."):]))

    def upload(self):
        body = self.random.randbytes(self.random.randrange(300_000))
        self.expect(200, request("POST", "/monitored/x", "Transfer-Encoding: chunked") + chunked(body))

    def download(self):
        self.expect(200, request("GET", "/open/large"))

    def aborted_upload(self):
        connection = self.proxy.connect()
        connection.send(request("POST", "/open/x", "Content-Length: 100000", token=self.token) + b"part")
        connection.reset()

    def aborted_download(self):
        connection = self.proxy.connect()
        connection.send(request("GET", "/open/large"))
        connection.stream.take(10)
        connection.reset()

    def slow(self):
        data = request("POST", "/enforced/x", token=self.token, body=b"hello")
        with self.proxy.connect() as connection:
            for at in range(0, len(data), 200):
                connection.send(data[at:at + 200])
                time.sleep(0.01)
            assert connection.read_response().status == 200

    def malformed(self):
        self.expect(400, b"GET /open/x HTTP/1.1\r\nHost : a\r\n\r\n")

    def broken_origin(self):
        self.expect(502, request("POST", "/open/resets", body=b"a"))

    def half_a_head(self):
        connection = self.proxy.connect()
        connection.send(b"GET /open/x HTTP/1.1\r\nHost: a")
        connection.close()

    def pipelined(self):
        with self.proxy.connect() as connection:
            connection.send(request("GET", "/enforced/x", token=self.token) * 10 + request("GET", "/enforced/x"))
            statuses = [connection.read_response().status for _ in range(11)]
            assert statuses == [200] * 10 + [401]

    def long_polled_away(self):
        with self.proxy.connect() as connection:
            connection.send(request("GET", "/open/never"))


@pytest.mark.timeout(SECONDS + 120)
def test_memory_and_descriptors_stay_flat(start, new_origin, keys):
    origin = new_origin()
    large = b"b" * 1_000_000
    origin.on("/open/large", lambda exchange: exchange.respond(body=large))
    origin.on("/open/resets", lambda exchange: exchange.reset())
    origin.on("/open/never", lambda exchange: exchange.peer_closed(SECONDS + 60) and exchange.close())
    # The memory for verified tokens fills up over hours; a small one is full before the measurement begins.
    proxy = start(origin, log='access = "off"', server='token_cache = "1MiB"')
    clients = [Traffic(proxy, keys, seed) for seed in range(CLIENTS)]

    def traffic(seconds: float):
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=client.run, args=(until,)) for client in clients]
        for thread in threads:
            thread.start()
        while time.monotonic() < until:
            time.sleep(min(1, SECONDS / 20))
            # What the origin records is not what is measured.
            with origin.changed:
                origin.requests.clear()
            samples.append((proxy.resident_bytes(), proxy.descriptors()))
        for thread in threads:
            thread.join()

    def at_rest() -> int:
        """Descriptors once every client has gone and only pooled connections are left."""
        wait_until(lambda: proxy.metric("portcullis_connections") == 0, "no client connection is left", within=20)
        return proxy.descriptors()

    samples: list[tuple[int, int]] = []
    traffic(SECONDS / 4)
    warm_bytes, warm_descriptors = max(size for size, _ in samples), at_rest()
    samples.clear()
    traffic(SECONDS * 3 / 4)
    descriptors = at_rest()

    counts: dict[str, int] = {}
    for client in clients:
        for name, count in client.counts.items():
            counts[name] = counts.get(name, 0) + count
    errors = [error for client in clients for error in client.errors]
    peak = max(size for size, _ in samples)
    print(f"\nsoak of {SECONDS:.0f} s: {sum(counts.values())} rounds, {counts}")
    print(f"resident: {warm_bytes >> 10} KiB warm, {peak >> 10} KiB peak after; "
          f"descriptors at rest: {warm_descriptors} warm, {descriptors} after")
    assert errors == []
    assert len(counts) == len(clients[0].ways)
    assert peak <= warm_bytes * 1.1 + (4 << 20)
    assert descriptors <= warm_descriptors + 32
