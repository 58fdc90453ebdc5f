"""R: one limited-use token, one request, whatever happens around it."""

import os
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import client, tokens
from harness.client import Connection, request
from harness.origin import Gate, wait_until
from harness.proxy import PROJECTS, free_port
from harness.redis import RedisServer
from harness.replay import ROUNDS, ROUTES, STORES, claims, limited, statuses_of_copies, statuses_of_streams
from judging import assert_rejected, verdict_of

ANY_STORE = pytest.mark.parametrize("store", STORES)


@pytest.fixture(scope="session")
def shared_redis():
    server = RedisServer()
    yield server
    server.close()


@pytest.fixture
def own_redis():
    """A Redis that the test may stop and pause."""
    server = RedisServer()
    yield server
    server.close()


@pytest.fixture
def protect(start, request):
    """Starts a proxy with the routes of harness.replay and a store: `protect("memory", origin, …)`."""

    def begin(store: str, *origins, routes: str = ROUTES, extra: str = "", **parts):
        settings = STORES.get(store, store)
        if "@REDIS@" in settings:
            settings = settings.replace("@REDIS@", str(request.getfixturevalue("shared_redis").port))
        return start(*origins, routes=routes, extra=settings + extra, **parts)

    return begin


def assert_spent(response):
    assert_rejected(response, "token_already_used")


def expect_claims(proxy, expected: dict[str, int]):
    """Waits for these counts: a request is counted when it has ended, which its client may see sooner."""
    try:
        wait_until(lambda: claims(proxy) == expected, "the claims", within=5)
    except AssertionError:
        raise AssertionError(f"{claims(proxy)}, not {expected}") from None


def fate(response) -> str | None:
    """What our own answer says of the request's token."""
    return response.json().get("token")


# One token, one request


@ANY_STORE
def test_R1_a_token_passes_once(protect, origin, once, store):
    proxy = protect(store, origin)
    token = once()
    assert proxy.ask("POST", "/once/x", token=token, body=b"a").status == 200
    assert verdict_of(origin) == ("verified", None)
    for target in ("/once/x", "/once/y", "/once-ios/z"):
        assert_spent(proxy.ask("POST", target, token=token, body=b"a"))
    assert origin.targets() == ["/once/x"]
    # Two loops write their lines in any order.
    first, second = sorted((proxy.access_of("/once/x", number) for number in range(2)),
                           key=lambda record: record["claim"])
    assert (first["claim"], first["verdict"], first["action"]) == ("claimed", "verified", "allow")
    assert (second["claim"], second["verdict"], second["code"]) == ("reused", "reused", "token_already_used")
    assert first["claim_us"] >= 0 and "claim_failure" not in first
    expect_claims(proxy, {"claimed": 1, "reused": 3})


@ANY_STORE
@pytest.mark.timeout(1200)
def test_R1_a_thousand_copies_at_once_pass_once(protect, origin, once, store):
    proxy = protect(store, origin)
    for round_number in range(ROUNDS):
        data = request("GET", f"/once/{round_number}", token=once())
        assert statuses_of_copies([proxy], data) == {200: 1, 401: 999}, round_number
    assert origin.targets() == [f"/once/{number}" for number in range(ROUNDS)]


@ANY_STORE
def test_R1_copies_over_both_protocols_pass_once(protect, origin, once, store):
    proxy = protect(store, origin, listener='protocols = ["h2", "http/1.1"]')
    for number in range(ROUNDS):
        token, path = once(), f"/once/{number}"
        with ThreadPoolExecutor(2) as pool:
            streams = pool.submit(statuses_of_streams, proxy.port, path, token)
            copies = pool.submit(statuses_of_copies, [proxy], request("GET", path, token=token), connections=20)
            assert streams.result() + copies.result() == {200: 1, 401: 399}, number
    assert origin.targets() == [f"/once/{number}" for number in range(ROUNDS)]


@ANY_STORE
def test_R5_tokens_of_one_id_are_one_token(protect, origin, once, store):
    proxy = protect(store, origin)
    claims = {"jti": tokens.encode(os.urandom(16))}
    assert proxy.ask("GET", "/once/x", token=once(claims=claims)).status == 200
    assert_spent(proxy.ask("GET", "/once/x", token=once(claims=claims | {"provider": "debug"})))
    # Another project's id is another token.
    claims = {"jti": tokens.encode(os.urandom(16))}
    other = claims | {"iss": tokens.OTHER_ISSUER, "sub": tokens.OTHER_IOS,
                      "aud": [f"projects/{tokens.OTHER_NUMBER}", f"projects/{tokens.OTHER_PROJECT_ID}"]}
    routes = ROUTES.replace('projects = ["production"]\n', "")
    second = protect(store, origin, routes=routes)
    assert second.ask("GET", "/once/x", token=once(claims=claims)).status == 200
    assert second.ask("GET", "/once/x", token=once(claims=other)).status == 200


