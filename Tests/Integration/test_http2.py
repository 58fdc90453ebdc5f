"""HTTP/2 on listeners and upstreams: one policy, one vocabulary, no side door (pitfalls H1, H5, W3, W5, W9, O2, O3)."""

import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
from types import SimpleNamespace

import h2.connection
import h2.errors
import h2.settings
import httpx
import pytest

from conftest import running_proxy
from harness import http2, tokens
from harness.client import HOST, request
from harness.http2 import Client, frame
from harness.origin import Gate, wait_until
from harness.proxy import ROUTES as STANDARD_ROUTES
from harness.proxy import free_port
from harness.replay import limited
from judging import assert_judged, assert_rejected
from translation import LISTENER, ROUTES, second

NO_ERROR, PROTOCOL, INTERNAL, REFUSED, CANCEL = 0, 1, 2, 7, 8
WINDOW = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE
STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS


@pytest.fixture(scope="module")
def module_proxy(module_origin, module_second, key_file):
    with running_proxy([module_origin], key_file, listener=LISTENER, routes=ROUTES,
                       extra=second(module_second.port)) as proxy:
        yield proxy


@pytest.fixture
def client(proxy):
    with Client(proxy.port) as client:
        yield client


@pytest.fixture
def new_second():
    """Makes HTTP/2 origins of the test's own."""
    made = []

    def make(**options) -> http2.Origin:
        made.append(http2.Origin(**options))
        return made[-1]

    yield make
    for origin in made:
        origin.stop()


@pytest.fixture
def before(start, origin, new_second):
    """Starts a proxy of the test's own before an HTTP/2 origin: `before(listener=…, upstream_2=…)`."""

    def begin(settings=None, *, limits: str = "", upstream_2: str = "", second_origin=None, **parts):
        behind = second_origin or new_second(settings=settings)
        listener = LISTENER + (f"\nlimits = {{ {limits} }}" if limits else "")
        extra = parts.pop("extra", "")
        return start(origin, listener=listener, routes=ROUTES, extra=second(behind.port, upstream_2) + extra,
                     **parts), behind

    return begin


class AsHTTP2:
    """The proxy as `judging` knows it, asked over HTTP/2."""

    def __init__(self, port: int):
        self.port = port

    def ask(self, method: str, path: str, *lines: str, token: str | None = None):
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
        with Client(self.port) as client:
            return client.ask(method, path, *[(name.lower(), value) for name, value in fields], token=token)


# Policy


def test_a_good_token_passes_and_the_origin_learns_who_called(proxy, origin, mint):
    assert_judged(AsHTTP2(proxy.port), origin, mint(), "verified")
    assert origin.last().get("x-appcheck-app") == "ios"
    assert origin.last().get("x-firebase-appcheck") is None


def test_a_missing_token_is_refused(client, origin):
    assert_rejected(client.ask("GET", "/enforced/x"), "token_missing")
    assert origin.requests == []


@pytest.mark.parametrize("change, verdict, reason", [
    ({"claims": {"exp": 1000, "iat": 900}}, "invalid", "expired"),
    ({"claims": {"iss": "https://evil.test/"}}, "invalid", "issuer"),
    ({"drop": ("aud",)}, "invalid", "audience"),
    ({"signature": b"a" * 256}, "invalid", "signature"),
    ({"header": {"alg": "none"}}, "invalid", "algorithm")],
    ids=["expired", "issuer", "audience", "signature", "algorithm"])
def test_a_bad_token_is_refused_for_the_same_reason_as_over_http_1(proxy, origin, mint, change, verdict, reason):
    token = mint(**change)
    assert_judged(AsHTTP2(proxy.port), origin, token, verdict, reason)
    assert_judged(proxy, origin, token, verdict, reason)


def test_T14_the_placeholder_is_told_apart(proxy, origin):
    assert_judged(AsHTTP2(proxy.port), origin, tokens.PLACEHOLDER, "attestation_failed")


def test_T8_an_app_that_may_not_call_this_route_is_a_403(client, mint):
    assert_rejected(client.ask("GET", "/ios/x", token=mint(claims={"sub": tokens.ANDROID})), "app_not_allowed", 403)


@pytest.mark.parametrize("values", [
    lambda a, b: [a, b], lambda a, b: [a, a], lambda a, b: [a, ""], lambda a, b: [f"{a}, {b}"], lambda a, b: [f"{a},"]],
    ids=["two", "same-twice", "one-empty", "comma", "trailing-comma"])
def test_H1_two_tokens_are_no_token(proxy, client, origin, mint, values):
    fields = [("x-firebase-appcheck", value) for value in values(mint(), mint())]
    assert_rejected(client.ask("GET", "/enforced/x", *fields), "token_invalid")
    assert client.ask("GET", "/monitored/x", *fields).status == 200
    assert origin.last().get("x-appcheck-verdict") == "invalid"
    assert origin.last().get("x-firebase-appcheck") is None


