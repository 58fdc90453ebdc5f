"""Bodies: every size, both ways, both framings, and never more memory than a window of them."""

import hashlib
import threading
import time

import pytest

from harness.client import request
from harness.origin import Gate

MIB = 1 << 20
SIZES = [0, 1, 64 << 10, 10 * MIB]


def pattern(size: int) -> bytes:
    """Bytes that differ everywhere, so that nothing can be lost, doubled or swapped unseen."""
    block = b"".join(number.to_bytes(4, "big") for number in range(1 << 16))
    return (block * (size // len(block) + 1))[:size]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pieces(data: bytes, size: int = 100_003) -> list[bytes]:
    return [data[at:at + size] for at in range(0, len(data), size)]


def send_aside(connection, data: bytes) -> threading.Thread:
    """Sends on a thread of its own, so that the answer can be read meanwhile."""

    def send():
        try:
            connection.send(data)
        except OSError:
            pass

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("route", ["open", "enforced"])
def test_an_upload_arrives_whole(proxy, origin, mint, size, framing, route):
    data, token = pattern(size), mint()
    if framing == "length":
        message = request("POST", f"/{route}/x", token=token, body=data)
    else:
        message = request("POST", f"/{route}/x", "Transfer-Encoding: chunked", token=token) + b"".join(
            b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces(data)) + b"0\r\n\r\n"
    with proxy.connect() as connection:
        assert connection.ask(message).status == 200
        assert connection.ask(request("GET", "/open/next")).status == 200
    sent = origin.requests[0].body_read
    assert (sent.length, sent.sha256) == (size, digest(data))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_download_arrives_whole(proxy, origin, size, framing):
    data = pattern(size)

    def script(exchange):
        if framing == "length":
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + data)
        elif framing == "chunked":
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for piece in pieces(data):
                exchange.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            exchange.send(b"0\r\n\r\n")
        else:
            exchange.send(b"HTTP/1.1 200 OK\r\n\r\n" + data)
            exchange.close()

    origin.on("/open/x", script)
    with proxy.connect() as connection:
        response = connection.ask(request("GET", "/open/x"))
        assert (response.body_read.length, response.body_read.sha256) == (size, digest(data))
        if response.framing != "close":
            assert connection.ask(request("GET", "/open/next")).status == 200


def test_both_directions_at_once(proxy, origin):
    """An echo that answers each piece as it comes: neither direction may wait for the other's end."""
    data = pattern(5 * MIB)

    def echo(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
        left = len(data)
        while left:
            piece = exchange.stream.take_some()
            left -= len(piece)
            exchange.send(piece)
        exchange.is_body_read = True

    origin.on("/open/x", echo, early=True)
    with proxy.connect() as connection:
        sender = send_aside(connection, request("POST", "/open/x", body=data))
        response = connection.read_response()
        sender.join()
    assert response.body_read.sha256 == digest(data)


def test_a_body_beyond_the_limit_is_refused_before_it_is_sent(start, origin):
    proxy = start(origin, listener='limits = { body = "1KiB" }')
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", "Content-Length: 1025"))
        response = connection.read_response()
        assert response.status == 413
        assert response.get("content-type") == "application/problem+json"
    assert origin.requests == []
    assert proxy.access_of("/open/x")["failure"] == "body_too_large"
    assert proxy.ask("POST", "/open/x", body=b"a" * 1024).status == 200


def test_a_chunked_body_beyond_the_limit_is_cut_off(start, origin):
    proxy = start(origin, listener='limits = { body = "1KiB" }')
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", "Transfer-Encoding: chunked"))
        for _ in range(4):
            try:
                connection.send(b"200\r\n" + b"a" * 512 + b"\r\n")
            except ConnectionError:
                break
        responses = connection.read_until_closed()
    assert [response.status for response in responses] == [413]
    assert all(one.body_read.length <= 1024 for one in origin.requests)


BIG = 200 * MIB
ROOMY = 'limits = { body = "1GiB" }'


def test_a_big_upload_to_a_slow_origin_is_held_back_at_the_client(start, origin):
    proxy = start(origin, listener=ROOMY)
    gate = Gate()
    result = {}

    def script(exchange):
        gate.wait(40)
        exchange.read_body()
        result["digest"] = exchange.request.body_read.sha256
        exchange.respond()

    origin.on("/open/x", script, early=True)
    assert proxy.ask("POST", "/open/warm", body=pattern(MIB)).status == 200
    before = proxy.resident_bytes()
    data = pattern(BIG)
    with proxy.connect(patience=50) as connection:
        sender = send_aside(connection, request("POST", "/open/x", body=data))
        origin.wait(lambda: len(origin.requests) == 2, "the head arrives")
        assert held_back(sender.is_alive), "200 MiB went into a proxy whose origin reads nothing"
        assert proxy.resident_bytes() - before < 20 * MIB
        gate.open()
        assert connection.read_response().status == 200
        sender.join()
    assert result["digest"] == digest(data)
    assert proxy.resident_bytes() - before < 20 * MIB


def held_back(is_waiting, checks: int = 20) -> bool:
    """Whether a sender is still waiting after many looks, far longer than an unhindered one needs."""
    for _ in range(checks):
        if not is_waiting():
            return False
        time.sleep(0.05)
    return True


def test_a_big_download_to_a_slow_client_is_held_back_at_the_origin(start, origin):
    proxy = start(origin)
    data = pattern(BIG)
    done = Gate()

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
        exchange.send(data)
        done.open()

    origin.on("/open/x", script)
    origin.on("/open/warm", lambda exchange: exchange.respond(body=pattern(MIB)))
    assert proxy.ask("GET", "/open/warm").status == 200
    before = proxy.resident_bytes()
    with proxy.connect(receive_buffer=64 << 10, patience=50) as connection:
        connection.send(request("GET", "/open/x"))
        response = connection.read_head()
        assert held_back(lambda: not done.is_open()), "200 MiB went into a proxy whose client reads nothing"
        assert proxy.resident_bytes() - before < 20 * MIB
        connection.read_body(response)
    assert response.body_read.sha256 == digest(data)
    assert proxy.resident_bytes() - before < 20 * MIB


def test_a_client_that_pipelines_without_reading_is_held_back(start, origin):
    proxy = start(origin)
    origin.on("/open/x", lambda exchange: exchange.respond(body=pattern(20_000)))
    assert proxy.ask("GET", "/open/x").status == 200
    before = proxy.resident_bytes()
    with proxy.connect(receive_buffer=64 << 10) as connection:
        sender = send_aside(connection, request("GET", "/open/x") * 200_000)
        assert held_back(sender.is_alive), "200,000 requests went into a proxy that nobody reads from"
        assert proxy.resident_bytes() - before < 20 * MIB
        assert len(origin.requests) < 10_000
        # It goes on as soon as somebody reads.
        for _ in range(50):
            assert connection.read_response().status == 200


def test_an_early_answer_reaches_the_client_while_it_uploads(proxy, origin):
    origin.on("/open/x", lambda exchange: (exchange.respond(413, "Connection: close", body=b"enough"),
                                           exchange.close()), early=True)
    with proxy.connect() as connection:
        send_aside(connection, request("POST", "/open/x", body=pattern(20 * MIB)))
        response = connection.read_response()
    assert (response.status, response.body) == (413, b"enough")
    assert proxy.ask("GET", "/open/next").status == 200


def test_an_early_answer_on_a_connection_that_stays_does_not_mix_requests(proxy, origin):
    gate = Gate()

    def script(exchange):
        exchange.respond(200, body=b"early")
        gate.wait()

    origin.on("/open/x", script, early=True)
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/x", "Content-Length: 10") + b"hello")
        response = connection.read_response()
        assert response.body == b"early"
        gate.open()
        try:
            connection.send(b"world" + request("GET", "/open/next"))
            answers = [one.status for one in connection.read_until_closed()] if (
                response.get("connection") == "close") else [connection.read_response().status]
        except ConnectionError:
            answers = []
    assert answers in ([], [200])
    assert set(origin.targets()) <= {"/open/x", "/open/next"}


def test_a_client_that_vanishes_in_mid_upload_takes_the_origins_connection_with_it(proxy, origin):
    closed = Gate()
    origin.on("/open/vanishes", lambda exchange: exchange.peer_closed() and closed.open() or exchange.close(),
              early=True)
    connection = proxy.connect()
    connection.send(request("POST", "/open/vanishes", "Content-Length: 1000") + b"part")
    origin.wait(lambda: origin.requests, "the request arrives")
    connection.reset()
    assert closed.wait(10), "the origin's connection stayed"
    assert proxy.access_of("/open/vanishes")["failure"] == "client_aborted"


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_client_that_vanishes_while_it_waits_takes_the_origins_connection_with_it(
        proxy, origin, how):
    path = f"/open/waits-{how}"
    closed = Gate()
    origin.on(path, lambda exchange: exchange.peer_closed() and closed.open() or exchange.close())
    connection = proxy.connect()
    connection.send(request("GET", path))
    origin.wait(lambda: origin.requests, "the request arrives")
    getattr(connection, how)()
    assert closed.wait(10), "the origin's connection stayed"
    assert proxy.access_of(path)["failure"] == "client_aborted"


def test_a_client_that_sends_its_request_and_vanishes_at_once_is_noticed(proxy, origin):
    gate = Gate()
    origin.on("/open/hasty", lambda exchange: gate.wait() and exchange.respond())
    connection = proxy.connect()
    connection.send(request("GET", "/open/hasty"))
    connection.close()
    # Long before the origin's time to answer is over.
    assert proxy.access_of("/open/hasty")["failure"] == "client_aborted"
    gate.open()


def test_a_client_that_vanishes_in_mid_download_takes_the_origins_connection_with_it(proxy, origin):
    closed = Gate()

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            while True:
                exchange.send(b"a" * 65536)
        except OSError:
            closed.open()
        exchange.close()

    origin.on("/open/downloads", script)
    connection = proxy.connect()
    connection.send(request("GET", "/open/downloads"))
    connection.stream.take(100_000)
    connection.reset()
    assert closed.wait(10), "the origin's connection stayed"
    record = proxy.access_of("/open/downloads")
    assert record["failure"] == "client_aborted" and record["status"] == 200


def test_W9_a_client_that_closes_its_sending_side_is_answered_or_let_go(proxy, origin):
    # It cannot be told from one that has gone; what must not happen is that it waits for ever.
    with proxy.connect() as connection:
        connection.send(request("POST", "/open/half-closed", body=b"hello"))
        connection.half_close()
        answers = connection.read_until_closed()
    assert [answer.status for answer in answers] in ([], [200])
    record = proxy.access_of("/open/half-closed")
    assert record["status"] == 200 or record["failure"] == "client_aborted"


def test_the_log_counts_the_bytes_of_bodies(proxy, origin):
    origin.on("/open/counted", lambda exchange: exchange.respond(body=b"b" * 12_345))
    proxy.ask("POST", "/open/counted", body=b"a" * 54_321)
    record = proxy.access_of("/open/counted")
    assert (record["bytes_in"], record["bytes_out"]) == (54_321, 12_345)


def test_many_clients_at_once_get_their_own_answers(proxy, origin, mint):
    def echo(exchange):
        exchange.respond(body=exchange.request.body)

    for number in range(40):
        origin.on(f"/enforced/{number}", echo)
    failures = []

    def client(number: int):
        body = f"client {number} ".encode() * 2000
        with proxy.connect() as connection:
            for _ in range(10):
                response = connection.ask(request("POST", f"/enforced/{number}", token=mint(), body=body))
                if (response.status, response.body) != (200, body):
                    failures.append((number, response.head))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