@ANY_STORE
def test_R5_a_token_without_an_id_is_known_by_its_signed_bytes(protect, origin, once, store):
    proxy = protect(store, origin)
    for token in (once(drop=("jti",)), once(drop=("jti",), lifetime=299)):
        assert proxy.ask("GET", "/once/x", token=token).status == 200
        assert_spent(proxy.ask("GET", "/once/x", token=token))


@ANY_STORE
def test_R17_a_get_counts_as_much_as_anything(protect, origin, once, store):
    proxy = protect(store, origin)
    for method in ("HEAD", "GET", "OPTIONS", "PUT"):
        token = once()
        with proxy.connect() as connection:
            assert connection.ask(request(method, "/once/x", token=token)).status == 200
            assert connection.ask(request("HEAD", "/once/x", token=token)).status == 401


# What claims nothing


@ANY_STORE
def test_R3_what_fails_an_earlier_check_claims_nothing(protect, origin, once, keys, store):
    proxy = protect(store, origin)
    bad = {"signature": once(key=keys.stranger), "expired": once(claims={"iat": 1_700_000_000, "exp": 1_700_000_300}),
           "audience": once(claims={"aud": ["projects/1"]}), "garbage": "a.b.c", "none": None,
           "placeholder": tokens.PLACEHOLDER}
    for name, token in bad.items():
        assert proxy.ask("GET", f"/once/{name}", token=token).status == 401
        assert "claim" not in proxy.access_of(f"/once/{name}")
    android = once(claims={"sub": tokens.ANDROID})
    assert_rejected(proxy.ask("GET", "/once-ios/x", token=android), "app_not_allowed", 403)
    # A token with the same id that nobody signed does not spend the real one.
    claims_of = {"jti": tokens.encode(os.urandom(16))}
    assert proxy.ask("GET", "/once/x", token=once(key=keys.stranger, claims=claims_of)).status == 401
    assert proxy.ask("GET", "/once/x", token=once(claims=claims_of)).status == 200
    assert proxy.ask("GET", "/once/x", token=android).status == 200
    expect_claims(proxy, {"claimed": 2})


@ANY_STORE
def test_R6_a_session_token_is_no_limited_use_token(protect, origin, once, store):
    proxy = protect(store, origin)
    response = proxy.ask("GET", "/once/x", token=once(lifetime=3600))
    assert_rejected(response, "limited_use_required")
    assert "limitedUseToken()" in response.json()["detail"]
    record = proxy.access_of("/once/x")
    assert record["verdict"] == "not_limited_use" and "claim" not in record
    # To the second: 29 minutes are allowed.
    assert proxy.ask("GET", "/once/x", token=once(lifetime=29 * 60)).status == 200
    assert proxy.ask("GET", "/once/x", token=once(lifetime=29 * 60 + 1)).status == 401
    # Where nothing is taken once, a session token is what is wanted.
    assert proxy.ask("GET", "/ordinary/x", token=once(lifetime=3600)).status == 200


@ANY_STORE
def test_R7_what_is_not_forwarded_claims_nothing(protect, origin, once, store):
    proxy = protect(store, origin, listener='limits = { body = "1KiB" }')
    token = once()
    preflight = ("Origin: https://app.example.com", "Access-Control-Request-Method: POST")
    assert proxy.ask("OPTIONS", "/once/x", *preflight, token=token).status == 200
    assert proxy.ask("POST", "/once/x", "Content-Length: 1025", token=token).status == 413
    assert proxy.ask("POST", "/once/x", "Content-Length: 1025", "Expect: 100-continue", token=token).status == 413
    assert proxy.ask("GET", "/nowhere", token=token).status == 404
    assert proxy.ask("GET", f"/once/x?ac={token}", token=token).status == 400
    assert proxy.ask("GET", "/ordinary/x", token=token).status == 200
    with proxy.connect() as connection:
        connection.send(request("POST", "/once/x", "Transfer-Encoding: chunked", "Content-Length: 3", token=token))
        assert connection.read_response().status == 400
    expect_claims(proxy, {})
    assert proxy.ask("POST", "/once/x", token=token, body=b"a" * 1024).status == 200