@pytest.mark.parametrize("name", ["x_firebase_appcheck", "x-firebase_appcheck"])
def test_H2_an_underscore_spelling_is_not_read_and_not_passed_on(client, origin, mint, name):
    token = mint()
    assert_rejected(client.ask("GET", "/enforced/x", (name, token)), "token_missing")
    assert client.ask("GET", "/monitored/x", (name, token)).status == 200
    assert token not in origin.last().head.decode()


def test_H3_our_fields_cannot_be_forged(client, origin, behind):
    forged = [("x-appcheck-verdict", "forged"), ("x_appcheck_app", "forged"), ("x-appcheck_action", "forged")]
    for path, seen_by in (("/1/x", origin), ("/2/x", behind)):
        assert client.ask("GET", path, *forged).status == 200
        assert seen_by.last().get("x-appcheck-verdict") == "exempt" and b"forged" not in seen_by.last().head


def test_H5_a_token_in_the_url_is_refused_and_redacted(proxy, client, mint):
    token = mint()
    assert_rejected(client.ask("GET", f"/enforced/x?token={token}"), "token_in_url", 400)
    wait_until(lambda: any("/enforced/x?" in record.get("target", "") for record in proxy.access()), "the log line")
    assert token not in proxy.output()


def test_H5_a_token_elsewhere_does_not_count(client, mint):
    token = mint()
    assert_rejected(client.ask("GET", "/enforced/x", ("cookie", f"x-firebase-appcheck={token}")), "token_missing")
    stream = client.begin("POST", "/enforced/x")
    client.send(stream, b"hello")
    client.send_trailers(stream, [("x-firebase-appcheck", token)])
    assert_rejected(client.answer(stream), "token_missing")


def test_C1_a_preflight_is_answered_and_a_plain_options_is_not_exempt(client, origin):
    asked = [("origin", "https://app.example.com"), ("access-control-request-method", "POST")]
    answer = client.ask("OPTIONS", "/browser/x", *asked)
    assert answer.status == 204 and answer.body == b""
    assert answer.get("access-control-allow-origin") == "https://app.example.com"
    assert "x-firebase-appcheck" in answer.get("access-control-allow-headers").lower()
    assert_rejected(client.ask("OPTIONS", "/browser/x", asked[0]), "token_missing")
    assert_rejected(client.ask("OPTIONS", "/browser/x", *asked, body=b"a"), "token_missing")
    assert origin.requests == []


def test_C2_a_rejection_can_be_read_by_the_page(client):
    answer = client.ask("GET", "/browser/x", ("origin", "https://app.example.com"))
    assert_rejected(answer, "token_missing")
    assert answer.get("access-control-allow-origin") == "https://app.example.com"
    assert "Origin" in answer.get("vary")


def test_R1_one_token_passes_once_over_both_versions(proxy, behind, keys):
    token = limited(keys.first)
    statuses, gate = [], threading.Barrier(20)

    def ask(number: int):
        gate.wait()
        if number % 2:
            statuses.append(proxy.ask("GET", "/once/x", token=token).status)
        else:
            with Client(proxy.port) as client:
                statuses.append(client.ask("GET", "/once/x", token=token).status)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [401] * 19
    assert behind.targets() == ["/once/x"]


# Authority


def test_P5_authority_and_host_that_differ_are_refused(client, origin):
    half = client.end(client.begin("GET", "/1/x", ("host", "other.test"), end=True))
    assert half.reset == PROTOCOL and origin.requests == []
    assert client.ask("GET", "/1/y", ("host", HOST)).status == 200
    assert origin.targets() == ["/1/y"]


@pytest.mark.parametrize("authority, seen", [
    ("EXAMPLE.com", "example.com"), ("example.com.", "example.com"), ("example.com:8080", "example.com:8080"),
    ("[::1]:80", "[::1]:80")])
def test_P5_an_authority_has_one_form(client, proxy, origin, authority, seen):
    assert client.ask("GET", "/1/x", authority=authority).status == 200
    over_2 = origin.last().get("host")
    assert proxy.ask("GET", "/1/x", host=authority).status == 200
    assert over_2 == origin.last().get("host")
    assert over_2.split(":")[0] == seen.split(":")[0]


@pytest.mark.parametrize("authority", ["a@b", "a/b", "a b", "a,b", "", "a:b", "[::1", "a:99999"])
def test_W3_an_authority_that_is_none_is_refused(client, origin, authority):
    half = client.end(client.begin("GET", "/1/x", authority=authority, end=True))
    assert half.status == 400 or half.reset == PROTOCOL
    assert origin.requests == []


def test_host_alone_is_an_authority(client, origin):
    assert client.ask("GET", "/1/x", ("host", "only.test"), authority=None).status == 200
    assert origin.last().get("host") == "only.test"


def test_a_request_without_any_authority_is_refused(client, origin):
    half = client.end(client.begin("GET", "/1/x", authority=None, end=True))
    assert half.status == 400 or half.reset == PROTOCOL
    assert origin.requests == []


