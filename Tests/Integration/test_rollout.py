"""M: monitoring that changes nothing, and the enforced share."""

import hashlib
import json

import pytest

from harness import tokens
from harness.client import request
from harness.proxy import PROJECT, ROUTES, free_port
from judging import assert_rejected, verdict_of

TOKENS = {
    "none": lambda keys: None, "good": lambda keys: tokens.mint(keys.first),
    "empty": lambda keys: "", "placeholder": lambda keys: tokens.PLACEHOLDER, "garbage": lambda keys: "x.y.z",
    "two-segments": lambda keys: "x.y", "huge": lambda keys: "a" * 9000,
    "expired": lambda keys: tokens.mint(keys.first, claims={"exp": 1_700_000_000, "iat": 1_699_999_000}),
    "signature": lambda keys: tokens.mint(keys.stranger),
    "unknown-key": lambda keys: tokens.mint(keys.second),
    "audience": lambda keys: tokens.mint(keys.first, claims={"aud": ["x"]}),
    "issuer": lambda keys: tokens.mint(keys.first, claims={"iss": "x"}),
    "app": lambda keys: tokens.mint(keys.first, claims={"sub": tokens.ANDROID}),
    "two": lambda keys: f"{tokens.mint(keys.first)}, {tokens.mint(keys.first)}",
    "uuid": lambda keys: "7D6C9A9E-3F7B-4B5E-9E0B-0C6C1B1A2F3D",
}


def same_but_for_the_date(data: bytes) -> bytes:
    return b"\r\n".join(line for line in data.split(b"\r\n") if not line.lower().startswith(b"date:"))


@pytest.fixture(params=["keys", "no-keys", "garbage-keys"])
def unsafe(request, start, origin, key_server):
    """A proxy whose keys are good, out of reach, or garbage."""
    if request.param == "keys":
        return start(origin, jwks=key_server.url, projects=PROJECT)
    url = key_server.url
    if request.param == "garbage-keys":
        key_server.body = b"<html>"
    else:
        url = f"http://127.0.0.1:{free_port()}/jwks"
    return start(origin, jwks=url, projects=PROJECT, ready="/healthz")


ANSWERS = {
    "plain": b"HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-b:2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Length: 5\r\n"
             b"WWW-Authenticate: Basic\r\nCache-Control: max-age=5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "refusal": b"HTTP/1.1 401 No\r\nContent-Length: 2\r\nWWW-Authenticate: Bearer\r\n\r\nno",
    "empty": b"HTTP/1.1 204 Nothing\r\nX-A: 1\r\n\r\n",
    "error": b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nRetry-After: 9\r\n\r\nbusy",
}


def test_M1_a_monitored_answer_is_byte_for_byte_that_of_an_unguarded_route(unsafe, origin, keys):
    for name, answer in ANSWERS.items():
        for route in ("monitored", "open", "ios-monitored"):
            origin.answer(f"/{route}/{name}", answer)

    def answers(route: str, token: str | None, name: str) -> bytes:
        """Every byte of the answers to two pipelined requests, the second of which ends the connection."""
        with unsafe.connect() as connection:
            connection.send(request("GET", f"/{route}/{name}", token=token)
                            + request("POST", f"/{route}/{name}", "Connection: close", token=token, body=b"x"))
            return same_but_for_the_date(connection.stream.take_rest())

    expected = {name: answers("open", None, name) for name in ANSWERS}
    assert expected["plain"].count(b"hello") == 2
    for label, make in TOKENS.items():
        for name in ANSWERS:
            for route in ("monitored", "ios-monitored"):
                assert answers(route, make(keys), name) == expected[name], (label, name, route)
    for path in ("monitored", "ios-monitored"):
        unsafe.expect_metric(0, "portcullis_requests_total", route=path, action="reject")


def test_M1_the_origin_gets_the_same_request_but_for_our_fields(proxy, origin, keys):
    fields = ["X-A: 1", "Cookie: a=b", "Accept: */*"]
    ours = ("x-appcheck-", "x-request-id", "x-firebase-appcheck")

    def forwarded(route: str, token: str | None) -> tuple:
        assert proxy.ask("POST", f"/{route}/same", *fields, token=token, body=b"abc").status == 200
        sent = origin.last()
        return [pair for pair in sent.fields if not pair[0].lower().startswith(ours)], sent.body

    for make in TOKENS.values():
        assert forwarded("monitored", make(keys)) == forwarded("open", None)


def share_routes(**shares: str) -> str:
    """Enforced routes `/NAME/*` with these lines of their own, and the marker route."""
    return "".join(f'''
[[route]]
name = "{name}"
path = "/{name}/*"
upstream = "api"
app_check = "enforce"
{lines}
''' for name, lines in shares.items())