# One claim for each request


@ANY_STORE
def test_R8_a_request_that_is_sent_again_claims_once(protect, new_origin, once, store):
    origin = new_origin()
    proxy = protect(store, origin)
    with proxy.connect() as connection:
        for _ in range(5):
            assert connection.ask(request("POST", "/once/x", token=once(), body=b"a")).status == 200
            # The kept connection is dead when the next request comes: another one carries it.
            origin.close_idle()
    up = new_origin()
    second = protect(store, free_port(), up.port)
    for _ in range(4):
        assert second.ask("POST", "/once/x", token=once(), body=b"a").status == 200
    expect_claims(proxy, {"claimed": 5})
    expect_claims(second, {"claimed": 4})


@ANY_STORE
def test_R8_a_request_that_waits_for_100_claims_once(protect, origin, once, store):
    proxy = protect(store, origin)

    def script(exchange):
        exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        exchange.read_body()
        exchange.respond()

    origin.on("/once/x", script, early=True)
    token = once()
    with proxy.connect() as connection:
        connection.send(request("POST", "/once/x", "Content-Length: 1", "Expect: 100-continue", token=token))
        connection.read_interim()
        connection.send(b"a")
        assert connection.read_response().status == 200
    expect_claims(proxy, {"claimed": 1})
    assert_spent(proxy.ask("GET", "/once/x", token=token))


# When the backend fails (README, "When a token is spent")

SECOND = '''
[[route]]
name = "elsewhere"
path = "/elsewhere/*"
upstream = "elsewhere"
projects = ["production"]
app_check = "enforce"
replay = "enforce"

[upstream.elsewhere]
servers = [{servers}]
timeouts = {{ connect = "300ms", response_header = "300ms" }}
'''


@pytest.fixture
def failing(protect, origin):
    """Starts a proxy with a second upstream, for `/elsewhere/*`."""

    def begin(store: str, *servers: str, **parts):
        listed = ", ".join(f'"{server}"' for server in servers)
        return protect(store, origin, extra=SECOND.format(servers=listed), **parts)

    return begin


def address(origin) -> str:
    return f"127.0.0.1:{getattr(origin, 'port', origin)}"


def assert_released(proxy, response, token: str, status: int, code: str):
    assert (response.status, response.code, fate(response)) == (status, code, "unspent"), response.body
    assert proxy.access_of("/elsewhere/x")["claim"] == "released"
    expect_claims(proxy, {"claimed": 1, "released": 1})
    assert proxy.ask("GET", "/once/after", token=token).status == 200
    assert_spent(proxy.ask("GET", "/once/after", token=token))


def assert_kept(proxy, response, token: str, status: int, code: str):
    assert (response.status, response.code, fate(response)) == (status, code, "spent"), response.body
    assert "limitedUseToken()" in response.json()["detail"]
    assert proxy.access_of("/elsewhere/x")["claim"] == "claimed"
    assert_spent(proxy.ask("GET", "/once/after", token=token))
    expect_claims(proxy, {"claimed": 1, "reused": 1})


@ANY_STORE
def test_R9_a_backend_that_refuses_leaves_the_token_unspent(failing, once, store):
    proxy, token = failing(store, address(free_port()), address(free_port())), once()
    response = proxy.ask("POST", "/elsewhere/x", token=token, body=b"a")
    assert_released(proxy, response, token, 502, "upstream_unreachable")


@ANY_STORE
def test_R9_a_backend_without_an_address_leaves_the_token_unspent(failing, once, store):
    proxy, token = failing(store, "no-such-host.invalid:80"), once()
    response = proxy.ask("POST", "/elsewhere/x", token=token, body=b"a")
    assert_released(proxy, response, token, 502, "upstream_unreachable")


@ANY_STORE
def test_R9_a_backend_that_does_not_accept_leaves_the_token_unspent(failing, once, deaf, store):
    proxy, token = failing(store, address(deaf)), once()
    response = proxy.ask("POST", "/elsewhere/x", token=token, body=b"a")
    assert_released(proxy, response, token, 504, "upstream_timeout")


@ANY_STORE
def test_R9_a_client_that_leaves_before_anything_was_sent_leaves_the_token_unspent(failing, once, deaf, store):
    proxy, token = failing(store, address(deaf)), once()
    with proxy.connect() as connection:
        connection.send(request("GET", "/elsewhere/x", token=token))
        wait_until(lambda: proxy.metric("portcullis_connections", state="active") == 1, "the request is under way")
    assert proxy.access_of("/elsewhere/x")["claim"] == "released"
    assert proxy.ask("GET", "/once/after", token=token).status == 200