@pytest.mark.parametrize("fields", [
    [(":path", "/1/a b")], [(":path", "/1/a\tb")], [(":path", "/1/\r\nx: y")], [(":path", "")], [(":path", "1")],
    [(":path", "http://a.test/1/x")], [(":method", "GE T")], [(":method", "")], [("Upper", "1")],
    [("connection", "close")], [("transfer-encoding", "chunked")], [("upgrade", "websocket")],
    [("keep-alive", "1")], [("proxy-connection", "close")], [("te", "gzip")], [("x", "a\r\nb: c")], [("x", "a\0")],
    [("x y", "1")], [(":late", "1")], [(":path", "/1/x"), (":path", "/1/y")], [("content-length", "a")],
    [("content-length", "5"), ("content-length", "6")], [("content-length", "5")], [("content-length", "+0")]],
    ids=lambda fields: f"{fields[-1][0]}={fields[-1][1]!r}")
def test_W3_what_cannot_be_translated_safely_is_refused(proxy, client, origin, fields):
    replaced = {name for name, _ in fields if name.startswith(":")}
    lines = [(name, value) for name, value in [(":method", "GET"), (":scheme", "http"), (":authority", HOST), (":path", "/1/x")]
             if name not in replaced]
    half = client.end(client.begin_raw(lines + fields))
    assert half.reset == PROTOCOL or half.status == 400, (half.reset, half.status)
    # The connection is in order, and nothing reached the origin.
    assert client.ask("GET", "/1/marker").status == 200
    assert origin.targets() == ["/1/marker"]


def test_P4_connect_and_trace_are_refused(client, origin):
    half = client.end(client.begin_raw([(":method", "CONNECT"), (":authority", "a.test:443")]))
    assert half.status in (400, 405, 501) or half.reset == PROTOCOL
    assert client.ask("TRACE", "/1/x").status == 405
    assert origin.requests == []


def test_H8_fields_beyond_the_limit_are_a_431(client, origin):
    answer = client.ask("GET", "/1/x", ("x-large", "a" * 40_000))
    assert answer.status == 431
    answer = client.ask("GET", "/1/x", *[(f"x-{number}", "a") for number in range(200)])
    assert answer.status == 431 and origin.requests == []
    assert client.ask("GET", "/1/y").status == 200


# Programs that were not written here


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, timeout=40, **options)


@pytest.mark.parametrize("server", [1, 2])
def test_curl(proxy, origin, behind, mint, tmp_path, server):
    body = tmp_path / "body"
    body.write_bytes(b"a" * 1_000_000)
    enforced = {1: "/enforced/x", 2: "/enforced-2/x"}[server]
    result = run("curl", "-sS", "--http2-prior-knowledge", "-w", "%{http_version} %{http_code}", "-T", body,
                 "-H", f"X-Firebase-AppCheck: {mint()}", f"http://127.0.0.1:{proxy.port}{enforced}")
    assert (result.returncode, result.stdout) == (0, b"ok2 200"), result
    seen = (origin if server == 1 else behind).last()
    assert (seen.method, seen.body_read.length) == ("PUT", 1_000_000)


def test_curl_that_uploads_much_gets_the_refusal(proxy, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b"a" * 10_000_000)
    result = run("curl", "-sS", "--http2-prior-knowledge", "-o", tmp_path / "answer", "-w", "%{http_code}", "-T", body,
                 f"http://127.0.0.1:{proxy.port}/enforced/x")
    assert (result.returncode, result.stdout) == (0, b"401"), result


def test_nghttp(proxy, origin):
    urls = [f"http://127.0.0.1:{proxy.port}/1/{number}" for number in range(20)]
    result = run("nghttp", "-n", "-s", *urls)
    assert result.returncode == 0 and result.stdout.count(b" 200 ") == 20, result
    assert sorted(origin.targets()) == sorted(f"/1/{number}" for number in range(20))


@pytest.mark.parametrize("path", ["/1/x", "/2/x"])
def test_h2load(proxy, path):
    result = run("h2load", "-n", "1000", "-c", "4", "-m", "50", f"http://127.0.0.1:{proxy.port}{path}")
    if b"1000 succeeded, 0 failed, 0 errored" not in result.stdout:
        print(result.stdout.decode(), [record for record in proxy.access() if "failure" in record])
        raise AssertionError("requests failed")


def test_httpx(proxy, mint):
    with httpx.Client(http1=False, http2=True) as client:
        answer = client.post(f"http://127.0.0.1:{proxy.port}/enforced-2/x", content=b"a" * 300_000,
                             headers={"X-Firebase-AppCheck": mint()})
    assert (answer.http_version, answer.status_code, answer.text) == ("HTTP/2", 200, "ok")


# Clients that go, wait, or read slowly


