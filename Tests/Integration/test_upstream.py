"""The way to the backend: connections that are kept, servers that are chosen, and every way to fail."""

import socket
import threading

import pytest

from harness.client import ask, request
from harness.origin import Gate, wait_until
from harness.proxy import ROUTES, free_port
from harness.stream import Stream, read_head
from judging import assert_rejected


def assert_problem(response, status: int, code: str):
    assert (response.status, response.code) == (status, code), response.head + response.body
    assert response.get("cache-control") == "no-store"


def test_connections_to_the_origin_are_kept(start, new_origin):
    origin = new_origin()
    proxy = start(origin)
    with proxy.connect() as connection:
        for _ in range(50):
            assert connection.ask(request("GET", "/open/x")).status == 200
    assert origin.connections == 1


def test_a_connection_that_the_origin_closes_is_not_kept(proxy, origin):
    origin.on("/open/x", lambda exchange: (exchange.respond(200, "Connection: close"), exchange.close()))
    with proxy.connect() as connection:
        for _ in range(5):
            response = connection.ask(request("GET", "/open/x"))
            # What the origin says of its connection says nothing of the client's.
            assert response.status == 200 and response.get("connection") != "close"
    assert len({one.connection for one in origin.requests}) == 5


def test_an_http_1_0_origin_is_understood(proxy, origin):
    origin.answer("/open/x", b"HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nold", then_close=True)
    response = proxy.ask("GET", "/open/x")
    assert (response.status, response.body, response.get("x-a")) == (200, b"old", "1")


def test_an_http_1_0_client_gets_an_answer_that_it_understands(proxy, origin):
    origin.answer("/open/x", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    with proxy.connect() as connection:
        connection.send(b"GET /open/x HTTP/1.0\r\nHost: a.test\r\n\r\n")
        data = connection.stream.take_rest()
    head, _, body = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower() and body == b"ok"


@pytest.mark.parametrize("version, field, closes", [
    ("1.1", "Connection: close", True), ("1.0", "X-A: 1", True), ("1.1", "X-A: 1", False),
    ("1.1", "Connection: foo, Close", True)])
def test_the_client_decides_whether_its_connection_stays(proxy, origin, version, field, closes):
    with proxy.connect() as connection:
        connection.send(f"GET /open/x HTTP/{version}\r\nHost: a.test\r\n{field}\r\n\r\n".encode())
        response = connection.read_response()
        assert response.status == 200
        if closes:
            assert connection.is_closed()
        else:
            assert connection.ask(request("GET", "/open/x")).status == 200


def test_a_pooled_connection_that_died_costs_no_request(start, new_origin):
    origin = new_origin()
    proxy = start(origin)
    with proxy.connect() as connection:
        for method in ("GET", "POST", "GET", "POST", "DELETE"):
            body = b"hello" if method == "POST" else None
            assert connection.ask(request(method, "/open/x", body=body)).status == 200
            # Closed before the next request is sent: nothing of it can have been taken.
            origin.close_idle()
    assert origin.connections == 5


def test_a_get_on_a_connection_that_dies_under_it_is_sent_again(start, new_origin):
    """The origin takes the request's bytes on a kept connection, then closes without one byte of an answer."""
    origin = new_origin()
    proxy = start(origin)
    first = threading.Event()

    def script(exchange):
        if not first.is_set():
            first.set()
            exchange.close()
        else:
            exchange.respond()

    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/open/warm")).status == 200
        origin.on("/open/x", script)
        response = connection.ask(request("GET", "/open/x"))
        # Whether a GET may be sent twice is a matter of taste; that it is never an untrue answer is not.
        assert response.status in (200, 502)
        assert len(origin.requests) == (3 if response.status == 200 else 2)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_request_that_may_have_been_acted_upon_is_never_sent_twice(start, new_origin, method):
    origin = new_origin()
    proxy = start(origin)
    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/open/warm")).status == 200
        origin.on("/open/x", lambda exchange: exchange.close())
        assert_problem(connection.ask(request(method, "/open/x", body=b"hello")), 502, "upstream_reset")
    assert origin.targets() == ["/open/warm", "/open/x"]


def test_an_answer_that_has_begun_is_never_asked_for_again(start, new_origin):
    origin = new_origin()
    proxy = start(origin)
    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/open/warm")).status == 200
        origin.answer("/open/x", b"HTTP/1.1 200 O", then_close=True)
        assert connection.ask(request("GET", "/open/x")).status == 502
    assert origin.targets() == ["/open/warm", "/open/x"]


def test_round_robin_takes_turns(start, new_origin):
    origins = [new_origin() for _ in range(3)]
    proxy = start(*origins, upstream='balance = "round_robin"')
    with proxy.connect() as connection:
        for _ in range(30):
            assert connection.ask(request("GET", "/open/x")).status == 200
    assert [len(origin.requests) for origin in origins] == [10, 10, 10]


def test_least_requests_avoids_the_busy_server(start, new_origin):
    busy, idle = new_origin(), new_origin()
    # One loop, because each counts the requests of its own.
    proxy = start(busy, idle, upstream='balance = "least_requests"', workers=1)
    gate = Gate()
    for origin in (busy, idle):
        origin.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond()))
    with proxy.connect() as slow:
        slow.send(request("GET", "/open/slow"))
        wait_until(lambda: busy.requests or idle.requests, "the slow request arrives")
        taken, free = (busy, idle) if busy.requests else (idle, busy)
        for _ in range(20):
            assert proxy.ask("GET", "/open/x").status == 200
        assert (len(taken.requests), len(free.requests)) == (1, 20)
        gate.open()
        assert slow.read_response().status == 200