@ANY_STORE
def test_R9_a_drain_that_cuts_off_a_request_of_which_nothing_was_sent_releases(failing, once, deaf, store):
    proxy = failing(store, address(deaf), server='drain_timeout = "100ms"')
    proxy.config_path.write_text(proxy.config_path.read_text().replace('connect = "300ms"', 'connect = "20s"'))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record.get("msg") == "configuration reloaded", "reloaded")
    with proxy.connect() as connection:
        connection.send(request("GET", "/elsewhere/x", token=once()))
        wait_until(lambda: proxy.metric("portcullis_connections", state="active") == 1, "the request is under way")
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_for_exit() == 0
    assert proxy.access_of("/elsewhere/x")["claim"] == "released"


@ANY_STORE
@pytest.mark.parametrize("script, status, code", [
    (lambda exchange: exchange.close(), 502, "upstream_reset"),
    (lambda exchange: exchange.reset(), 502, "upstream_reset"),
    (lambda exchange: (exchange.send(b"HTTP/1.1 200 OK\r\nX: "), exchange.close()), 502, "upstream_protocol"),
    (lambda exchange: (exchange.send(b"nonsense\r\n\r\n"), exchange.close()), 502, "upstream_protocol"),
    (lambda exchange: exchange.peer_closed() and exchange.close(), 504, "upstream_timeout")],
    ids=["close", "reset", "mid-head", "nonsense", "silence"])
def test_R9_a_backend_that_got_the_request_keeps_the_token(
        failing, new_origin, once, store, script, status, code):
    elsewhere = new_origin()
    elsewhere.on("/elsewhere/x", script)
    proxy, token = failing(store, address(elsewhere)), once()
    assert_kept(proxy, proxy.ask("POST", "/elsewhere/x", token=token, body=b"a"), token, status, code)


@ANY_STORE
def test_R9_a_backend_that_closes_at_once_keeps_or_releases_but_never_lies(failing, once, store):
    """Whether a byte left before the end was seen is the kernels' business; what is said of it is ours."""
    listener = socket.create_server(("127.0.0.1", 0))

    def close_all():
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=close_all, daemon=True).start()
    proxy = failing(store, address(listener.getsockname()[1]))
    for number in range(20):
        token = once()
        response = proxy.ask("POST", f"/elsewhere/{number}", token=token, body=b"a")
        assert response.status == 502 and fate(response) in ("spent", "unspent")
        again = proxy.ask("GET", "/once/after", token=token)
        assert again.status == (200 if fate(response) == "unspent" else 401)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@ANY_STORE
def test_R9_an_answer_that_breaks_off_keeps_the_token(failing, new_origin, once, store):
    elsewhere, gate = new_origin(), Gate()

    def script(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nonly this")
        gate.wait()
        exchange.close()

    elsewhere.on("/elsewhere/x", script)
    proxy, token = failing(store, address(elsewhere)), once()
    with proxy.connect() as connection:
        connection.send(request("GET", "/elsewhere/x", token=token))
        assert connection.read_head().status == 200
        gate.open()
        connection.stream.take_rest()
    assert proxy.access_of("/elsewhere/x")["claim"] == "claimed"
    assert_spent(proxy.ask("GET", "/once/after", token=token))


@ANY_STORE
@pytest.mark.parametrize("rest, status, code", [
    (b"x\r\n", 400, "bad_request"), (b"800\r\n" + b"a" * 2048 + b"\r\n", 413, "body_too_large")],
    ids=["malformed", "too-large"])
def test_R9_a_body_that_turns_out_wrong_keeps_the_token_once_its_head_is_out(
        failing, origin, once, store, rest, status, code):
    proxy = failing(store, address(origin), listener='limits = { body = "1KiB" }')
    token = once()
    with proxy.connect() as connection:
        connection.send(request("POST", "/elsewhere/x", "Transfer-Encoding: chunked", token=token) + b"1\r\na\r\n")
        origin.wait(lambda: origin.targets() == ["/elsewhere/x"], "the head arrives")
        connection.send(rest)
        assert_kept(proxy, connection.read_response(), token, status, code)
    origin.errors.clear()


@ANY_STORE
def test_R9_a_body_that_is_wrong_from_the_start_leaves_the_token_unspent(failing, origin, once, store):
    proxy, token = failing(store, address(origin)), once()
    with proxy.connect() as connection:
        connection.send(request("POST", "/elsewhere/x", "Transfer-Encoding: chunked", token=token) + b"x\r\n")
        assert_released(proxy, connection.read_response(), token, 400, "bad_request")
    assert origin.targets() == ["/once/after"]


@ANY_STORE
def test_R9_a_client_that_leaves_while_the_backend_works_keeps_its_token_spent(failing, new_origin, once, store):
    elsewhere = new_origin()
    gate = Gate()
    elsewhere.on("/elsewhere/x", lambda exchange: gate.wait())
    proxy = failing(store, address(elsewhere))
    proxy.config_path.write_text(
        proxy.config_path.read_text().replace('response_header = "300ms"', 'response_header = "20s"'))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record.get("msg") == "configuration reloaded", "reloaded")
    token = once()
    with proxy.connect() as connection:
        connection.send(request("GET", "/elsewhere/x", token=token))
        elsewhere.wait(lambda: elsewhere.requests, "the request arrives")
    assert proxy.access_of("/elsewhere/x")["claim"] == "claimed"
    assert_spent(proxy.ask("GET", "/once/after", token=token))
    gate.open()