@pytest.mark.parametrize("path", ["/1/reset", "/2/reset"])
def test_a_client_that_resets_in_mid_request_leaves_no_half_of_it(proxy, client, origin, behind, path):
    arrived = Gate()

    def script(exchange):
        arrived.open()
        if path.startswith("/1"):
            exchange.peer_closed()
            exchange.close()
        else:
            codes.append(exchange.wait_for_reset())

    codes = []
    (origin if path.startswith("/1") else behind).on(path, script, early=True)
    stream = client.begin("POST", path, ("content-length", "100"))
    client.send(stream, b"part")
    assert arrived.wait()
    client.reset(stream)
    assert proxy.access_of(path)["failure"] == "client_aborted"
    if path.startswith("/2"):
        wait_until(lambda: codes, "the origin's stream is reset")
        assert codes == [CANCEL]
    assert client.ask("GET", path[:3] + "next").status == 200


@pytest.mark.parametrize("code", [CANCEL, NO_ERROR])
def test_W9_a_client_that_resets_while_it_waits_frees_the_origin(proxy, client, behind, code):
    codes, arrived = [], Gate()
    path = f"/2/waits-{code}"
    behind.on(path, lambda exchange: (arrived.open(), codes.append(exchange.wait_for_reset())))
    stream = client.begin("GET", path, end=True)
    assert arrived.wait()
    client.reset(stream, code)
    wait_until(lambda: codes, "the origin's stream is reset")
    assert codes == [CANCEL] and proxy.access_of(path)["failure"] == "client_aborted"


@pytest.mark.parametrize("limits", ["", 'limits = { connections = 1, queue = 8, queue_timeout = "60s" }'],
                         ids=["for a connection", "in the queue"])
def test_W9_a_request_whose_client_is_gone_before_it_begins_does_not_wait(start, deaf, limits):
    proxy = start(deaf, listener=LISTENER, workers=1, upstream=f'timeouts = {{ connect = "60s" }}\n{limits}')
    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    fields = [(":method", "GET"), (":scheme", "http"), (":path", "/open/x"), (":authority", HOST)]
    connection.send_headers(1, fields, end_stream=True)
    with Client(proxy.port) as client:
        client.begin("GET", "/open/first", end=True)
        # Once a task has served a stream it takes the next one, whoever's that is.
        assert client.ask("GET", "/nowhere").status == 404
        # So that request and end are there together.
        proxy.signal(signal.SIGSTOP)
        with socket.create_connection(("127.0.0.1", proxy.port)) as sock:
            sock.sendall(connection.data_to_send())
        proxy.signal(signal.SIGCONT)
        assert proxy.access_of("/open/x")["failure"] == "client_aborted"


def test_a_client_that_vanishes_frees_the_origin(proxy, behind):
    codes = []
    behind.on("/2/vanishes", lambda exchange: codes.append(exchange.wait_for_reset()))
    client = Client(proxy.port)
    for _ in range(3):
        client.begin("GET", "/2/vanishes", end=True)
    behind.wait(lambda: len(behind.requests) == 3, "three requests")
    client.abort()
    wait_until(lambda: len(codes) == 3, "the origin's streams are reset")
    assert codes == [CANCEL] * 3


def test_W9_an_idle_connection_is_told_and_closed(before):
    proxy, _ = before(limits='idle_timeout = "400ms"')
    with Client(proxy.port) as client:
        assert client.ask("GET", "/1/x").status == 200
        client.wait_closed()
        assert [event.error_code for event in client.goaways] == [0]


def test_W9_a_head_that_does_not_end_is_not_waited_for(before):
    proxy, _ = before(limits='idle_timeout = "30s", header_timeout = "500ms"')
    with Client(proxy.port) as client:
        client.send_raw(frame(1, 0x1, 1, b"\x82"))
        client.wait_closed(8)
    with Client(proxy.port) as client:
        client.send_raw(frame(1, 0x1, 1, b"\x82")[:-1] + b"\x82")
        for _ in range(100):
            try:
                client.send_raw(frame(9, 0, 1, b""))
            except OSError:
                break
            if threading.Event().wait(0.1) or client.is_closed:
                break
        client.wait_closed(3)


def test_W9_a_preface_that_does_not_end_is_not_waited_for(before):
    proxy, _ = before(limits='idle_timeout = "30s", header_timeout = "500ms"')
    with proxy.connect() as connection:
        connection.send(b"PRI * HTTP/2.0\r\n\r\nSM")
        assert connection.is_closed()


def test_W9_a_body_that_does_not_come_is_not_waited_for(before):
    proxy, behind = before(limits='idle_timeout = "500ms"')
    behind.on("/2/stalls", lambda exchange: exchange.wait_for_reset(), early=True)
    with Client(proxy.port) as client:
        stream = client.begin("POST", "/2/stalls", ("content-length", "10"))
        client.send(stream, b"part")
        half = client.end(stream)
        assert half.status == 408 or half.reset is not None
        assert proxy.access_of("/2/stalls")["failure"] == "client_timeout"


