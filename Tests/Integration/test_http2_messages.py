"""RFC 9113, section 8: a message over HTTP/2 that is none is refused alone, and the log says whose it was (W3, W10)."""

import pytest

from conftest import running_proxy
from harness.client import request
from harness.http2 import Client, frame
from harness.origin import Gate, wait_until
from translation import LISTENER, ROUTES, second

PROTOCOL, INTERNAL, CANCEL = 1, 2, 8
FIVE = ("content-length", "5")
OK = (":status", "200")
AGAIN = [OK]


@pytest.fixture(scope="module")
def module_proxy(module_origin, module_second, key_file):
    with running_proxy([module_origin], key_file, listener=LISTENER, routes=ROUTES,
                       extra=second(module_second.port)) as proxy:
        yield proxy


@pytest.fixture
def client(proxy):
    with Client(proxy.port) as client:
        yield client


def together(peer, stream: int, *parts):
    """Heads (lists), content (bytes), trailers (tuples) and the end (`None`), all in one piece of the connection."""
    with peer.changed:
        for part in parts:
            if part is None:
                peer.h2.end_stream(stream)
            elif isinstance(part, bytes):
                peer.h2.send_data(stream, part)
            elif part == AGAIN:
                # The library makes no second head.
                peer.flush()
                peer.send_raw(frame(1, 4, stream, peer.h2.encoder.encode(part)))
            else:
                peer.h2.send_headers(stream, part, end_stream=isinstance(part, tuple))
        peer.flush()


def code_for(exchange, parts) -> int | None:
    """The code of the reset; to a server that ended its stream the library says nothing of it."""
    return PROTOCOL if parts[-1] is None or isinstance(parts[-1], tuple) else exchange.wait_for_reset()


# What a server sends


NONE_AT_ALL = {
    "connection": [[OK, ("connection", "close")]], "capital": [[OK, ("Upper", "1")]],
    "line-break": [[OK, ("x", "a\nb: c")]], "no-status": [[("x", "1")]], "letters": [[(":status", "2xx")]],
    "101": [[(":status", "101")]], "two-lengths": [[OK, FIVE, FIVE], b"12345", None],
    "length-of-204": [[(":status", "204"), FIVE], None], "content-of-304": [[(":status", "304")], b"1"],
    "no-content": [[OK, FIVE], None], "content-before-the-head": [b"1"]}


@pytest.mark.parametrize("kind", NONE_AT_ALL)
def test_W10_a_malformed_head_is_a_502_for_its_protocol_and_is_not_asked_for_again(proxy, client, behind, kind):
    codes, path = [], f"/2/{kind}"
    hints = [[(":status", "103")]] if kind == "content-before-the-head" else []

    def script(exchange):
        together(exchange.peer, exchange.stream, *hints, *NONE_AT_ALL[kind])
        codes.append(code_for(exchange, NONE_AT_ALL[kind]))

    behind.on(path, script)
    answer = client.ask("GET", path)
    assert (answer.status, answer.code) == (502, "upstream_protocol")
    record = proxy.access_of(path)
    assert (record["failure"], record["status"]) == ("upstream_protocol", 502)
    wait_until(lambda: codes, "the origin's stream is reset")
    assert codes == [PROTOCOL] and behind.targets() == [path]
    assert client.ask("GET", "/2/next").status == 200
    first, then = behind.requests
    assert first.connection == then.connection


def test_W10_an_end_without_a_head_is_one_of_these(proxy, behind):
    """Seen as the close of a kept connection, it would be asked for again."""
    behind.on("/2/hints", lambda exchange: together(exchange.peer, exchange.stream, [(":status", "103")], None))
    with proxy.connect() as connection:
        answer = connection.ask(request("GET", "/2/hints"))
    assert (answer.status, answer.json()["code"]) == (502, "upstream_protocol")
    assert proxy.access_of("/2/hints")["failure"] == "upstream_protocol" and behind.targets() == ["/2/hints"]


REST = {"more": [b"3456"], "more-and-the-end": [b"3456", None], "less": [None], "less-and-trailers": [(("x", "1"),)],
        "another-head": [AGAIN]}


