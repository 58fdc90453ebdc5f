"""How often a client may ask a route, and what bad tokens cost whoever sends them."""

import collections
import concurrent.futures
import signal
import time

import pytest

from harness import client, tokens
from harness.http2 import Client
from harness.origin import wait_until
from harness.proxy import route
from translation import LISTENER

HOUR = {"requests": 10, "per": "1h"}
ORIGIN = "https://app.example.com"


def limited_route(name: str, **settings) -> str:
    return route(name, rate_limit=HOUR | settings.pop("rate_limit", {}), **{"app_check": "off"} | settings)


def statuses(proxy, path: str, count: int, *fields: str, **options) -> list[int]:
    return [proxy.ask("GET", path, *fields, **options).status for _ in range(count)]


def forged(token: str) -> str:
    """The same token with a signature of the right length that is not its issuer's."""
    return token.rsplit(".", 1)[0] + "." + tokens.encode(b"\1" * 256)


# What a refusal says

def test_a_request_beyond_the_limit_is_told_when_to_come_back(start, new_origin):
    origin = new_origin()
    proxy = start(origin, routes=limited_route(
        "api", rate_limit={"requests": 2, "per": "1h", "burst": 3}, cors={"allow_origins": [ORIGIN]}))
    assert statuses(proxy, "/api/x", 3) == [200] * 3
    response = proxy.ask("GET", "/api/refused", f"Origin: {ORIGIN}")
    assert (response.status, response.code) == (429, "rate_limited")
    assert response.get("content-type") == "application/problem+json"
    assert response.json()["status"] == 429
    seconds = int(response.get("retry-after"))
    # One comes every half an hour; the three at once have used up what there was.
    assert 1790 <= seconds <= 1800
    assert response.get("ratelimit-policy") == '"api";q=2;w=3600'
    assert response.get("ratelimit") == f'"api";r=0;t={seconds}'
    assert response.get("cache-control") == "no-store"
    assert response.get("access-control-allow-origin") == ORIGIN
    assert "RateLimit-Policy" in response.get("access-control-expose-headers")
    record = proxy.access_of("/api/refused")
    assert (record["status"], record["failure"], record["rate_limit"]) == (429, "rate_limited", "reject")
    assert "verdict" not in record
    assert "rate_limit" not in proxy.access_of("/api/x", 2)
    assert len(origin.targets()) == 3
    proxy.expect_metric(1, "portcullis_rate_limited_total", route="api", action="reject")
    proxy.expect_metric(1, "portcullis_request_failures_total", failure="rate_limited")
    assert proxy.metric("portcullis_rate_limit_entries", limit="route", route="api") == 1
    # A refusal leaves the connection as it is.
    with proxy.connect() as connection:
        for _ in range(3):
            assert connection.ask(client.request("GET", "/api/x")).status == 429
        assert connection.ask(client.request("POST", "/api/x", body=b"x" * 100)).status == 429
        connection.send(client.request("HEAD", "/api/x"))
        refused = connection.read_response("HEAD")
        assert (refused.status, refused.body) == (429, b"")


def test_it_comes_back_with_time(start, new_origin):
    proxy = start(new_origin(), routes=limited_route("api", rate_limit={"requests": 4, "per": "1s", "burst": 1}))
    begun = time.monotonic()
    seen = collections.Counter()
    while seen[200] < 9:
        seen[proxy.ask("GET", "/api/x").status] += 1
    # Eight more than the first, at four a second, however many asked in between.
    assert time.monotonic() - begun >= 2
    assert set(seen) == {200, 429}


# One number for all connections, workers and protocols

def test_exactly_as_many_as_allowed_pass_whoever_asks_at_once(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=2, routes=limited_route("api", rate_limit={"requests": 60, "per": "24h"}))

    def ask(_) -> collections.Counter:
        seen = collections.Counter()
        with proxy.connect() as connection:
            for _ in range(25):
                seen[connection.ask(client.request("GET", "/api/x")).status] += 1
        return seen

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        total = sum(pool.map(ask, range(16)), collections.Counter())
    assert total == {200: 60, 429: 340}
    assert len(origin.targets()) == 60