def test_W9_an_answer_that_nobody_takes_is_given_up(before):
    proxy, behind = before(limits='idle_timeout = "500ms"')
    behind.on("/2/unread", lambda exchange: exchange.respond(body=b"a" * 10_000))
    with Client(proxy.port, {WINDOW: 0}) as client:
        # A stream that is whole in our memory, and one that is not.
        small = client.begin("GET", "/2/unread", end=True)
        assert client.end(small).reset == CANCEL
        client.wait_closed()


def test_W9_a_connection_that_is_not_read_is_given_up(before):
    proxy, behind = before(limits='idle_timeout = "500ms"')
    behind.on("/2/unread", lambda exchange: exchange.respond(body=b"a" * 50_000_000))
    largest = {WINDOW: 2**31 - 1}
    with Client(proxy.port, largest, receive_buffer=4096, reads=False) as client:
        client.send_raw(frame(8, payload=b"\x7f\xff\x00\x00\x00"[:4]))
        client.begin("GET", "/2/unread", end=True)
        proxy.expect_metric(0, "portcullis_connections", state="active")
        wait_until(lambda: all_gone(proxy), "the connection is closed", within=10)


def all_gone(proxy) -> bool:
    port = f":{proxy.port:04X} "
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()
    return not any(f":{proxy.port:04X}" == line.split()[1][-5:] and line.split()[3] == "01" for line in lines[1:])


def test_W9_a_gigabyte_that_is_not_taken_costs_its_windows(before):
    proxy, behind = before()
    sent = []

    def script(exchange):
        exchange.head(200)
        for _ in range(1024):
            exchange.send(b"a" * (1 << 20))
            sent.append(1)

    behind.on("/2/much", script)
    with Client(proxy.port) as warm:
        assert warm.ask("GET", "/2/x").status == 200
        resident = proxy.resident_bytes()
        with Client(proxy.port) as client:
            client.opens_windows = False
            streams = [client.begin("GET", "/2/much", end=True) for _ in range(8)]
            client.wait(lambda: sum(client.half(s).body_read.length for s in streams) == 65_535, "the window is used up")
            # Others are served meanwhile, over the same connection to the origin too.
            for _ in range(20):
                assert warm.ask("GET", "/2/x").status == 200
            threading.Event().wait(0.3)
            grown = proxy.resident_bytes() - resident
            print(f"eight streams of a gigabyte that nobody takes: {grown / 1024:.0f} KiB")
            assert grown < 8 << 20
            assert len(sent) < 16
    wait_until(lambda: not behind.errors, "no errors")


def test_W9_a_slow_reader_gets_everything(proxy, behind):
    behind.on("/2/slow", lambda exchange: exchange.respond(body=b"a" * 3_000_000))
    with Client(proxy.port, {WINDOW: 20_000}) as client:
        assert client.ask("GET", "/2/slow").body_read.length == 3_000_000


def test_no_more_streams_than_announced(before):
    proxy, behind = before()
    gate = Gate()
    behind.on("/2/held", lambda exchange: (gate.wait(), exchange.respond()))
    with Client(proxy.port) as client:
        client.ping()
        most = client.h2.remote_settings.max_concurrent_streams
        assert 100 <= most <= 1000
        streams = [client.begin("GET", "/2/held", end=True) for _ in range(most)]
        behind.wait(lambda: len(behind.requests) == most, "all of them are asked")
        client.h2.remote_settings[STREAMS] = 10_000
        client.h2.remote_settings.acknowledge()
        more = client.begin("GET", "/2/held", end=True)
        half = client.end(more)
        assert half.reset == REFUSED or client.is_closed
        gate.open()
        if not client.is_closed:
            for stream in streams:
                assert client.answer(stream).status == 200


def test_five_hundred_requests_in_flight_share_connections_to_the_origin(before):
    proxy, behind = before()
    with Client(proxy.port) as one, Client(proxy.port) as two:
        for _ in range(5):
            pairs = [(client, client.begin("GET", "/2/x", end=True)) for client in (one, two) for _ in range(50)]
            for client, stream in pairs:
                assert client.answer(stream).status == 200
    # One for each loop that was asked.
    assert behind.connections <= 4


# Origins that refuse, go, or are slow


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refused_stream_without_a_body_is_sent_again(proxy, client, behind, method):
    refused = []

    def script(exchange):
        if not refused:
            refused.append(exchange.stream)
            return exchange.reset(REFUSED)
        exchange.respond()

    behind.on("/2/refused", script)
    assert client.ask(method, "/2/refused").status == 200
    assert behind.targets() == ["/2/refused"] * 2
    assert proxy.ask("GET", "/2/x").status == 200


def test_a_refused_stream_with_a_body_is_not_sent_again_and_the_token_is_as_good_as_before(proxy, client, behind, keys):
    behind.on("/once/refused", lambda exchange: exchange.reset(REFUSED))
    token = limited(keys.first)
    answer = client.ask("POST", "/once/refused", body=b"hello", token=token)
    assert (answer.status, answer.code, answer.json()["token"]) == (502, "upstream_reset", "unspent")
    assert behind.targets() == ["/once/refused"]
    assert proxy.ask("POST", "/once/y", token=token).status == 200


