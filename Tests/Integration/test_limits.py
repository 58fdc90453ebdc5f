"""Limits on everything: each ends what it should, with its status, its metric and its word, and nothing else.

README has the table; the names of the tests here are in it.
"""

import os
import resource
import signal
import socket
import threading
import time

import pytest

from harness import client
from harness.client import request
from harness.http2 import Client, frame
from harness.origin import Gate, wait_until
from harness.proxy import route

BOTH = 'protocols = ["http/1.1", "h2"]'


def hits(proxy, limit: str) -> float:
    return proxy.metric("portcullis_limit_hits_total", limit=limit)


def assert_hit(proxy, limit: str, count: int = 1):
    proxy.expect_metric(count, "portcullis_limit_hits_total", limit=limit)


def assert_overloaded(response):
    assert (response.status, response.code) == (503, "overloaded"), response.head + response.body
    assert response.get("retry-after") == "5" and response.get("connection") == "close"


def turned_away(proxy, limit: str) -> dict:
    return proxy.wait_for_record(lambda record: record.get("limit") == limit and "turned away" in record["msg"],
                                 f"one about {limit}")


class Held:
    """Requests that the origin holds until they are let go."""

    def __init__(self, proxy, origin, path: str = "/open/held"):
        self.proxy, self.origin, self.path = proxy, origin, path
        self.gate, self.connections = Gate(), []
        origin.on(path, lambda exchange: (self.gate.wait(), exchange.respond()))

    def begin(self, count: int, *fields: str):
        before = len(self.origin.requests)
        for _ in range(count):
            connection = self.proxy.connect()
            connection.send(request("GET", self.path, *fields))
            self.connections.append(connection)
        self.origin.wait(lambda: len(self.origin.requests) == before + count, "all are there")

    def let_go(self):
        self.gate.open()
        for connection in self.connections:
            assert connection.read_response().status == 200
            connection.close()


# Connections


@pytest.mark.parametrize("limit, parts", [
    ("connections", {"listener": "limits = { connections = 3 }"}),
    ("max_connections", {"server": "max_connections = 3"}),
    ("connections_per_network", {"listener": "limits = { connections_per_network = 3 }"})])
def test_a_connection_too_many_is_turned_away(start, new_origin, limit, parts):
    origin = new_origin()
    proxy = start(origin, **parts)
    held = Held(proxy, origin)
    held.begin(3)
    assert_overloaded(proxy.ask("GET", "/open/x"))
    assert_hit(proxy, limit)
    record = turned_away(proxy, limit)
    assert (record["level"], record["client"]) == ("warning", "127.0.0.1")
    held.let_go()
    wait_until(lambda: proxy.metric("portcullis_connections") == 0, "all are gone")
    assert proxy.ask("GET", "/open/x").status == 200
    assert hits(proxy, limit) == 1


def test_a_count_is_right_after_many_connections(start, new_origin):
    """Whatever becomes of a connection, its place is given up once."""
    origin = new_origin()
    proxy = start(origin, listener='limits = { connections = 4, connections_per_network = 4, header_timeout = "200ms" }')
    for data in (b"", b"nonsense\r\n\r\n", b"GET /open/x HTTP/1.1\r\n", request("GET", "/enforced/x"),
                 request("GET", "/open/x", "Connection: close")) * 4:
        with proxy.connect() as connection:
            connection.send(data)
            if data and data.endswith(b"\r\n\r\n"):
                connection.read_response()
    wait_until(lambda: proxy.metric("portcullis_connections") == 0, "all are gone")
    held = Held(proxy, origin)
    held.begin(4)
    assert_overloaded(proxy.ask("GET", "/open/x"))
    held.let_go()