@ANY_STORE
def test_R10_a_client_that_tries_again_is_told_why_not(protect, new_origin, once, store):
    origin = new_origin()
    proxy = protect(store, origin, upstream='timeouts = { response_header = "300ms" }')
    origin.on("/once/x", lambda exchange: exchange.peer_closed() and exchange.close())
    token = once()
    first = proxy.ask("POST", "/once/x", token=token, body=b"a")
    assert (first.status, fate(first)) == (504, "spent")
    again = proxy.ask("POST", "/once/x", token=token, body=b"a")
    assert_spent(again)
    assert "limitedUseToken()" in again.json()["detail"] and again.get("retry-after") is None


# When the store cannot take it

FULL = '[replay]\nstore = "memory"\nmax_entries = 3\n'


def test_R12_a_full_store_refuses_and_forgets_nothing(protect, origin, once):
    proxy = protect(FULL, origin)
    used = [once() for _ in range(3)]
    for token in used:
        assert proxy.ask("GET", "/once/x", token=token).status == 200
    for number in range(20):
        assert_rejected(proxy.ask("GET", f"/once/full-{number}", token=once()), "verification_unavailable", 503)
    record = proxy.access_of("/once/full-0")
    assert (record["verdict"], record["reason"], record["claim"]) == ("unavailable", "replay_store", "full")
    for token in used:
        assert_spent(proxy.ask("GET", "/once/x", token=token))
    # A monitored route is none the worse for it.
    response = proxy.ask("GET", "/watched/x", token=once())
    assert response.status == 200 and origin.last().get("x-appcheck-action") == "would_reject"
    assert proxy.metric("portcullis_replay_entries") == proxy.metric("portcullis_replay_entries_limit") == 3
    # One line, not one for each request.
    assert sum("replay store cannot answer" in line for line in proxy.lines) == 1


def test_R11_a_route_may_let_requests_through_that_cannot_be_claimed(protect, origin, once):
    routes = ROUTES.replace('path = "/once-ios/*"', 'path = "/once-ios/*"\nwhen_unavailable = "allow"')
    proxy = protect(FULL, origin, routes=routes)
    for _ in range(3):
        assert proxy.ask("GET", "/once/x", token=once()).status == 200
    token = once()
    for _ in range(2):
        assert proxy.ask("GET", "/once-ios/x", token=token).status == 200
        assert verdict_of(origin) == ("unavailable", "replay_store")
        assert origin.last().get("x-appcheck-action") == "allow"
    assert_rejected(proxy.ask("GET", "/once/x", token=token), "verification_unavailable", 503)
    proxy.expect_metric(2, "portcullis_requests_total", route="once-ios", verdict="unavailable",
                        reason="replay_store", action="allow")


def on_redis(server: RedisServer, settings: str = "") -> str:
    return f'[replay]\nstore = "redis"\nredis = "redis://127.0.0.1:{server.port}"\n{settings}\n'


@pytest.mark.parametrize("number, failures", [
    (signal.SIGKILL, {"unreachable", "disconnected", "breaker_open"}),
    (signal.SIGSTOP, {"timeout", "breaker_open", "disconnected"})], ids=["down", "paused"])