def test_an_origin_that_always_refuses_is_not_asked_for_ever(client, behind):
    behind.on("/2/refused", lambda exchange: exchange.reset(REFUSED))
    answer = client.ask("GET", "/2/refused")
    assert (answer.status, answer.code) == (502, "upstream_reset")
    assert 2 <= len(behind.requests) <= 4


@pytest.mark.parametrize("code", [CANCEL, PROTOCOL, INTERNAL])
def test_any_other_reset_is_a_502_and_is_not_sent_again(proxy, client, behind, keys, code):
    behind.on("/once/reset", lambda exchange: exchange.reset(code))
    token = limited(keys.first)
    answer = client.ask("GET", "/once/reset", token=token)
    assert (answer.status, answer.code, answer.json()["token"]) == (502, "upstream_reset", "spent")
    assert behind.targets() == ["/once/reset"]
    assert proxy.access_of("/once/reset")["failure"] == "upstream_reset"


BROKEN = {"data-on-no-stream": frame(0, payload=b"abc"), "settings-of-five-bytes": frame(4, payload=b"\0\4\0\0\0"),
          "ping-of-seven-bytes": frame(6, payload=b"1234567"), "no-increment": frame(8, payload=b"\0\0\0\0"),
          "reset-of-nobody": frame(3, stream=0x7FFFFFF1, payload=b"\0\0\0\x08"),
          "continuation-of-nothing": frame(9, 4, stream=1, payload=b"\0")}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_an_origin_that_breaks_the_framing_fails_its_requests_at_once_and_is_left(before, broken):
    proxy, behind = before(workers=1)
    behind.on("/2/broken", lambda exchange: exchange.peer.send_raw(broken))
    with Client(proxy.port) as client:
        began = time.monotonic()
        answer = client.ask("GET", "/2/broken")
        assert answer.status == 502 and time.monotonic() - began < 5
        behind.wait(lambda: behind.peers[0].is_closed, "the connection is closed")
        assert client.ask("GET", "/2/y").status == 200
    assert [request.connection for request in behind.requests] == [1, 2]
    assert proxy.access_of("/2/broken")["failure"] == "upstream_reset"


def test_what_goaway_left_out_goes_to_another_connection(before):
    proxy, behind = before(workers=1)
    first = []

    def script(exchange):
        if not first:
            first.append(exchange)
            return exchange.goaway(exchange.stream - 2 if exchange.stream > 1 else 0)
        exchange.respond()

    behind.on("/2/goaway", script)
    with Client(proxy.port) as client:
        assert client.ask("GET", "/2/goaway").status == 200
    assert [request.connection for request in behind.requests] == [1, 2]


def test_what_goaway_takes_in_is_answered_and_what_follows_goes_elsewhere(before):
    proxy, behind = before(workers=1)
    gate = Gate()

    def script(exchange):
        exchange.goaway(exchange.stream)
        gate.wait()
        exchange.respond()

    behind.on("/2/goaway", script)
    with Client(proxy.port) as client:
        stream = client.begin("GET", "/2/goaway", end=True)
        behind.wait(lambda: behind.requests, "the request")
        wait_until(lambda: client.ask("GET", "/2/y").status == 200 and behind.last().connection == 2,
                   "a second connection")
        gate.open()
        assert client.answer(stream).status == 200


def test_an_origin_that_closes_in_mid_answer_is_not_taken_for_done(before):
    proxy, behind = before()
    gate = Gate()

    def script(exchange):
        exchange.head(200)
        exchange.send(b"part")
        gate.wait()
        exchange.peer.close()

    behind.on("/2/closes", script)
    with Client(proxy.port) as client:
        stream = client.begin("GET", "/2/closes", end=True)
        client.wait(lambda: client.half(stream).body == b"part", "the part")
        gate.open()
        half = client.end(stream)
        assert half.reset is not None and not half.is_over
        assert client.ask("GET", "/2/y").status == 200


def test_an_origin_that_closes_idle_connections_is_asked_on_new_ones(before):
    proxy, behind = before(workers=1)
    with Client(proxy.port) as client:
        for number in range(1, 6):
            assert client.ask("POST", "/2/x", body=b"hello").status == 200
            assert behind.last().connection == number
            behind.close_connections()
            wait_until(lambda: all(peer.is_closed for peer in behind.peers), "the connection is gone")


def test_an_origin_that_is_down_is_a_502_and_comes_back(before, new_second):
    port = free_port()

    class Down:
        pass

    Down.port = port
    proxy, _ = before(second_origin=Down)
    with Client(proxy.port) as client:
        answer = client.ask("GET", "/2/x")
        assert (answer.status, answer.code) == (502, "upstream_unreachable")
        new_second(port=port)
        wait_until(lambda: client.ask("GET", "/2/x").status == 200, "the origin is used")