IDS = [f"client-{number}" for number in range(2000)]


def enforced(proxy, route: str, field: str = "X-Client", ids=IDS) -> set[str]:
    """Which clients a route enforces: those that get 401 without a token."""
    inside = set()
    with proxy.connect() as connection:
        for first in range(0, len(ids), 50):
            batch = ids[first:first + 50]
            connection.send(b"".join(request("GET", f"/{route}/x", f"{field}: {one}") for one in batch))
            for one in batch:
                response = connection.read_response()
                assert response.status in (200, 401)
                if response.status == 401:
                    assert response.code == "token_missing"
                    inside.add(one)
    return inside


def test_M2_the_share_is_sticky_monotone_and_survives_restarts(start, origin):
    def route(percent: str) -> str:
        return share_routes(share=f'enforce_percent = {percent}\nsticky_by = "header:X-Client"')

    first = start(origin, routes=route("25"))
    quarter = enforced(first, "share")
    assert 400 <= len(quarter) <= 600
    assert enforced(first, "share") == quarter
    assert enforced(start(origin, routes=route('"25%"')), "share") == quarter
    half = enforced(start(origin, routes=route("50")), "share")
    assert 900 <= len(half) <= 1100 and quarter < half
    tenth = enforced(start(origin, routes=route("2.5")), "share")
    assert 25 <= len(tenth) <= 80 and tenth < quarter
    assert enforced(start(origin, routes=route("0")), "share") == set()
    assert enforced(start(origin, routes=route("100")), "share") == set(IDS)


def place(seed: str, key: str) -> int:
    """Where a client stands among all, as Remote Config computes it: millionths of a percent."""
    return int.from_bytes(hashlib.sha256(f"{seed}.{key}".encode()).digest()) % 100_000_000


def test_M2_the_share_is_the_documented_hash(start, origin):
    lines = 'enforce_percent = {}\nsticky_by = "header:X-Client"'
    proxy = start(origin, routes=share_routes(
        named=lines.format(12.5), seeded=lines.format(33) + '\nshare_seed = "autumn-2026"'))
    assert enforced(proxy, "named") == {one for one in IDS if place("named", one) <= 12_500_000}
    assert enforced(proxy, "seeded") == {one for one in IDS if place("autumn-2026", one) <= 33_000_000}


def test_M2_routes_draw_different_clients(start, origin):
    half = 'enforce_percent = 50\nsticky_by = "header:X-Client"'
    proxy = start(origin, routes=share_routes(one=half, two=half))
    one, two = enforced(proxy, "one"), enforced(proxy, "two")
    assert 300 <= len(one & two) <= 700


def test_M2_the_client_address_can_be_the_key(start, origin):
    routes = share_routes(share='enforce_percent = 25\nsticky_by = "client_ip"')
    ids = [f"198.51.{number // 250}.{number % 250}" for number in range(1000)]
    trusting = start(origin, routes=routes, listener='trusted_proxies = ["127.0.0.1"]')
    inside = enforced(trusting, "share", "X-Forwarded-For", ids)
    assert 200 <= len(inside) <= 300
    # Strangers cannot choose their address.
    wary = start(origin, routes=routes)
    assert len(enforced(wary, "share", "X-Forwarded-For", ids[:50])) in (0, 50)


def test_M2_the_app_can_be_the_key(start, origin, keys, mint):
    lines = 'enforce_percent = 50\nsticky_by = "app"'
    proxy = start(origin, routes=share_routes(share=lines))
    # Without a verified token there is no app: outside the share, whatever the token.
    for token in (None, "x.y.z", mint(keys.stranger)):
        assert proxy.ask("GET", "/share/x", token=token).status == 200


def test_M2_a_missing_key_is_outside_and_counted(start, origin):
    lines = 'enforce_percent = 99.9\nsticky_by = "header:X-Client"'
    proxy = start(origin, routes=share_routes(share=lines))
    for _ in range(3):
        assert proxy.ask("GET", "/share/x").status == 200
        assert origin.last().get("x-appcheck-action") == "would_reject"
    proxy.expect_metric(3, "portcullis_share_key_missing_total", route="share")


def test_M3_every_request_is_judged_whatever_the_share(start, origin, keys, mint):
    lines = 'enforce_percent = 0\nsticky_by = "header:X-Client"'
    proxy = start(origin, routes=share_routes(share=lines))
    for token, verdict in ((None, ("missing", "unknown_origin")), ("x.y", ("invalid", "malformed")),
                           (mint(keys.stranger), ("invalid", "signature")), (mint(), ("verified", None))):
        assert proxy.ask("GET", "/share/x", "X-Client: a", token=token).status == 200
        assert verdict_of(origin) == verdict
    proxy.expect_metric(3, "portcullis_requests_total", route="share", action="would_reject")
    proxy.expect_metric(1, "portcullis_requests_total", route="share", action="allow")


