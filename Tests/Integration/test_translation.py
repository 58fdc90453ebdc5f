"""W4, W6, W8: one message means the same to both ends, whatever version each of them speaks."""

import hashlib

import pytest

from conftest import running_proxy
from translation import LISTENER, ROUTES, Way, origins, second

MANY = bytes(range(256)) * 40_960  # 10 MiB
WAYS = [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.fixture(scope="module")
def both():
    with origins() as both:
        yield both


@pytest.fixture(scope="module")
def module_proxy(both, key_file):
    with running_proxy([both[1]], key_file, listener=LISTENER, routes=ROUTES, extra=second(both[2].port)) as proxy:
        yield proxy


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}to{way[1]}")
def way(request, both, module_proxy):
    for origin in both.values():
        origin.forget()
    yield Way(module_proxy, both, *request.param)
    for origin in both.values():
        assert origin.errors == []


def test_a_plain_request_arrives_as_it_was_meant(way):
    answer = way.ask("GET", "a%20b?c=d&e", ("X-A", "one"), ("X-A", "two"), ("Cookie", "a=1; b=2"))
    assert (answer.status, answer.body) == (200, b"ok")
    seen = way.request()
    assert (seen.method, seen.target, seen.host) == ("GET", way.path("a%20b?c=d&e"), "api.example.test")
    assert seen.message.all("x-a") == ["one", "two"] and seen.get("cookie") == "a=1; b=2"
    assert seen.get("via") == f"{'2.0' if way.client == 2 else '1.1'} portcullis"
    assert seen.get("x-appcheck-verdict") == "exempt"
    names = seen.message.names()
    assert "connection" not in names or way.server == 1
    assert "content-length" not in names and "transfer-encoding" not in names


def test_the_log_says_which_version_and_how_much(way):
    path = f"log-{way.client}{way.server}"
    way.on(path, lambda answering: answering.respond(200, body=b"a" * 1000))
    way.ask("POST", path, body=b"b" * 300)
    record = way.proxy.access_of(way.path(path))
    assert record["protocol"] == {1: "http/1.1", 2: "http/2"}[way.client]
    assert (record["bytes_in"], record["bytes_out"], record["status"]) == (300, 1000, 200)


@pytest.mark.parametrize("has_length", [True, False], ids=["length", "no-length"])
@pytest.mark.parametrize("size", [0, 1, 20_000, len(MANY)])
def test_bodies_arrive_whole_both_ways(way, size, has_length):
    body = MANY[:size]
    way.on("x", lambda answering: answering.respond(200, body=body, has_length=has_length))
    answer = way.ask("POST", "x", body=body, has_length=has_length)
    seen = way.request()
    digest = hashlib.sha256(body).hexdigest()
    assert (seen.length, seen.sha256) == (size, digest)
    assert (answer.status, answer.length, answer.sha256) == (200, size, digest)
    if has_length:
        assert answer.get("content-length") == str(size) and seen.get("content-length") == str(size)


def test_an_empty_body_of_unknown_length_stays_a_body_or_is_none(way):
    way.ask("POST", "x", body=b"", has_length=False)
    assert way.request().body == b""


def test_trailers_pass_both_ways(way):
    way.on("x", lambda answering: answering.respond(
        200, body=b"content", has_length=False, trailers=[("x-sum", "1"), ("grpc-status", "0")]))
    answer = way.ask("POST", "x", ("TE", "trailers"), ("Connection", "TE"),
                     body=b"hello", has_length=False, trailers=[("x-check", "2")]) if way.client == 1 else way.ask(
        "POST", "x", ("te", "trailers"), body=b"hello", has_length=False, trailers=[("x-check", "2")])
    assert answer.body == b"content"
    assert answer.trailers == [("x-sum", "1"), ("grpc-status", "0")]
    assert [(name.lower(), value) for name, value in way.request().trailers] == [("x-check", "2")]
    assert way.request().get("te") == "trailers"


def test_trailers_behind_content_of_known_length_pass_where_both_sides_can_have_them(way):
    way.on("x", lambda answering: answering.respond(
        200, body=b"content", has_length=True, trailers=[("grpc-status", "0")] if way.server == 2 else []))
    answer = way.ask("POST", "x", body=b"hello", has_length=True,
                     trailers=[("x-check", "2")] if way.client == 2 else [])
    assert (answer.body, answer.get("content-length")) == (b"content", "7")
    assert (way.request().body, way.request().get("content-length")) == (b"hello", "5")
    if (way.client, way.server) == (2, 2):
        assert answer.trailers == [("grpc-status", "0")]
        assert way.request().trailers == [("x-check", "2")]
    # The connection is as good as before.
    assert way.ask("GET", "y").status == 200


def test_W8_trailers_that_pose_as_credentials_are_dropped(way):
    way.ask("POST", "x", body=b"hello", has_length=False, trailers=[
        ("x-firebase-appcheck", "a.b.c"), ("x-appcheck-verdict", "verified"), ("x-forwarded-for", "1.2.3.4"),
        ("host", "evil.test"), ("authorization", "x"), ("x-kept", "1")])
    assert [(name.lower(), value) for name, value in way.request().trailers] == [("x-kept", "1")]


def test_trailers_without_content_pass(way):
    way.on("x", lambda answering: answering.respond(200, body=b"", has_length=False, trailers=[("x-sum", "1")]))
    answer = way.ask()
    assert (answer.body, answer.trailers) == (b"", [("x-sum", "1")])