def test_an_origin_that_speaks_http_1_is_a_502(before, origin):
    proxy, _ = before(second_origin=origin)
    with Client(proxy.port) as client:
        answer = client.ask("GET", "/2/x")
        assert answer.status == 502
        assert client.ask("GET", "/1/x").status == 200
    origin.forget()


def test_an_origin_that_does_not_answer_is_a_504(before):
    proxy, behind = before(upstream_2='timeouts = { response_header = "400ms" }')
    behind.on("/2/silent", lambda exchange: exchange.wait_for_reset())
    with Client(proxy.port) as client:
        answer = client.ask("GET", "/2/silent")
        assert (answer.status, answer.code) == (504, "upstream_timeout")
        assert client.ask("GET", "/2/y").status == 200
    assert behind.connections == 1


def test_an_origin_that_went_without_a_word_is_left(before):
    proxy, behind = before(upstream_2='timeouts = { connect = "300ms", response_header = "1500ms" }', workers=1)
    held = threading.Event()

    def script(exchange):
        # The whole process hangs: its thread reads nothing more.
        exchange.peer.changed.acquire()
        held.wait(20)
        exchange.peer.changed.release()

    behind.on("/2/hangs", script)
    with Client(proxy.port) as client:
        assert client.ask("GET", "/2/hangs").status == 504
        wait_until(lambda: client.ask("GET", "/2/y").status == 200 and behind.last().connection == 2,
                   "another connection")
    held.set()


def test_the_origins_limit_of_streams_is_kept(before):
    proxy, behind = before(settings={STREAMS: 3}, workers=1)
    gate, most, now = Gate(), [0], [0]

    def script(exchange):
        with behind.changed:
            peers = [request.connection for request in behind.requests]
        gate.wait()
        exchange.respond()

    behind.on("/2/held", script)
    with Client(proxy.port) as client:
        assert client.ask("GET", "/2/x").status == 200
        streams = [client.begin("GET", "/2/held", end=True) for _ in range(10)]
        behind.wait(lambda: len(behind.requests) == 11, "all are asked")
        held = [request.connection for request in behind.requests[1:]]
        assert max(held.count(number) for number in set(held)) <= 3
        gate.open()
        for stream in streams:
            assert client.answer(stream).status == 200