def test_other_networks_have_connections_of_their_own(start, new_origin):
    origin = new_origin()
    proxy = start(origin, listener="limits = { connections_per_network = 2 }")
    held = Held(proxy, origin)
    held.begin(2)
    assert_overloaded(proxy.ask("GET", "/open/x"))
    with socket.create_connection(("127.0.0.1", proxy.port), source_address=("127.0.0.2", 0)) as other:
        other.sendall(request("GET", "/open/x", "Connection: close"))
        assert other.recv(100).startswith(b"HTTP/1.1 200")
    held.let_go()


def test_connections_of_a_trusted_proxy_are_not_one_clients(start, new_origin):
    origin = new_origin()
    proxy = start(origin, listener='trusted_proxies = ["127.0.0.1"]\nlimits = { connections_per_network = 2 }')
    held = Held(proxy, origin)
    held.begin(5)
    assert proxy.ask("GET", "/open/x").status == 200
    assert hits(proxy, "connections_per_network") == 0
    held.let_go()


@pytest.mark.parametrize("parts", [{"listener": "limits = { connections = 3 }"}, {"server": "max_connections = 3"}])
def test_idle_connections_make_room(start, new_origin, parts):
    """Those that have been silent for longest: a flood of them keeps nobody out."""
    origin = new_origin()
    # One loop, which has all connections.
    proxy = start(origin, workers=1, **parts)
    idle = [proxy.connect() for _ in range(2)]
    wait_until(lambda: proxy.metric("portcullis_connections") == 2, "both are there")
    with proxy.connect() as used:
        assert used.ask(request("GET", "/open/x")).status == 200

        def is_served() -> bool:
            # Idle for less than a second they keep their places.
            return proxy.ask("GET", "/open/x", "Connection: close").status == 200

        wait_until(is_served, "there is room")
        assert all(connection.is_closed() for connection in idle)
    assert proxy.metric("portcullis_idle_connections_closed_total") >= 2


def test_idle_connections_make_room_where_files_are_short(start, new_origin):
    """For new clients, and for the connection to the backend that a request needs."""
    origin = new_origin()
    proxy = start(origin, workers=1)
    limit_files(proxy, proxy.descriptors() + 10)
    idle = [proxy.connect() for _ in range(40)]
    # None of them has been idle for a second, so there is nobody to make room.
    proxy.wait_for_record(lambda record: "cannot accept connections" in record["msg"], "one about files")

    def is_served() -> bool:
        try:
            with proxy.connect(patience=2) as connection:
                connection.send(request("GET", "/open/x", "Connection: close"))
                response = connection.read_response()
        except (OSError, client.Closed):
            return False
        assert response.status == 200 or response.code == "overloaded"
        return response.status == 200

    wait_until(is_served, "there is room")
    for connection in idle:
        connection.close()
    wait_until(lambda: is_served() and is_served(), "it serves as before")
    assert hits(proxy, "open_files") >= 1
    assert proxy.metric("portcullis_idle_connections_closed_total") >= 1
    assert proxy.metric("portcullis_upstream_events_total", event="ejected") == 0


def test_a_request_without_a_descriptor_is_refused_and_no_server_is_blamed(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=1)
    held = Held(proxy, origin)
    held.begin(1)
    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/nothing")).status == 404
        # All that are open now are needed.
        limit_files(proxy, lowest_free(proxy))
        assert_overloaded_but_kept(connection.ask(request("GET", "/open/x")))
        record = proxy.access_of("/open/x")
        assert (record["failure"], record["status"]) == ("open_files", 503)
        limit_files(proxy, 1000)
        assert connection.ask(request("GET", "/open/x")).status == 200
    assert_hit(proxy, "open_files")
    assert proxy.metric("portcullis_request_failures_total", failure="open_files") == 1
    assert proxy.metric("portcullis_upstream_events_total", event="ejected") == 0
    held.let_go()


def limit_files(proxy, count: int):
    _, hard = resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (count, hard))


def lowest_free(proxy) -> int:
    """As a limit it leaves no number free: new descriptors get the lowest one, and below this all are taken."""
    taken = {int(name) for name in os.listdir(f"/proc/{proxy.process.pid}/fd")}
    return next(number for number in range(1 << 20) if number not in taken)