def test_streams_of_http2_and_connections_of_http1_have_one_limit(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=2, listener=LISTENER,
                  routes=limited_route("api", rate_limit={"requests": 50, "per": "24h"}))
    seen = collections.Counter()

    def streams(_) -> collections.Counter:
        with Client(proxy.port) as connection:
            opened = [connection.begin("GET", "/api/x", end=True) for _ in range(20)]
            return collections.Counter(connection.answer(stream).status for stream in opened)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seen = sum(pool.map(streams, range(4)), collections.Counter())
    seen += collections.Counter(statuses(proxy, "/api/x", 20))
    assert seen == {200: 50, 429: 50}
    with Client(proxy.port) as connection:
        refused = connection.ask("GET", "/api/x")
        assert (refused.status, refused.code) == (429, "rate_limited")
        assert refused.get("ratelimit-policy") == '"api";q=50;w=86400'
        # A caller of gRPC: the head alone, and how long not to try again.
        refused = connection.ask("POST", "/api/x", ("content-type", "application/grpc"), body=b"")
        assert (refused.status, refused.get("grpc-status"), refused.get("grpc-message")) == (200, "8", "rate_limited")
        assert 0 < int(refused.get("grpc-retry-pushback-ms")) <= 86400_000 / 50
        assert refused.get("retry-after") is None and refused.body == b""


# Who is one client

def test_each_address_has_a_limit_of_its_own_and_a_network_may_share(start, new_origin):
    routes = limited_route("each", rate_limit={"requests": 2}) + limited_route(
        "shared", rate_limit={"requests": 2, "ipv4_prefix": 24})
    proxy = start(new_origin(), routes=routes)
    for source in ("127.0.0.1", "127.0.0.2"):
        assert statuses(proxy, "/each/x", 3, source=source) == [200, 200, 429]
    assert statuses(proxy, "/shared/x", 1, source="127.0.0.1") == [200]
    assert statuses(proxy, "/shared/x", 2, source="127.0.0.2") == [200, 429]
    assert statuses(proxy, "/shared/x", 1, source="127.0.1.1") == [200]


def test_H6_who_the_client_is_only_a_trusted_proxy_may_say(start, new_origin):
    routes = limited_route("api", rate_limit={"requests": 2})
    trusting = start(new_origin(), listener='trusted_proxies = ["127.0.0.0/8"]', routes=routes)
    for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
        assert statuses(trusting, "/api/x", 3, f"X-Forwarded-For: {address}") == [200, 200, 429]
    # The same /64.
    assert statuses(trusting, "/api/x", 1, "X-Forwarded-For: 2001:db8::2") == [429]
    wary = start(new_origin(), routes=routes)
    seen = [wary.ask("GET", "/api/x", f"X-Forwarded-For: 192.0.2.{number}").status for number in range(4)]
    assert seen == [200, 200, 429, 429]


def test_a_field_as_the_key_and_what_a_request_without_it_counts_for(start, new_origin):
    proxy = start(new_origin(), routes=limited_route("api", rate_limit={"requests": 2, "key": "header:X-Api-Key"}))
    for key in ("one", "two"):
        assert statuses(proxy, "/api/x", 3, f"X-API-KEY: {key}") == [200, 200, 429]
    assert statuses(proxy, "/api/without", 3) == [200, 200, 429]
    assert statuses(proxy, "/api/empty", 1, "X-Api-Key:") == [429]
    assert statuses(proxy, "/api/without", 1, source="127.0.0.2") == [200]
    assert proxy.access_of("/api/without")["rate_limit_key_missing"] is True
    assert "rate_limit_key_missing" not in proxy.access_of("/api/x")
    proxy.expect_metric(5, "portcullis_rate_limit_key_missing_total", route="api")
    proxy.expect_metric(4, "portcullis_rate_limited_total", route="api", action="reject")


def test_an_app_as_the_key(start, new_origin, mint):
    routes = limited_route("api", app_check="monitor", rate_limit={"requests": 2, "key": "app"})
    proxy = start(new_origin(), routes=routes)

    def ask(claims=None, **options):
        return proxy.ask("GET", "/api/x", token=mint(claims=claims), **options).status

    # Wherever the app asks from, and with whatever token.
    assert [ask(source=f"127.0.0.{number}") for number in (1, 2, 3)] == [200, 200, 429]
    assert [ask({"sub": tokens.ANDROID}) for _ in range(3)] == [200, 200, 429]
    # A token that is not genuine names no app.
    assert [proxy.ask("GET", "/api/x", token=forged(mint())).status for _ in range(3)] == [200, 200, 429]
    assert ask() == 429


# How it goes with App Check

def test_a_limit_comes_before_the_token_and_holds_where_app_check_only_monitors(start, new_origin, mint):
    routes = "".join(limited_route(name, app_check=name, rate_limit={"requests": 3}) for name in ("monitor", "enforce"))
    proxy = start(new_origin(), routes=routes)
    for name, refusal in (("monitor", 200), ("enforce", 401)):
        assert statuses(proxy, f"/{name}/x", 4) == [refusal] * 3 + [429]
        response = proxy.ask("GET", f"/{name}/genuine", token=mint())
        assert (response.status, response.code) == (429, "rate_limited")
        assert "verdict" not in proxy.access_of(f"/{name}/genuine")
        assert proxy.access_of(f"/{name}/genuine")["verify_us"] == 0