@pytest.mark.parametrize("method, status", [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_without_content_may_be_ended_by_a_frame_of_its_own(before, method, status):
    """The stream is its server's to end, and no other request goes over it meanwhile."""
    proxy, behind = before(settings={STREAMS: 1}, workers=1)
    gate = Gate()

    def script(exchange):
        exchange.head(status)
        gate.wait()
        exchange.send(end=True)

    behind.on("/2/late", script)
    with Client(proxy.port) as client:
        assert client.ask("GET", "/2/before").status == 200
        stream = client.begin(method, "/2/late", end=True)
        assert client.head(stream).status == status
        assert client.ask("GET", "/2/meanwhile").body == b"ok"
        gate.open()
        client.answer(stream)
        proxy.access_of("/2/late")
        assert client.ask("GET", "/2/behind").status == 200
    assert behind.targets() == ["/2/before", "/2/late", "/2/meanwhile", "/2/behind"]
    assert behind.requests[1].reset is None


def test_a_stalled_stream_does_not_hold_up_the_others_of_its_connection(before):
    proxy, behind = before(workers=1)
    behind.on("/2/much", lambda exchange: exchange.respond(body=b"a" * 10_000_000))
    with Client(proxy.port) as slow, Client(proxy.port) as quick:
        slow.opens_windows = False
        for _ in range(20):
            slow.begin("GET", "/2/much", end=True)
        slow.wait(lambda: sum(half.body_read.length for half in slow.halves.values()) >= 65_535, "it stalls")
        assert quick.ask("GET", "/2/much").body_read.length == 10_000_000


# The proxy's own end


def test_O3_sigterm_says_goaway_drains_and_exits_0(before):
    proxy, behind = before()
    gate = Gate()
    behind.on("/2/held", lambda exchange: (gate.wait(), exchange.respond()))
    with Client(proxy.port) as client, Client(proxy.port) as idle:
        stream = client.begin("GET", "/2/held", end=True)
        behind.wait(lambda: behind.requests, "the request")
        idle.ping()
        proxy.signal(signal.SIGTERM)
        client.wait(lambda: client.goaways, "GOAWAY")
        assert client.goaways[0].error_code == 0 and client.goaways[0].last_stream_id >= stream
        idle.wait_closed()
        gate.open()
        assert client.answer(stream).status == 200
        client.wait_closed()
    assert proxy.wait_for_exit() == 0


def test_O2_a_reload_leaves_live_streams_alone(before):
    proxy, behind = before()
    gate = Gate()

    def script(exchange):
        exchange.head(200)
        exchange.send(b"one")
        gate.wait()
        exchange.send(b"two", end=True)

    behind.on("/2/live", script)
    with Client(proxy.port) as client:
        stream = client.begin("GET", "/2/live", end=True)
        client.wait(lambda: client.half(stream).body == b"one", "the first part")
        # The upstream itself goes, and a route changes.
        config = proxy.config_path.read_text()
        port = f"127.0.0.1:{behind.port}"
        other = http2.Origin()
        proxy.config_path.write_text(config.replace(port, f"127.0.0.1:{other.port}"))
        proxy.signal(signal.SIGHUP)
        wait_until(lambda: client.ask("GET", "/2/x").status == 200 and other.requests, "the new origin is used")
        gate.open()
        assert client.answer(stream).body == b"onetwo"
        other.stop()


def test_O2_connections_outlive_the_settings_that_they_were_opened_under(before):
    proxy, behind = before(workers=1)
    with Client(proxy.port) as client:
        assert client.ask("GET", "/2/x").status == 200
        config = proxy.config_path.read_text()
        for number in (1, 2):
            changed = f'protocol = "h2c"\ntimeouts = {{ idle = "{number}m" }}'
            proxy.config_path.write_text(config.replace('protocol = "h2c"', changed))
            proxy.signal(signal.SIGHUP)
            wait_until(lambda: proxy.output().count("configuration reloaded") >= number, "the reload")
            assert client.ask("GET", "/2/x").status == 200
        behind.close_connections()
        wait_until(lambda: all(peer.is_closed for peer in behind.peers), "the connections are gone")
        assert client.ask("GET", "/2/x").status == 200


def test_a_listener_without_h2_does_not_speak_it(start, origin):
    proxy = start(origin)
    with proxy.connect() as connection:
        connection.send(http2.PREFACE + frame(4))
        statuses = [response.status for response in connection.read_until_closed()]
    assert statuses in ([], [400], [405], [505])


def test_a_listener_with_h2_alone_speaks_nothing_else(start, origin):
    proxy = start(origin, listener='protocols = ["h2"]', routes=STANDARD_ROUTES)
    with proxy.connect() as connection:
        connection.send(request("GET", "/open/x"))
        assert connection.is_closed()
    with Client(proxy.port) as client:
        assert client.ask("GET", "/open/x").status == 200


def test_W7_an_upgrade_to_h2c_is_not_taken(proxy, origin):
    with proxy.connect() as connection:
        response = connection.ask(request("GET", "/1/x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                                          "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"))
        assert response.status == 200
    names = origin.last().names()
    assert "upgrade" not in names and "http2-settings" not in names


# nginx as the backend


NGINX = '''
worker_processes 1; daemon off; master_process off; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 256; }}
http {{
    access_log off; {paths} client_max_body_size 64m; keepalive_requests 20;
    server {{
        listen 127.0.0.1:{port} http2;
        root {folder}/files;
        location /2/to-origin/ {{ proxy_http_version 1.1; proxy_pass http://127.0.0.1:{origin}; }}
    }}
}}
'''


@pytest.fixture
def nginx(origin, tmp_path):
    """nginx, which speaks HTTP/2 with prior knowledge, before files and the origin."""
    if not shutil.which("nginx"):
        pytest.skip("nginx is not installed")
    files = tmp_path / "files" / "2"
    files.mkdir(parents=True)
    (files / "large").write_bytes(b"a" * (10 << 20))
    (files / "small").write_bytes(b"small")
    paths = " ".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in
                     ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    port = free_port()
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, paths=paths, port=port, origin=origin.port))
    process = subprocess.Popen(["nginx", "-c", tmp_path / "nginx.conf"], stderr=subprocess.DEVNULL)
    yield SimpleNamespace(port=port)
    process.terminate()
    process.wait()


@pytest.mark.parametrize("over", [1, 2])
def test_nginx_behind(before, nginx, origin, over):
    proxy, _ = before(second_origin=nginx)

    def ask(method, path, *fields, body=None):
        if over == 1:
            return proxy.ask(method, path, *[f"{name}: {value}" for name, value in fields], body=body)
        lines = fields + ((("content-length", str(len(body))),) if body else ())
        with Client(proxy.port) as client:
            return client.ask(method, path, *lines, body=body)

    wait_until(lambda: ask("GET", "/2/small").status == 200, "nginx answers")
    assert ask("GET", "/2/large").body_read.length == 10 << 20
    head = ask("HEAD", "/2/small")
    assert (head.status, head.get("content-length"), head.body) == (200, "5", b"")
    same = ask("GET", "/2/small", ("if-none-match", head.get("etag")))
    assert (same.status, same.body) == (304, b"")
    assert ask("GET", "/2/none").status == 404
    part = ask("GET", "/2/small", ("range", "bytes=1-2"))
    assert (part.status, part.body) == (206, b"ma")
    assert ask("POST", "/2/to-origin/x", body=b"b" * (10 << 20)).status == 200
    assert origin.last().body_read.length == 10 << 20
    # It ends each connection after twenty requests, with GOAWAY; nobody notices.
    assert [ask("GET", "/2/small").status for _ in range(60)] == [200] * 60
    assert ask("POST", "/2/to-origin/x", body=b"hello").status == 200