def test_R11_a_store_that_is_gone_is_our_fault_and_comes_back(protect, origin, once, own_redis, number, failures):
    routes = ROUTES.replace('path = "/once-ios/*"', 'path = "/once-ios/*"\nwhen_unavailable = "allow"')
    proxy = protect(on_redis(own_redis, 'timeout = "200ms"'), origin, routes=routes)
    used = once()
    assert proxy.ask("GET", "/once/x", token=used).status == 200
    own_redis.process.send_signal(number)
    for _ in range(10):
        assert_rejected(proxy.ask("GET", "/once/gone", token=once()), "verification_unavailable", 503)
    record = proxy.access_of("/once/gone", 9)
    assert (record["verdict"], record["reason"]) == ("unavailable", "replay_store")
    assert record["claim"] == "unavailable" and record["claim_failure"] in failures
    assert proxy.ask("GET", "/once-ios/x", token=once()).status == 200
    assert (*verdict_of(origin), origin.last().get("x-appcheck-action")) == ("unavailable", "replay_store", "allow")
    assert sum("replay store cannot answer" in line for line in proxy.lines) == 1
    if number == signal.SIGSTOP:
        own_redis.resume()
        wait_until(lambda: proxy.ask("GET", "/once/back", token=once()).status == 200, "Redis is used again")
        assert_spent(proxy.ask("GET", "/once/x", token=used))


def test_M1_a_monitored_request_hardly_waits_for_a_store_that_is_paused(protect, origin, once, own_redis):
    proxy = protect(on_redis(own_redis, 'timeout = "5s"\nmonitor_patience = "20ms"'), origin)
    own_redis.pause()
    for route in ("watched", "loose", "outside"):
        begun = time.monotonic()
        assert proxy.ask("GET", f"/{route}/x", token=once()).status == 200
        assert time.monotonic() - begun < 2
        assert verdict_of(origin) == ("unavailable", "replay_store")
        assert origin.last().get("x-appcheck-action") == "would_reject"


def test_a_store_that_is_down_at_the_start_keeps_nobody_from_starting(protect, origin, once):
    proxy = protect(f'[replay]\nstore = "redis"\nredis = "redis://127.0.0.1:{free_port()}"\n', origin)
    assert_rejected(proxy.ask("GET", "/once/x", token=once()), "verification_unavailable", 503)
    assert proxy.ask("GET", "/watched/x", token=once()).status == 200
    assert proxy.ask("GET", "/ordinary/x", token=once()).status == 200


# Start, reload


def test_R13_tokens_from_before_the_start_of_a_store_in_memory_are_refused(protect, origin, once):
    first = protect("memory", origin)
    used, unused = once(), once()
    assert first.ask("GET", "/once/x", token=used).status == 200
    kill(first)
    second = protect("memory", origin)
    for token in (used, unused):
        assert_rejected(second.ask("GET", "/once/x", token=token), "verification_unavailable", 503)
    # Nobody who comes after the start is refused because of it.
    assert second.ask("GET", "/once/x", token=once()).status == 200
    expect_claims(second, {"predates": 2, "claimed": 1})


def reload(proxy, text: str):
    """Serves another configuration on every loop."""
    before = proxy.output().count("configuration reloaded")
    proxy.config_path.write_text(text)
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: proxy.output().count("configuration reloaded") > before, "the configuration was reloaded")


@ANY_STORE
def test_R14_a_reload_forgets_no_token(protect, origin, once, store):
    proxy = protect(store, origin)
    text = proxy.config_path.read_text()
    token, later = once(), once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    reload(proxy, text.replace('name = "once"', 'name = "renamed"'))
    assert_spent(proxy.ask("GET", "/once/x", token=token))
    # Without protection for a while, and with it again.
    reload(proxy, text.replace('replay = "enforce"', 'replay = "off"'))
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    reload(proxy, text)
    assert_spent(proxy.ask("GET", "/once/x", token=token))
    assert proxy.ask("GET", "/once/x", token=later).status == 200


@ANY_STORE
def test_R4_a_leeway_that_is_raised_opens_no_token_again(protect, origin, once, store):
    proxy = protect(store, origin, projects=PROJECTS.replace("[project.production]",
                                                             '[project.production]\nleeway = "0s"'))
    token = once(lifetime=3)
    minted = time.time()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    # Expired, and forgotten by whoever remembers no longer than that: it is looked after each second.
    wait_until(lambda: time.time() > minted + 6, "the token's end")
    assert_rejected(proxy.ask("GET", "/once/x", token=token), "token_expired")
    reload(proxy, proxy.config_path.read_text().replace('leeway = "0s"', 'leeway = "5m"'))
    assert_spent(proxy.ask("GET", "/once/x", token=token))