@pytest.mark.parametrize("rest", REST)
@pytest.mark.parametrize("version", [1, 2])
def test_W10_an_answer_of_another_length_than_it_says_is_cut_off(proxy, behind, version, rest):
    codes, gate, path = [], Gate(), f"/2/{rest}-{version}"

    def script(exchange):
        together(exchange.peer, exchange.stream, [OK, FIVE], b"12")
        assert gate.wait()
        together(exchange.peer, exchange.stream, *REST[rest])
        codes.append(code_for(exchange, REST[rest]))

    behind.on(path, script)
    if version == 2:
        with Client(proxy.port) as client:
            half = client.head(client.begin("GET", path, end=True))
            client.wait(lambda: half.body == b"12", "a part of the content")
            gate.open()
            client.end(half.stream)
            assert (half.status, half.body, half.is_over, half.reset) == (200, b"12", False, INTERNAL)
    else:
        with proxy.connect() as connection:
            connection.send(request("GET", path))
            data = b""
            while not data.endswith(b"\r\n\r\n12"):
                piece = connection.socket.recv(4096)
                assert piece, f"{data} and the end"
                data += piece
            gate.open()
            try:
                assert connection.socket.recv(4096) == b""
            except ConnectionResetError:
                pass
    record = proxy.access_of(path)
    assert (record["failure"], record["status"]) == ("upstream_protocol", 200)
    wait_until(lambda: codes, "the origin's stream is reset")
    assert codes == [PROTOCOL] and behind.targets() == [path]


# What a client sends


def head(path: str, *fields):
    return [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "api.example.com"), *fields]


@pytest.mark.parametrize("to", [1, 2])
@pytest.mark.parametrize("kind, content", [("more", [b"123456"]), ("more-and-the-end", [b"123456", None]),
                                           ("more-in-two", [b"12345", b"6"]), ("less", [b"1234", None]),
                                           ("none", [None])])
def test_W3_content_that_comes_with_its_head_and_is_not_as_long_as_it_says(proxy, client, origin, behind, to, kind,
                                                                           content):
    path = f"/{to}/at-once-{kind}"
    stream = client.h2.get_next_available_stream_id()
    together(client, stream, head(path, FIVE), *content)
    half = client.end(stream)
    assert (half.reset, half.has_head) == (PROTOCOL, False)
    record = proxy.access_of(path)
    assert (record["failure"], record["status"], record["method"]) == ("malformed", 400, "POST")
    assert client.ask("GET", f"/{to}/next").status == 200
    assert (origin if to == 1 else behind).targets() == [f"/{to}/next"]


@pytest.mark.parametrize("to", [1, 2])
@pytest.mark.parametrize("kind, first, rest", [
    ("more", b"12", [b"3456"]), ("more-and-the-end", b"12", [b"3456", None]), ("less", b"12", [None]),
    ("less-and-trailers", b"12", [(("x", "1"),)]), ("excess", b"12345", [b"6"]),
    ("excess-and-the-end", b"12345", [b"6", None])])
def test_W3_content_that_turns_out_not_to_be_as_long_as_it_says(proxy, client, origin, behind, to, kind, first, rest):
    path, arrived, ends = f"/{to}/later-{kind}", Gate(), []

    def script(exchange):
        arrived.open()
        if to == 1:
            exchange.peer_closed()
            ends.append(None)
            exchange.close()
        else:
            ends.append(exchange.wait_for_reset())

    (origin if to == 1 else behind).on(path, script, early=True)
    stream = client.h2.get_next_available_stream_id()
    together(client, stream, head(path, FIVE), first)
    assert arrived.wait()
    if kind.startswith("excess"):
        # The whole of what was announced is on its way to the origin by now, and only an answer is missing.
        client.ping()
    together(client, stream, *rest)
    half = client.end(stream)
    assert (half.reset, half.has_head) == (PROTOCOL, False)
    record = proxy.access_of(path)
    assert (record["failure"], record["status"]) == ("malformed", 400)
    wait_until(lambda: ends, "the origin hears of it")
    assert ends == [None if to == 1 else CANCEL]
    assert client.ask("GET", f"/{to}/next").status == 200


def test_W3_an_upload_that_was_answered_may_end_in_any_way(proxy, client, mint):
    """Nobody counts what nobody reads: a client that stops in the middle broke no rule by then."""
    stream = client.begin("POST", "/enforced/refused", ("content-length", "100"))
    assert client.answer(stream).status == 401
    client.send_trailers(stream, [("x", "1")])
    client.ping()
    assert client.half(stream).reset in (None, 0) and client.goaways == []
    assert proxy.access_of("/enforced/refused").get("failure") is None
    assert client.ask("GET", "/enforced/next", token=mint()).status == 200