def test_a_monitored_limit_refuses_nobody_and_says_so(start, new_origin):
    origin = new_origin()
    proxy = start(origin, log='access = "rejected"',
                  routes=limited_route("api", rate_limit={"requests": 1, "mode": "monitor"}))
    assert statuses(proxy, "/api/x", 5) == [200] * 5
    assert proxy.access_of("/api/x", 3)["rate_limit"] == "would_reject"
    assert "failure" not in proxy.access_of("/api/x", 3)
    proxy.expect_metric(4, "portcullis_rate_limited_total", route="api", action="would_reject")
    proxy.expect_metric(0, "portcullis_rate_limited_total", route="api", action="reject")
    assert len(origin.targets()) == 5


@pytest.mark.parametrize("key", ["client_network", "app"])
def test_R7_what_the_limit_refuses_spends_no_token(start, new_origin, once, key):
    routes = limited_route("api", app_check="enforce", replay="enforce",
                           rate_limit={"requests": 1, "per": "3s", "key": key})
    proxy = start(new_origin(), routes=routes)
    assert proxy.ask("GET", "/api/x", token=once()).status == 200
    token, seen = once(), []
    while 200 not in seen:
        seen.append(proxy.ask("GET", "/api/x", token=token).status)
    assert set(seen) == {429, 200}
    proxy.expect_metric(2, "portcullis_replay_claims_total", result="claimed")
    wait_until(lambda: proxy.ask("GET", "/api/x", token=token).status == 401, "the token is spent")


def test_a_limit_by_app_charges_only_what_would_be_forwarded(start, new_origin, mint):
    routes = limited_route("api", app_check="enforce", apps=["ios"], projects=["production"],
                           rate_limit={"requests": 1, "key": "app"})
    proxy = start(new_origin(), routes=routes)
    assert statuses(proxy, "/api/x", 5) == [401] * 5
    foreign = mint(claims={"sub": tokens.ANDROID})
    assert statuses(proxy, "/api/x", 3, token=foreign) == [403] * 3
    assert statuses(proxy, "/api/x", 2, token=mint()) == [200, 429]


def test_preflights_that_are_answered_here_are_not_charged(start, new_origin):
    fields = ("Origin: https://app.example.com", "Access-Control-Request-Method: GET")
    cors = {"allow_origins": [ORIGIN], "answer_preflights": True}
    proxy = start(new_origin(), routes=limited_route("here", cors=cors, rate_limit={"requests": 1})
                  + limited_route("there", rate_limit={"requests": 1}))
    assert [proxy.ask("OPTIONS", "/here/x", *fields).status for _ in range(3)] == [204] * 3
    assert statuses(proxy, "/here/x", 2) == [200, 429]
    assert [proxy.ask("OPTIONS", "/there/x", *fields).status for _ in range(2)] == [200, 429]


# Reloads

def test_a_reload_keeps_what_was_used_of_limits_that_stay_the_same(start, new_origin):
    routes = limited_route("same", rate_limit={"requests": 2}) + limited_route("other", rate_limit={"requests": 2})
    proxy = start(new_origin(), routes=routes)
    for name in ("same", "other"):
        assert statuses(proxy, f"/{name}/x", 3) == [200, 200, 429]
    text = proxy.config_path.read_text()
    before, after = text.split('name = "other"')
    proxy.config_path.write_text(before + 'name = "other"' + after.replace('"requests" = 2', '"requests" = 3')
                                 .replace("requests = 2", "requests = 3"))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record["msg"] == "configuration reloaded", "the reload")
    assert statuses(proxy, "/same/x", 1) == [429]
    assert statuses(proxy, "/other/x", 4) == [200, 200, 200, 429]


def test_O2_reloads_in_the_middle_give_nobody_more_and_nobody_less(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=2, routes=limited_route("api", rate_limit={"requests": 200, "per": "24h"}))
    reloaded = 0

    def ask(_) -> collections.Counter:
        seen = collections.Counter()
        with proxy.connect() as connection:
            while seen[429] < 10:
                seen[connection.ask(client.request("GET", "/api/x")).status] += 1
        return seen

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asking = pool.map(ask, range(4))
        for _ in range(5):
            proxy.signal(signal.SIGHUP)
            reloaded += 1
            proxy.expect_metric(reloaded, "portcullis_config_reloads_total", result="success")
        total = sum(asking, collections.Counter())
    assert total == {200: 200, 429: 40}
    assert len(origin.targets()) == 200