@ANY_STORE
def test_R14_a_reload_brings_the_first_protected_route(protect, origin, once, store):
    unprotected = ROUTES.replace('replay = "enforce"', "").replace('replay = "monitor"', "")
    proxy = protect(store, origin, routes=unprotected)
    assert "replay store opened" not in proxy.output()
    reload(proxy, proxy.config_path.read_text().replace(unprotected, ROUTES))
    token = once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    assert_spent(proxy.ask("GET", "/once/x", token=token))


def test_R14_another_store_waits_for_the_next_start(protect, origin, once):
    proxy = protect("memory", origin)
    token = once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    reload(proxy, proxy.config_path.read_text().replace('store = "memory"', 'store = "memory"\nmax_entries = 9'))
    warning = proxy.wait_for_record(lambda record: record.get("setting") == "[replay] store", "a warning")
    assert warning["level"] == "warning"
    assert_spent(proxy.ask("GET", "/once/x", token=token))
    # What belongs to routes changes at once.
    reload(proxy, proxy.config_path.read_text().replace("max_entries = 9", 'limited_use_max_lifetime = "60s"'))
    assert_rejected(proxy.ask("GET", "/once/x", token=once(lifetime=61)), "limited_use_required")


def test_R14_another_password_of_redis_waits_for_the_next_start(protect, origin, once, tmp_path):
    secret = tmp_path / "password"
    secret.write_text("")
    proxy = protect("redis", origin)
    secret.write_text("another")
    url = proxy.config_path.read_text().split('store = "redis"')[1].strip().splitlines()[0]
    reload(proxy, proxy.config_path.read_text().replace(url, f'{url}\nredis_password = {{ file = "{secret}" }}'))
    warning = proxy.wait_for_record(lambda record: record.get("setting") == "[replay] store", "a warning")
    assert warning["msg"] == "a changed setting takes effect at the next start"
    assert proxy.ask("GET", "/once/x", token=once()).status == 200


def test_R11_a_reload_that_shortens_the_wait_shortens_that_of_the_breaker(protect, origin, once, own_redis):
    proxy = protect(on_redis(own_redis, 'timeout = "20s"'), origin)
    assert proxy.ask("GET", "/once/x", token=once()).status == 200
    reload(proxy, proxy.config_path.read_text().replace('timeout = "20s"', 'timeout = "50ms"'))
    own_redis.pause()
    for _ in range(10):
        assert_rejected(proxy.ask("GET", "/once/gone", token=once()), "verification_unavailable", 503)
    failures = [proxy.access_of("/once/gone", number).get("claim_failure") for number in range(10)]
    # Five that had the time that is configured now, long before the connection is given up.
    assert "breaker_open" in failures, failures


# Monitoring


@ANY_STORE
@pytest.mark.parametrize("route", ["watched", "loose", "outside"])
def test_R15_monitoring_claims_and_rejects_nothing(protect, origin, once, store, route):
    proxy = protect(store, origin)
    token = once()
    told = []
    for _ in range(3):
        assert proxy.ask("GET", f"/{route}/x", token=token).status == 200
        told.append((*verdict_of(origin), origin.last().get("x-appcheck-action")))
    assert told == [("verified", None, "allow")] + 2 * [("reused", None, "would_reject")]
    assert proxy.ask("GET", f"/{route}/x", token=once(lifetime=3600)).status == 200
    assert (*verdict_of(origin), origin.last().get("x-appcheck-action")) == ("not_limited_use", None, "would_reject")
    # It is the same memory: what was used there is used here.
    assert_spent(proxy.ask("GET", "/once/x", token=token))
    proxy.expect_metric(2, "portcullis_requests_total", route=route, verdict="reused", action="would_reject")
    proxy.expect_metric(0, "portcullis_requests_total", route=route, action="reject")


@ANY_STORE
def test_M1_a_monitored_request_gets_the_answer_that_it_always_got(failing, origin, once, store):
    proxy = failing(store, address(free_port()))
    text = proxy.config_path.read_text()
    reload(proxy, text.replace('path = "/elsewhere/*"', 'path = "/other/*"')
           + text[text.index('[[route]]\nname = "elsewhere"'):text.index("[upstream.elsewhere]")]
           .replace("elsewhere", "gone").replace('upstream = "gone"', 'upstream = "elsewhere"')
           .replace('replay = "enforce"', 'replay = "monitor"'))
    answers = [proxy.ask("GET", "/gone/x", token=token) for token in (once(), once(lifetime=3600), once())]
    assert {answer.body for answer in answers} == {answers[0].body}
    assert answers[0].status == 502 and fate(answers[0]) is None