def assert_overloaded_but_kept(response):
    assert (response.status, response.code, response.get("retry-after")) == (503, "overloaded", "5")


@pytest.mark.parametrize("limit, parts, before, after", [
    ("connections", {"listener": "limits = { connections = 2, connections_per_network = 2 }"},
     "connections = 2, connections_per_network = 2", "connections = 3"),
    ("max_connections", {"server": "max_connections = 2"}, "max_connections = 2", "max_connections = 3")],
    ids=["connections", "max_connections"])
def test_a_reload_changes_limits_of_connections(start, new_origin, limit, parts, before, after):
    origin = new_origin()
    proxy = start(origin, **parts)
    held = Held(proxy, origin)
    held.begin(2)
    text = proxy.config_path.read_text()
    proxy.config_path.write_text(text.replace(before, after))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record["msg"] == "configuration reloaded", "a reload")
    held.begin(1)
    assert_overloaded(proxy.ask("GET", "/open/x"))
    assert hits(proxy, limit) == 1
    held.let_go()


def test_what_is_chosen_for_connections_is_said(start, origin):
    proxy = start(origin)
    record = proxy.wait_for_record(lambda record: "max_connections" in record, "the number of connections")
    files = int(record["open_files"])
    assert int(record["max_connections"]) == max(16, files - max(128, files // 4))


# Requests of a connection


def test_a_connection_serves_so_many_requests(start, origin):
    proxy = start(origin, listener="limits = { requests_per_connection = 3 }")
    with proxy.connect() as connection:
        answers = [connection.ask(request("GET", target)) for target in ("/open/x", "/enforced/x", "/open/x")]
        assert [answer.get("connection") for answer in answers] == [None, None, "close"]
        assert connection.is_closed()
    assert_hit(proxy, "requests_per_connection")


def test_pipelined_requests_beyond_the_limit_are_the_clients_to_repeat(start, origin):
    proxy = start(origin, listener="limits = { requests_per_connection = 3 }")
    with proxy.connect() as connection:
        connection.send(request("GET", "/open/x") * 5)
        assert len(connection.read_until_closed()) == 3
    assert len(origin.requests) == 3


def test_an_http2_connection_serves_so_many_requests(start, origin):
    proxy = start(origin, listener=f"{BOTH}\nlimits = {{ requests_per_connection = 3 }}")
    with Client(proxy.port) as connection:
        for _ in range(3):
            assert connection.ask("GET", "/open/x").status == 200
        connection.wait_closed()
        assert [event.error_code for event in connection.goaways][-1] == 0
    assert_hit(proxy, "requests_per_connection")


def test_an_endless_pipeliner_lets_others_go_on(start, origin):
    proxy = start(origin, workers=1, log='access = "off"')
    done = threading.Event()

    def pipeline():
        with proxy.connect() as connection:
            threading.Thread(target=drain, args=(connection.socket,), daemon=True).start()
            piece = request("GET", "/nothing") * 1000
            while not done.is_set():
                try:
                    connection.send(piece)
                except OSError:
                    return

    def drain(sock):
        try:
            while sock.recv(1 << 16):
                pass
        except OSError:
            pass

    thread = threading.Thread(target=pipeline)
    thread.start()
    wait_until(lambda: hits(proxy, "pipelined") > 10, "it pipelines")
    waits = []
    with proxy.connect() as connection:
        for _ in range(20):
            begun = time.monotonic()
            assert connection.ask(request("GET", "/nothing")).status == 404
            waits.append(time.monotonic() - begun)
    done.set()
    thread.join()
    # Some milliseconds; behind all that is pipelined it would be seconds.
    assert sorted(waits)[len(waits) // 2] < 0.5, waits


# Heads and bodies


@pytest.mark.parametrize("limit, status, code, target, fields", [
    ("url", 414, "uri_too_long", "/open/" + "x" * 300, []),
    ("header_bytes", 431, "header_too_large", "/open/x", [f"X: {'x' * 2000}"]),
    ("headers", 431, "header_too_large", "/open/x", [f"X-{number}: 1" for number in range(20)])])
@pytest.mark.parametrize("version", ["http/1.1", "h2"])
def test_a_head_has_limits(start, origin, version, limit, status, code, target, fields):
    proxy = start(origin, listener=f'{BOTH}\nlimits = {{ url = "256B", header_bytes = "2KiB", headers = 16 }}')
    if version == "h2":
        with Client(proxy.port) as connection:
            pairs = [tuple(line.lower().split(": ")) for line in fields]
            response = connection.ask("GET", target, *pairs)
    else:
        response = proxy.ask("GET", target, *fields)
    assert (response.status, response.code) == (status, code)
    assert_hit(proxy, limit)
    assert origin.requests == []


def test_a_url_at_its_limit_passes(start, origin):
    proxy = start(origin, listener='limits = { url = "256B" }')
    target = "/open/" + "x" * 250
    assert len(target) == 256 and proxy.ask("GET", target).status == 200
    assert proxy.ask("GET", target + "x").status == 414


@pytest.mark.parametrize("fields", [["Content-Length: 101"], ["Transfer-Encoding: chunked"]])
def test_a_body_has_a_limit(start, origin, fields):
    proxy = start(origin, listener='limits = { body = "100B" }')
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", *fields))
        if "chunked" in fields[0]:
            connection.send(b"65\r\n" + b"a" * 101 + b"\r\n0\r\n\r\n")
        response = connection.read_response()
    assert (response.status, response.code) == (413, "body_too_large")
    assert_hit(proxy, "body")


def test_times_of_a_client_have_limits(start, new_origin):
    origin = new_origin()
    proxy = start(origin, listener='limits = { header_timeout = "300ms", idle_timeout = "400ms" }')
    with proxy.connect() as connection:
        connection.send(b"GET /open/x HT")
        assert [answer.status for answer in connection.read_until_closed()] == [408]
    assert_hit(proxy, "header_timeout")
    with proxy.connect() as connection:
        assert connection.is_closed()
    assert_hit(proxy, "idle_timeout")
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/stalls", "Content-Length: 10"))
        assert [answer.status for answer in connection.read_until_closed()] == [408]
    assert_hit(proxy, "idle_timeout", 2)


def test_frames_and_streams_of_http2_have_limits(start, origin):
    proxy = start(origin, listener=BOTH)
    ping = frame(6, 0, 0, b"12345678")
    with Client(proxy.port) as connection:
        connection.send_raw(ping * 1200)
        connection.wait_closed()
        assert connection.goaways[-1].error_code == 11
    assert_hit(proxy, "h2_flood")
    proxy.expect_metric(1, "portcullis_http2_failures_total", kind="h2_flood")
    record = proxy.wait_for_record(lambda record: record.get("limit") == "h2_flood", "one about the flood")
    assert record["level"] == "warning"
    # More streams at once than the server has said, before it was heard.
    held = Gate()
    origin.on("/open/held", lambda exchange: (held.wait(), exchange.respond()))
    head = bytes([0x82, 0x86, 0x04]) + bytes([10]) + b"/open/held" + b"\x01" + bytes([6]) + b"a.test"
    with Client(proxy.port, reads=False) as connection:
        connection.send_raw(b"".join(frame(1, 5, stream, head) for stream in range(1, 401, 2)))
        wait_until(lambda: hits(proxy, "h2_streams") >= 1, "streams are refused")
        held.open()


# Rates


SLOW = 'limits = { idle_timeout = "10s", body_rate = "1KiB", answer_rate = "1KiB", rate_grace = "500ms" }'


def drip(connection, piece: bytes, seconds: float):
    """Sends a piece every twentieth of a second; stops when an answer is there."""
    end = time.monotonic() + seconds
    connection.socket.settimeout(0.05)
    while time.monotonic() < end:
        connection.send(piece)
        try:
            if connection.stream.fill():
                break
        except TimeoutError:
            pass
    connection.socket.settimeout(client.PATIENCE)


@pytest.mark.parametrize("fields, piece", [(["Content-Length: 1000000"], b"b"),
                                           (["Transfer-Encoding: chunked"], b"1;ext=" + b"e" * 100 + b"\r\nb\r\n")])
def test_a_body_that_comes_too_slowly_is_given_up(start, new_origin, fields, piece):
    origin = new_origin()
    proxy = start(origin, listener=SLOW)
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/slow", *fields))
        begun = time.monotonic()
        drip(connection, piece, 8)
        response = connection.read_response()
    assert (response.status, response.code) == (408, "request_timeout")
    assert 0.4 < time.monotonic() - begun < 4
    assert proxy.access_of("/open/slow")["failure"] == "body_rate"
    assert_hit(proxy, "body_rate")


def test_a_body_that_comes_fast_enough_is_served(start, origin):
    proxy = start(origin, listener=SLOW)
    with proxy.connect() as connection:
        # Four times the grace, and ten times the rate: a machine that is busy may hold it up for seconds.
        connection.send(request("POST", "/open/x", "Content-Length: 20000"))
        for _ in range(20):
            connection.send(b"b" * 1000)
            threading.Event().wait(0.1)
        assert connection.read_response().status == 200
    assert len(origin.last().body) == 20000
    assert hits(proxy, "body_rate") == 0


def test_a_slow_http2_body_is_given_up(start, new_origin):
    proxy = start(new_origin(), listener=f"{BOTH}\n{SLOW}")
    with Client(proxy.port) as connection:
        stream = connection.begin("POST", "/open/slow")
        end = time.monotonic() + 8
        while time.monotonic() < end and not connection.half(stream).has_head:
            try:
                connection.send(stream, b"b")
            except client.Closed:
                break
            threading.Event().wait(0.05)
        assert connection.half(stream).status == 408
        # The connection and its other streams are none the worse for it.
        assert connection.ask("GET", "/open/x").status == 200
    assert proxy.access_of("/open/slow")["failure"] == "body_rate"


def test_what_the_backend_takes_its_time_for_is_not_the_clients_fault(start, new_origin):
    """While a body waits for 100, or for a backend that reads nothing, no rate counts."""
    origin = new_origin()
    proxy = start(origin, listener=SLOW)

    def script(exchange):
        threading.Event().wait(1.5)
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.read_body()
        exchange.respond()

    origin.on("/open/x", script, early=True)
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", "Expect: 100-continue", "Content-Length: 4"))
        assert connection.read_interim().start_line.split(" ")[1] == "100"
        connection.send(b"body")
        assert connection.read_response().status == 200
    origin.on("/open/y", lambda exchange: (threading.Event().wait(1.5), exchange.read_body(), exchange.respond()),
              early=True)
    with proxy.connect() as connection:
        response = connection.ask(request("POST", "/open/y", body=b"b" * 10_000_000))
        assert response.status == 200


def test_a_conversation_has_no_body_rate(start, new_origin):
    """Once the answer has begun, and for gRPC from the beginning, a body is one side of a dialogue."""
    origin = new_origin()
    proxy = start(origin, listener=SLOW)
    finished = Gate()

    def script(exchange):
        if exchange.request.get("content-type") is None:
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        exchange.read_body()
        finished.open()
        if exchange.request.get("content-type") is None:
            exchange.send(b"0\r\n\r\n")
        else:
            exchange.respond()

    origin.on("/open/talk", script, early=True)
    for fields in ([], ["Content-Type: application/grpc"]):
        with proxy.connect() as connection:
            connection.send(request("POST", "/open/talk", "Content-Length: 40", *fields))
            for _ in range(40):
                connection.send(b"b")
                threading.Event().wait(0.05)
            assert connection.read_response().status == 200
    assert hits(proxy, "body_rate") == 0


def test_an_answer_that_is_taken_too_slowly_is_cut_off(start, new_origin):
    origin = new_origin()
    proxy = start(origin, listener=SLOW)
    closed = Gate()

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            while True:
                exchange.send(b"a" * 65536)
        except OSError:
            closed.open()
        exchange.close()

    origin.on("/open/unread", script)
    # What the kernels have taken counts as taken; so the rate has to be one that they cannot hide.
    text = proxy.config_path.read_text()
    proxy.config_path.write_text(text.replace('answer_rate = "1KiB"', 'answer_rate = "64MiB"'))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record["msg"] == "configuration reloaded", "a reload")
    begun = time.monotonic()
    with proxy.connect(receive_buffer=4096) as connection:
        connection.send(request("GET", "/open/unread"))
        assert closed.wait(8), "the origin's connection stayed"
    assert time.monotonic() - begun < 6
    record = proxy.access_of("/open/unread")
    assert record["failure"] == "answer_rate"
    assert_hit(proxy, "answer_rate")


def test_a_rate_of_nothing_is_any_rate(start, origin):
    proxy = start(origin, listener='limits = { body_rate = "0B", rate_grace = "100ms" }')
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", "Content-Length: 20"))
        for _ in range(20):
            connection.send(b"b")
            threading.Event().wait(0.05)
        assert connection.read_response().status == 200


# The backend's side


def test_times_of_a_backend_have_limits_and_words(start, new_origin):
    origin = new_origin()
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(full.getsockname())
    proxy = start(origin, upstream='timeouts = { response_header = "300ms", idle = "400ms" }', extra=f'''
[upstream.full]
servers = ["127.0.0.1:{full.getsockname()[1]}"]
timeouts = {{ connect = "300ms" }}
''' + route("full", upstream="full", app_check="off"))
    origin.on("/open/silent", lambda exchange: exchange.peer_closed() and exchange.close())
    origin.on("/open/stalls", lambda exchange: (exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"),
                                                exchange.peer_closed(), exchange.close()))
    for target, status, word in (("/full/x", 504, "upstream_connect_timeout"),
                                 ("/open/silent", 504, "upstream_header_timeout"),
                                 ("/open/stalls", 200, "upstream_idle_timeout")):
        with proxy.connect() as connection:
            connection.send(request("GET", target))
            assert connection.read_head().status == status
            if status == 200:
                connection.stream.take_rest()
        assert proxy.access_of(target)["failure"] == word
        proxy.expect_metric(1, "portcullis_request_failures_total", failure=word)
    for sock in (*fillers, full):
        sock.close()


@pytest.mark.parametrize("head", [
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * (64 << 10) + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 257 + b"\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n" * 33 + b"HTTP/1.1 204 No Content\r\n\r\n"],
    ids=["bytes", "fields", "interim"])
def test_an_answers_head_has_limits(proxy, origin, head):
    def script(exchange):
        try:
            exchange.send(head)
        except OSError:
            pass
        exchange.close()

    origin.on("/open/large", script)
    before = proxy.metric("portcullis_request_failures_total", failure="upstream_protocol")
    with proxy.connect() as connection:
        response = connection.ask(request("GET", "/open/large"))
        assert (response.status, response.code) == (502, "upstream_protocol")
    proxy.expect_metric(before + 1, "portcullis_request_failures_total", failure="upstream_protocol")
    # None of the client's limits has anything to do with it.
    assert hits(proxy, "header_bytes") + hits(proxy, "headers") == 0


def test_a_websocket_may_be_the_last_request_of_a_connection(start, new_origin, backend):
    proxy = start(new_origin(), listener="limits = { requests_per_connection = 1 }",
                  extra=f'[upstream.sockets]\nservers = ["127.0.0.1:{backend.port}"]\n'
                  + route("sockets", upstream="sockets", app_check="off"))
    with proxy.connect() as connection:
        connection.send(request("GET", "/sockets/echo", "Upgrade: websocket", "Connection: Upgrade",
                                          "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
        assert connection.read_head().status == 101