@pytest.mark.parametrize("status", [103, 102])
def test_W6_interim_answers_pass(way, status):
    def script(answering):
        answering.interim(status, ("link", "</a.css>"))
        answering.interim(status, ("link", "</b.css>"))
        answering.respond(200)

    way.on("x", script)
    answer = way.ask()
    assert (answer.interim, answer.status, answer.body) == ([status, status], 200, b"ok")


def test_W6_100_is_sent_when_it_is_waited_for(way):
    def script(answering):
        answering.interim(100)
        if answering.is_1:
            answering.exchange.read_body()
        else:
            answering.exchange.wait_for_body()
        answering.respond(200)

    way.on("x", script, early=True)
    answer = way.ask("POST", "x", ("Expect", "100-continue"), body=b"hello")
    assert answer.interim == [100] and answer.status == 200
    assert way.request().body == b"hello"


def test_HEAD_has_the_fields_and_no_content(way):
    way.on("x", lambda answering: answering.respond(200, ("x-a", "1"), body=b"a" * 1234))
    answer = way.ask("HEAD")
    assert (answer.status, answer.get("content-length"), answer.get("x-a"), answer.length) == (200, "1234", "1", 0)
    assert way.request().method == "HEAD"


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_content_has_none(way, status):
    way.on("x", lambda answering: answering.respond(status, ("etag", '"a"'), body=None))
    answer = way.ask()
    assert (answer.status, answer.length, answer.get("etag")) == (status, 0, '"a"')


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH", "PUT", "OPTIONS"])
def test_W4_any_method_may_bring_content(way, method):
    way.ask(method, "x", body=b"hello")
    assert (way.request().method, way.request().body) == (method, b"hello")


def test_an_early_answer_comes_although_the_request_is_not_over(way):
    way.on("x", lambda answering: (answering.respond(413, body=b"too much"), answering.is_1 and answering.exchange.close()),
           early=True)
    if way.client == 1:
        from harness.client import Connection, request
        with Connection(way.proxy.port) as connection:
            connection.send(request("POST", way.path(), "Content-Length: 1000000") + b"part")
            assert connection.read_response().body == b"too much"
        return
    from harness import http2
    with http2.Client(way.proxy.port) as client:
        stream = client.begin("POST", way.path(), ("content-length", "1000000"))
        client.send(stream, b"part")
        half = client.answer(stream)
        assert (half.status, half.body) == (413, b"too much")
        # The stream's place is free again, and the connection in order.
        client.wait(lambda: half.reset == 0, "RST_STREAM with NO_ERROR")
        assert client.ask("GET", way.path("y")).status == 200


def test_an_answer_that_breaks_off_is_not_taken_for_whole(way):
    def script(answering):
        if answering.is_1:
            answering.exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n")
        else:
            answering.exchange.head(200)
            answering.exchange.send(b"part")
        gate.wait()
        answering.break_off()

    from harness.origin import Gate
    gate = Gate()
    way.on("breaks", script)
    if way.client == 1:
        from harness.client import Connection, request
        with Connection(way.proxy.port) as connection:
            connection.send(request("GET", way.path("breaks")))
            head = connection.read_head()
            assert head.status == 200 and connection.stream.take(9) == b"4\r\npart\r\n"
            gate.open()
            assert b"0\r\n\r\n" not in connection.stream.take_rest()
    else:
        from harness import http2
        with http2.Client(way.proxy.port) as client:
            stream = client.begin("GET", way.path("breaks"), end=True)
            client.head(stream)
            client.wait(lambda: client.half(stream).body == b"part", "the part")
            gate.open()
            half = client.end(stream)
            assert not half.is_over and half.reset not in (None, 0)
            assert client.ask("GET", way.path("y")).status == 200
    index = way.proxy.access_of(way.path("breaks"), -1 % 1)
    assert index["failure"] in ("upstream_reset", "upstream_protocol")


def test_W12_content_is_passed_on_as_it_comes(way):
    from harness import http2
    from harness.client import Connection, request
    from harness.origin import Gate
    gate = Gate()

    def script(answering):
        if answering.is_1:
            answering.exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                    b"Transfer-Encoding: chunked\r\n\r\n")
            gate.wait()
            answering.exchange.send(b"4\r\none\n\r\n0\r\n\r\n")
        else:
            answering.exchange.head(200, ("content-type", "text/event-stream"))
            gate.wait()
            answering.exchange.send(b"one\n", end=True)

    way.on("events", script)
    if way.client == 1:
        with Connection(way.proxy.port) as connection:
            connection.send(request("GET", way.path("events")))
            head = connection.read_head()
            gate.open()
            connection.read_body(head)
            assert head.body == b"one\n"
    else:
        with http2.Client(way.proxy.port) as client:
            stream = client.begin("GET", way.path("events"), end=True)
            assert client.head(stream).status == 200
            gate.open()
            assert client.answer(stream).body == b"one\n"


def test_300_fields_of_an_origin_are_too_many_and_100_are_not(way):
    way.on("x", lambda answering: answering.respond(200, *[(f"x-{number}", "v") for number in range(100)]))
    assert way.ask().get("x-99") == "v"


def test_a_large_field_passes(way):
    value = "v" * 20_000
    way.on("x", lambda answering: answering.respond(200, ("x-large", value)))
    assert way.ask("GET", "x", ("X-Large", value)).get("x-large") == value
    assert way.request().get("x-large") == value