def test_a_server_that_is_down_is_passed_over_while_nothing_was_sent(start, new_origin):
    up = new_origin()
    proxy = start(free_port(), up.port)
    for _ in range(10):
        assert proxy.ask("POST", "/open/x", body=b"hello").status == 200
    assert len(up.requests) == 10


def test_an_origin_that_is_down_is_a_502(start):
    proxy = start(free_port())
    assert_problem(proxy.ask("GET", "/open/x"), 502, "upstream_unreachable")
    assert proxy.access_of("/open/x")["failure"] == "upstream_connect"
    # Refusals of our own do not need the origin.
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")


def test_an_origin_that_comes_back_is_used_again_without_a_restart(start, new_origin):
    port = free_port()
    proxy = start(port)
    assert proxy.ask("GET", "/open/x").status == 502
    new_origin(port=port)
    wait_until(lambda: proxy.ask("GET", "/open/x").status == 200, "the origin is used")


def test_an_origin_that_does_not_accept_is_a_504(start, deaf):
    proxy = start(deaf, upstream='timeouts = { connect = "300ms" }')
    assert_problem(proxy.ask("GET", "/open/x"), 504, "upstream_timeout")


def test_an_origin_that_does_not_answer_is_a_504(start, new_origin):
    origin = new_origin()
    proxy = start(origin, upstream='timeouts = { response_header = "300ms" }')
    origin.on("/open/x", lambda exchange: exchange.peer_closed() and exchange.close())
    with proxy.connect() as connection:
        assert_problem(connection.ask(request("GET", "/open/x")), 504, "upstream_timeout")
        # All of the request was read, so the client's connection is in order and stays.
        assert connection.ask(request("GET", "/open/next")).status == 200
    assert origin.requests[0].connection != origin.requests[1].connection


def test_a_slow_upload_does_not_count_against_the_origins_time(start, new_origin):
    origin = new_origin()
    proxy = start(origin, upstream='timeouts = { response_header = "500ms" }')
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", "Content-Length: 8"))
        for _ in range(8):
            threading.Event().wait(0.1)
            connection.send(b"a")
        assert connection.read_response().status == 200


@pytest.mark.parametrize("script, code", [
    (lambda exchange: exchange.close(), "upstream_reset"), (lambda exchange: exchange.reset(), "upstream_reset"),
    (lambda exchange: (exchange.send(b"HTTP/1.1 200 OK\r\nX: "), exchange.close()), "upstream_protocol"),
    (lambda exchange: (exchange.send(b"nonsense\r\n\r\n"), exchange.close()), "upstream_protocol")],
    ids=["close", "reset", "mid-head", "nonsense"])
def test_an_origin_that_breaks_off_is_a_502(proxy, origin, script, code):
    origin.on("/open/x", script)
    assert_problem(proxy.ask("POST", "/open/x", body=b"a"), 502, code)
    assert proxy.ask("GET", "/open/next").status == 200


def test_an_answer_that_stalls_is_ended_after_the_idle_time(start, new_origin):
    origin = new_origin()
    proxy = start(origin, upstream='timeouts = { idle = "400ms" }')

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart")
        exchange.peer_closed()
        exchange.close()

    origin.on("/open/stalls", script)
    with proxy.connect() as connection:
        connection.send(request("GET", "/open/stalls"))
        assert connection.read_head().status == 200
        assert connection.stream.take_rest() == b"part"
    assert proxy.access_of("/open/stalls")["failure"] == "upstream_idle_timeout"