# Several processes, and their ends


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("store", ["file", "redis"])
def test_R2_a_thousand_copies_at_two_processes_pass_once(protect, origin, once, tmp_path, store):
    proxies = [protect(store, origin, state=tmp_path) for _ in range(2)]
    for number in range(ROUNDS):
        data = request("GET", f"/once/{number}", token=once())
        assert statuses_of_copies(proxies, data) == {200: 1, 401: 999}, number
    assert origin.targets() == [f"/once/{number}" for number in range(ROUNDS)]


def test_R13_a_file_remembers_what_passed_before_a_kill(protect, origin, once, tmp_path):
    first = protect("file", origin, state=tmp_path)
    used, unused = once(), once()
    assert first.ask("GET", "/once/x", token=used).status == 200
    kill(first)
    second = protect("file", origin, state=tmp_path)
    assert_spent(second.ask("GET", "/once/x", token=used))
    assert second.ask("GET", "/once/x", token=unused).status == 200


def kill(proxy):
    """kill -9, which is no end that `stop` would accept."""
    proxy.signal(signal.SIGKILL)
    proxy.process.wait()
    proxy.process.returncode = 0


def test_R13_no_token_passes_twice_whenever_the_process_is_killed(protect, origin, once, tmp_path):
    """Killed under load, between accepting and answering, three times; then every token is sent again."""
    proxy = protect("file", origin, state=tmp_path)
    # After the start: the file is new, and cannot vouch for what was minted before it.
    minted = [once() for _ in range(1500)]
    unsent = list(range(len(minted)))
    answered = set()

    def send(proxy):
        while unsent:
            try:
                number = unsent.pop(0)
                with Connection(proxy.port) as connection:
                    response = connection.ask(request("POST", f"/once/{number}", token=minted[number], body=b"a"))
                    assert response.status == 200, response.body
                    answered.add(number)
            except (OSError, client.Closed, IndexError):
                return  # The process is gone, and this request with it.

    for _ in range(3):
        seen = len(origin.requests)
        threads = [threading.Thread(target=send, args=(proxy,)) for _ in range(16)]
        for thread in threads:
            thread.start()
        origin.wait(lambda seen=seen: len(origin.requests) > seen + 150, "there is load")
        kill(proxy)
        for thread in threads:
            thread.join()
        proxy = protect("file", origin, state=tmp_path)
    assert len(answered) > 100 and len(unsent) > 100, "killed too late to tell"

    with proxy.connect() as connection:
        for number, token in enumerate(minted):
            status = connection.ask(request("POST", f"/once/{number}", token=token, body=b"a")).status
            assert status == (401 if number in answered else status) and status in (200, 401)
            assert number not in unsent or status == 200, "a token that nobody sent is spent"
    assert max(Counter(origin.targets()).values()) == 1, "a token passed twice"


def test_R14_an_old_and_a_new_process_share_the_file(protect, origin, once, tmp_path):
    old = protect("file", origin, state=tmp_path)
    token = once()
    assert old.ask("GET", "/once/x", token=token).status == 200
    new = protect("file", origin, state=tmp_path)
    assert_spent(new.ask("GET", "/once/x", token=token))
    later = once()
    assert new.ask("GET", "/once/x", token=later).status == 200
    assert_spent(old.ask("GET", "/once/x", token=later))


# A store that cannot be opened


def test_a_state_directory_that_cannot_be_written_ends_the_start(protect, origin, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a directory")
    proxy = protect("file", origin, state=file, ready=None)
    proxy.expect_failure(str(file), "state_directory")


def test_a_reload_whose_store_cannot_be_opened_changes_nothing(protect, origin, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a directory")
    unprotected = ROUTES.replace('replay = "enforce"', "").replace('replay = "monitor"', "")
    proxy = protect("file", origin, state=file, routes=unprotected)
    proxy.config_path.write_text(proxy.config_path.read_text().replace(unprotected, ROUTES))
    proxy.signal(signal.SIGHUP)
    record = proxy.wait_for_record(lambda record: record.get("msg") == "configuration not reloaded", "a refusal")
    assert str(file) in record["error"]
    assert proxy.ask("GET", "/open/x").status == 200
    assert proxy.metric("portcullis_config_last_reload_successful") == 0
