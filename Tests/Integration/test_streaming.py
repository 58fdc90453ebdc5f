"""W9, W12: streams without an end, and bodies without measure, through little memory.

STREAM_MIB sets how much (256 in the ordinary tests, 10 GiB in `make stream`).
"""

import os
import socket
import threading
import time

import pytest

from harness.client import request

MIB = int(os.environ.get("STREAM_MIB", "256"))
PIECE = os.urandom(1 << 20)


def event_stream(count: int, pause: float):
    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(count):
            time.sleep(pause)
            event = b"data: %d\n\n" % number
            exchange.send(b"%x\r\n%s\r\n" % (len(event), event))
        exchange.send(b"0\r\n\r\n")

    return script


def test_W12_events_may_go_on_longer_than_any_time_out(start, new_origin):
    origin = new_origin()
    # The sleeps are what is tested: each is shorter than every limit, all together are longer.
    origin.on("/open/events", event_stream(8, 0.4))
    proxy = start(origin, upstream='timeouts = { idle = "1s", response_header = "1s" }',
                  listener='limits = { idle_timeout = "1s", header_timeout = "1s" }')
    begun = time.monotonic()
    response = proxy.ask("GET", "/open/events")
    assert time.monotonic() - begun > 3
    assert response.body == b"".join(b"data: %d\n\n" % number for number in range(8))
    assert "failure" not in proxy.access_of("/open/events")


def test_W12_events_that_stop_are_given_up(start, new_origin):
    origin = new_origin()
    origin.on("/open/events", event_stream(2, 2.5))
    proxy = start(origin, upstream='timeouts = { idle = "1s" }')
    with proxy.connect() as connection:
        connection.send(request("GET", "/open/events"))
        connection.read_head()
        # An answer that is not complete must not look as if it were.
        assert connection.stream.take_rest() == b""
    assert proxy.access_of("/open/events")["failure"] == "upstream_idle_timeout"


class Peak:
    """Watches the resident memory of a proxy."""

    def __init__(self, proxy):
        self.proxy, self.bytes, self._over = proxy, proxy.resident_bytes(), threading.Event()
        self.before = self.bytes
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._over.wait(0.05):
            self.bytes = max(self.bytes, self.proxy.resident_bytes())

    def growth(self) -> int:
        self._over.set()
        self._thread.join()
        return max(self.bytes, self.proxy.resident_bytes()) - self.before


def count_rest(sock: socket.socket, buffered: bytes) -> int:
    count, room = len(buffered), bytearray(1 << 20)
    while taken := sock.recv_into(room):
        count += taken
    return count


@pytest.mark.timeout(60 + MIB)
@pytest.mark.parametrize("framing", ["length", "close"])
def test_a_huge_answer_streams_through_little_memory(start, new_origin, framing):
    origin = new_origin()

    def script(exchange):
        length = f"Content-Length: {MIB << 20}" if framing == "length" else "Connection: close"
        exchange.send(f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode())
        for _ in range(MIB):
            exchange.send(PIECE)
        exchange.close()

    origin.on("/open/huge", script)
    proxy = start(origin)
    with proxy.connect() as connection:
        connection.ask(request("GET", "/open/warm"))
        peak = Peak(proxy)
        # HTTP/1.0, so that the bytes are counted as they come, without framing of our own.
        connection.send(request("GET", "/open/huge").replace(b"HTTP/1.1", b"HTTP/1.0"))
        connection.read_head()
        assert count_rest(connection.socket, connection.stream.buffer) == MIB << 20
    growth = peak.growth()
    print(f"\n{MIB} MiB down ({framing}): {growth >> 10} KiB more")
    assert growth < 4 << 20


@pytest.mark.timeout(60 + MIB)
def test_a_huge_upload_streams_through_little_memory(start, new_origin):
    origin = new_origin()
    received = []

    def script(exchange):
        left, room = MIB << 20, bytearray(1 << 20)
        left -= len(exchange.stream.take(len(exchange.stream.buffer)))
        while left:
            left -= exchange.stream.socket.recv_into(room, min(left, len(room)))
        received.append(True)
        exchange.is_body_read = True
        exchange.respond()

    origin.on("/open/huge", script, early=True)
    proxy = start(origin, listener=f'limits = {{ body = "{MIB}MiB" }}')
    with proxy.connect(patience=60) as connection:
        connection.ask(request("GET", "/open/warm"))
        peak = Peak(proxy)
        connection.send(request("POST", "/open/huge", f"Content-Length: {MIB << 20}"))
        for _ in range(MIB):
            connection.send(PIECE)
        assert connection.read_response().status == 200
    growth = peak.growth()
    print(f"\n{MIB} MiB up: {growth >> 10} KiB more")
    assert received and growth < 4 << 20