def test_a_name_that_does_not_resolve_is_a_502_or_a_mistake_at_start(start):
    proxy = start(free_port(), routes=ROUTES.replace('upstream = "api"', 'upstream = "named"'), extra='''
[upstream.named]
servers = ["no-such-host.invalid:80"]
''', ready=None)
    wait_until(lambda: proxy.process.poll() is not None or answers(proxy), "an answer or an end")
    if proxy.process.poll() is None:
        assert_problem(proxy.ask("GET", "/open/x"), 502, "upstream_unreachable")
    else:
        proxy.expect_failure("no-such-host.invalid")


def answers(proxy) -> bool:
    try:
        return proxy.admin("/healthz").status == 200
    except OSError:
        return False


def test_a_backend_on_a_unix_socket(start, origin, tmp_path):
    path = str(tmp_path / "api.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve():
        sock, _ = listener.accept()
        read_head(Stream(sock))
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nunix")
        sock.close()

    threading.Thread(target=serve, daemon=True).start()
    proxy = start(origin, routes=ROUTES + f'''
[[route]]
name = "unix"
path = "/unix"
upstream = "unix"
app_check = "off"

[upstream.unix]
servers = ["unix:{path}"]
''')
    assert proxy.ask("GET", "/unix").body == b"unix"
    listener.close()


def test_a_listener_on_a_unix_socket(start, origin, tmp_path):
    path = str(tmp_path / "front.sock")
    start(origin, extra=f'[[listener]]\nlisten = "unix:{path}"\n')
    assert ask(path, "GET", "/open/x").status == 200
    assert_rejected(ask(path, "GET", "/enforced/x"), "token_missing")


@pytest.mark.parametrize("data", [b"", b"GET /open/x HT", b"GET /open/x HTTP/1.1\r\nHost: a.test\r\n"])
def test_W9_a_head_that_does_not_come_is_not_waited_for(start, origin, data):
    proxy = start(origin, listener='limits = { header_timeout = "400ms", idle_timeout = "600ms" }')
    with proxy.connect() as connection:
        connection.send(data)
        responses = connection.read_until_closed()
    assert [response.status for response in responses] in ([], [408])


def test_W9_a_head_that_drips_is_not_waited_for(start, origin):
    proxy = start(origin, listener='limits = { header_timeout = "500ms", idle_timeout = "5s" }')
    with proxy.connect() as connection:
        connection.send(b"GET /open/x HTTP/1.1\r\nHost: a.test\r\n")
        for number in range(100):
            try:
                connection.send(b"X-%d: 1\r\n" % number)
            except ConnectionError:
                break
            if threading.Event().wait(0.05) or number == 99:
                raise AssertionError("a head may drip for ever")
    assert origin.requests == []


def test_W9_a_body_that_does_not_come_is_not_waited_for(start, origin):
    proxy = start(origin, listener='limits = { idle_timeout = "400ms" }')
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/stalls", "Content-Length: 10") + b"part")
        responses = connection.read_until_closed()
    assert [response.status for response in responses] in ([], [408])
    assert proxy.access_of("/open/stalls")["failure"] in ("client_timeout", "client_aborted")


def test_W9_a_client_that_reads_nothing_is_not_waited_for(start, new_origin):
    origin = new_origin()
    proxy = start(origin, listener='limits = { idle_timeout = "500ms" }')
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
    with proxy.connect(receive_buffer=4096) as connection:
        connection.send(request("GET", "/open/unread"))
        assert closed.wait(), "the origin's connection stayed"
        assert proxy.access_of("/open/unread")["failure"] == "client_timeout"


def test_W9_a_client_that_reads_slowly_is_served(start, new_origin):
    origin = new_origin()
    proxy = start(origin, listener='limits = { idle_timeout = "1500ms" }')
    size = 20_000_000
    origin.on("/open/x", lambda exchange: exchange.respond(body=b"a" * size))
    with proxy.connect(receive_buffer=65536) as connection:
        connection.send(request("GET", "/open/x"))
        response = connection.read_head()
        # Longer than the idle time altogether, but the kernel's buffers never stand still for that long.
        for _ in range(25):
            threading.Event().wait(0.1)
            response.body_read.append(connection.stream.take(200_000))
        connection.read_body(response)
    assert response.body_read.length == size


def test_W9_an_idle_connection_is_closed_without_a_word(start, origin):
    proxy = start(origin, listener='limits = { idle_timeout = "300ms" }')
    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/open/x")).status == 200
        assert connection.is_closed()