# Bad tokens

CEILING = 'verifications = { per_second = 1, burst = 5 }'
GUARDED = route("guarded", projects=["production"], app_check="enforce") + route(
    "watched", projects=["production"], app_check="monitor")


def test_bad_tokens_of_one_network_buy_no_more_signatures_and_others_do_not_notice(start, new_origin, mint):
    origin = new_origin()
    proxy = start(origin, server=CEILING, routes=GUARDED)
    known = mint()
    assert proxy.ask("GET", "/guarded/x", token=known, source="127.0.0.2").status == 200
    seen = collections.Counter()
    codes = set()
    with proxy.connect(source="127.0.0.2") as connection:
        for _ in range(60):
            response = connection.ask(client.request("GET", "/guarded/junk", token=forged(mint())))
            seen[response.status] += 1
            codes.add((response.status, response.code))
            if response.status == 429:
                assert int(response.get("retry-after")) == 1
                assert response.get("ratelimit") is None
                # Others go on: tokens of their own, each of them new.
                assert proxy.ask("GET", "/guarded/x", token=mint(), source="127.0.0.3").status == 200
    assert codes == {(401, "token_invalid"), (429, "verification_limited")}
    # Five at once and one a second; how long sixty requests take is the machine's affair.
    assert 5 <= seen[401] <= 30
    proxy.expect_metric(seen[429], "portcullis_verifications_refused_total")
    proxy.expect_metric(seen[429], "portcullis_requests_total", verdict="unavailable",
                        reason="verification_limit", action="reject")
    record = next(record for record in proxy.access() if record["status"] == 429)
    assert (record["verdict"], record["reason"], record["action"], record["code"]) == (
        "unavailable", "verification_limit", "reject", "verification_limited")


def test_what_is_known_of_a_network_with_bad_tokens_still_passes(start, new_origin, mint):
    origin = new_origin()
    proxy = start(origin, server='verifications = { per_second = 1, burst = 1 }', workers=1, routes=GUARDED)
    known = mint()
    assert proxy.ask("GET", "/guarded/x", token=known).status == 200

    def is_exhausted() -> bool:
        return proxy.ask("GET", "/guarded/x", token=forged(mint())).status == 429

    wait_until(is_exhausted, "no signature is computed any more")
    assert proxy.ask("GET", "/guarded/x", token=known).status == 200
    # What is known without a signature is said as ever.
    assert proxy.ask("GET", "/guarded/x").code == "token_missing"
    assert proxy.ask("GET", "/guarded/x", token="a.b.c").code == "token_invalid"
    assert proxy.ask("GET", "/guarded/x", token=tokens.PLACEHOLDER).code == "attestation_failed"


def test_M1_monitoring_forwards_what_it_does_not_verify(start, new_origin, mint):
    origin = new_origin()
    proxy = start(origin, server='verifications = { per_second = 1, burst = 1 }', workers=1, routes=GUARDED)

    def verdict() -> tuple:
        assert proxy.ask("GET", "/watched/x", token=forged(mint())).status == 200
        fields = origin.last()
        return (fields.get("x-appcheck-verdict"), fields.get("x-appcheck-reason"), fields.get("x-appcheck-action"))

    seen = set()
    wait_until(lambda: seen.add(verdict()) or len(seen) == 2, "both verdicts")
    assert seen == {("invalid", "signature", "would_reject"), ("unavailable", "verification_limit", "would_reject")}


def test_a_genuine_token_costs_its_network_nothing_and_an_expired_one_does(start, new_origin, mint):
    proxy = start(new_origin(), server='verifications = { per_second = 1, burst = 2 }', workers=1, routes=GUARDED)
    assert [proxy.ask("GET", "/guarded/x", token=mint()).status for _ in range(20)] == [200] * 20
    assert proxy.metric("portcullis_rate_limit_entries", limit="verifications") == 0
    now = int(time.time())
    old = mint(claims={"iat": now - 7200, "exp": now - 3600})

    def asked() -> str:
        return proxy.ask("GET", "/guarded/x", token=old).code

    assert asked() == "token_expired"
    wait_until(lambda: asked() == "verification_limited", "the same old token is not verified for ever")
    assert proxy.metric("portcullis_rate_limit_entries", limit="verifications") == 1


def test_without_a_ceiling_every_token_is_verified(start, new_origin, mint):
    proxy = start(new_origin(), server="verifications = { per_second = 0 }", routes=GUARDED)
    assert {proxy.ask("GET", "/guarded/x", token=forged(mint())).status for _ in range(50)} == {401}
    assert proxy.metric("portcullis_rate_limit_entries", limit="verifications") == 0