def test_M3_inside_and_outside_differ_in_the_action_only(start, origin, mint):
    lines = 'enforce_percent = 50\nsticky_by = "header:X-Client"'
    proxy = start(origin, routes=share_routes(share=lines))
    inside = enforced(proxy, "share", ids=IDS[:100])
    assert 0 < len(inside) < 100
    proxy.expect_metric(len(inside), "portcullis_requests_total", route="share", action="reject",
                        verdict="missing")
    proxy.expect_metric(100 - len(inside), "portcullis_requests_total", route="share", action="would_reject",
                        verdict="missing")
    for one in IDS[:10]:
        assert proxy.ask("GET", "/share/x", f"X-Client: {one}", token=mint()).status == 200


FINGERPRINTS = PROJECT + '''
[project.production.client_fingerprints]
fields = ["X-Firebase-Client"]
user_agents = ["MyApp/1.*"]
'''


@pytest.mark.parametrize("fields, reason", [
    (["X-Firebase-Client: fire-ios/8"], "outdated_client"), (["User-Agent: MyApp/1.4 (iPhone)"], "outdated_client"),
    (["User-Agent: MyApp/2.0"], "unknown_origin"), (["User-Agent: curl/8"], "unknown_origin"),
    ([], "unknown_origin")])
def test_M6_a_missing_token_is_an_old_client_or_a_stranger(start, origin, fields, reason):
    proxy = start(origin, projects=FINGERPRINTS)
    assert proxy.ask("GET", "/monitored/x", *fields).status == 200
    assert verdict_of(origin) == ("missing", reason)
    # For metrics only, never for admission.
    assert_rejected(proxy.ask("GET", "/enforced/x", *fields), "token_missing")
    proxy.expect_metric(2, "portcullis_requests_total", verdict="missing", reason=reason)


def test_M7_labels_come_from_the_configuration_alone(proxy, origin, mint):
    unlisted = f"1:{tokens.NUMBER}:web:unlisted"
    proxy.ask("GET", "/enforced/covert-path?q=covert-query", "Host: covert.example.test",
              "User-Agent: covert-agent", host=None, token=mint(claims={"sub": unlisted, "jti": "covert-jti"}))
    proxy.ask("GET", "/no-such-route-covert")
    text = proxy.admin("/metrics").body.decode()
    for covert in ("covert", "unlisted", tokens.IOS):
        assert covert not in text
    apps = {dict(labels)["app"] for (name, labels) in proxy.metrics()
            if name == "portcullis_requests_total"}
    assert apps <= {"ios", "android", "other_ios", "other"}
    proxy.expect_metric(1, "portcullis_requests_total", route="enforced", app="other", verdict="verified")


BROKEN = {
    "unknown-upstream": (ROUTES.replace('upstream = "api"', 'upstream = "apy"', 1), "names no upstream"),
    "unknown-app": (ROUTES.replace('apps = ["ios"]', 'apps = ["iso"]', 1), "names no app"),
    "unknown-project": (ROUTES.replace('projects = ["production"]', 'projects = ["prod"]', 1), "names no project"),
    "unknown-mode": (ROUTES.replace('app_check = "enforce"', 'app_check = "enforced"', 1), "must be"),
    "unknown-key": (ROUTES.replace("app_check =", "appcheck =", 1), "unknown key"),
    "tie": (ROUTES + "[[route]]" + ROUTES.split("[[route]]")[1].replace('"enforced"', '"again"'), "serves the same requests"),
    "share": (ROUTES.replace('app_check = "enforce"', 'app_check = "enforce"\nenforce_percent = 101', 1), "from 0 to 100"),
}


@pytest.mark.parametrize("routes, reason", BROKEN.values(), ids=BROKEN)
def test_M8_a_mistake_on_a_protected_route_refuses_to_load(start, origin, routes, reason):
    proxy = start(origin, routes=routes, ready=None)
    proxy.expect_failure("proxy.conf:", reason)


def test_M8_a_failed_reload_keeps_what_was_served(start, origin):
    import signal

    proxy = start(origin)
    good = proxy.config_path.read_text()
    proxy.config_path.write_text(good.replace('app_check = "enforce"', 'app_check = "enfocre"'))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record.get("level") == "error" and "enfocre" in json.dumps(record),
                          "one that says what is wrong")
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")
    assert proxy.ask("GET", "/monitored/x").status == 200
