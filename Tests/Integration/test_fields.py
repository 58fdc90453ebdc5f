"""H: fields that a client must not be able to set, remove, double or hide behind another spelling."""

import itertools
import re

import pytest

from harness import tokens
from harness.client import HOST, request
from judging import assert_rejected, verdict_of
from refusals import assert_refused

OURS = ["X-AppCheck-Verdict", "X-AppCheck-Reason", "X-AppCheck-App", "X-AppCheck-App-Id",
        "X-AppCheck-Action"]


@pytest.mark.parametrize("lines", [
    lambda a, b: [f"X-Firebase-AppCheck: {a}", f"X-Firebase-AppCheck: {b}"],
    lambda a, b: [f"X-Firebase-AppCheck: {a}", f"x-firebase-appcheck: {a}"],
    lambda a, b: [f"X-Firebase-AppCheck: {a}", "X-Firebase-AppCheck:"],
    lambda a, b: [f"X-Firebase-AppCheck: {a}, {b}"],
    lambda a, b: [f"X-Firebase-AppCheck: {a},"],
    lambda a, b: [f"X-Firebase-AppCheck: ,{a}"],
], ids=["two-lines", "same-twice", "one-empty", "comma", "trailing-comma", "leading-comma"])
def test_H1_two_tokens_are_no_token(proxy, origin, mint, lines):
    fields = lines(mint(), mint())
    assert proxy.ask("GET", "/monitored/x", *fields).status == 200
    verdict, reason = verdict_of(origin)
    assert verdict == "invalid" and reason in ("duplicate", "malformed")
    assert origin.last().get("x-firebase-appcheck") is None
    assert_rejected(proxy.ask("GET", "/enforced/x", *fields), "token_invalid")
    assert origin.targets() == ["/monitored/x"]


@pytest.mark.parametrize("name", ["x-firebase-appcheck", "X-FIREBASE-APPCHECK", "x-FiReBaSe-aPpChEcK"])
def test_H2_the_name_has_no_case(proxy, origin, mint, name):
    assert proxy.ask("GET", "/enforced/x", f"{name}: {mint()}").status == 200
    assert verdict_of(origin) == ("verified", None)


@pytest.mark.parametrize("name", ["X_Firebase_AppCheck", "X-Firebase_AppCheck", "x_firebase-appcheck"])
def test_H2_an_underscore_spelling_is_not_read_and_not_passed_on(proxy, origin, mint, name):
    token = mint()
    assert_rejected(proxy.ask("GET", "/enforced/x", f"{name}: {token}"), "token_missing")
    assert proxy.ask("GET", "/monitored/x", f"{name}: {token}").status == 200
    assert verdict_of(origin)[0] == "missing"
    assert token not in origin.last().head.decode()
    # Beside a good token it does not count as a second one, and is dropped all the same.
    assert proxy.ask("GET", "/forwarding/x", f"{name}: {token}", token=mint()).status == 200
    assert token not in origin.last().head.decode()


def spellings(name: str) -> list[str]:
    """Every choice of `-` or `_` in a field name, in three cases."""
    parts = name.split("-")
    for signs in itertools.product("-_", repeat=len(parts) - 1):
        mixed = parts[0] + "".join(sign + part for sign, part in zip(signs, parts[1:]))
        yield from (mixed, mixed.lower(), mixed.upper())


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("path", ["/open/x", "/monitored/x"])
def test_H3_no_spelling_of_our_fields_comes_through(proxy, origin, name, path):
    lines = [f"{spelling}: forged" for spelling in dict.fromkeys(spellings(name))]
    assert proxy.ask("GET", path, *lines).status == 200
    assert b"forged" not in origin.last().head


def test_H3_our_fields_come_once_with_our_values(proxy, origin, mint):
    forged = [f"{name}: forged" for name in OURS]
    assert proxy.ask("GET", "/enforced/x", *forged, token=mint()).status == 200
    got = {name: origin.last().all(name) for name in OURS}
    assert got == {"X-AppCheck-Verdict": ["verified"], "X-AppCheck-Reason": [],
                   "X-AppCheck-App": ["ios"], "X-AppCheck-App-Id": [tokens.IOS],
                   "X-AppCheck-Action": ["allow"]}


def test_H4_connection_cannot_remove_what_we_set(proxy, origin, mint):
    names = OURS + ["X-Request-Id", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via",
                    "Host", "Content-Length", "X-Firebase-AppCheck"]
    # A body, so that there is a Content-Length to be removed.
    response = proxy.ask("POST", "/forwarding/x", "Connection: " + ", ".join(names), token=mint(),
                         body=b"hello")
    assert response.status in (200, 400)
    if response.status == 200:
        sent = origin.last()
        missing = [name for name in names if not sent.all(name) and name != "X-AppCheck-Reason"]
        assert missing in ([], ["X-Firebase-AppCheck"])
        assert sent.body == b"hello"


def test_H4_connection_removes_what_it_names_and_itself(proxy, origin):
    fields = ["Connection: X-Private, keep-alive", "X-Private: 1", "Keep-Alive: timeout=5",
              "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eDp5", "TE: gzip",
              "X-Public: 2", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQ"]
    assert proxy.ask("GET", "/open/x", *fields).status == 200
    names = origin.last().names()
    assert "x-public" in names
    for name in ("x-private", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade",
                 "http2-settings"):
        assert name not in names, name


@pytest.mark.parametrize("name", [
    "X-Firebase-AppCheck", "x-firebase-appcheck", "appCheckToken", "app_check_token", "firebaseAppCheckToken",
    "ac"])
def test_H5_a_token_in_the_query_is_refused_by_name(proxy, origin, mint, name):
    token = mint()
    assert_rejected(proxy.ask("GET", f"/enforced/x?a=1&{name}={token}"), "token_in_url", 400)
    # Not even beside a good one: the URL has been seen by who knows whom.
    assert_rejected(proxy.ask("GET", f"/enforced/x?{name}={token}", token=mint()), "token_in_url", 400)
    assert origin.requests == []
    assert proxy.ask("GET", f"/monitored/x?{name}={token}&b=2").status == 200
    assert verdict_of(origin) == ("invalid", "in_url")


@pytest.mark.parametrize("query", ["t={}", "a=b&whatever={}", "{}"])
def test_H5_a_token_in_the_query_is_recognised_by_its_issuer(proxy, origin, mint, query):
    target = "/enforced/x?" + query.format(mint())
    assert_rejected(proxy.ask("GET", target), "token_in_url", 400)


def test_H5_an_encoded_parameter_name_does_not_hide_a_token(proxy, origin, mint):
    target = f"/enforced/x?app%43heckToken={mint()}"
    assert_rejected(proxy.ask("GET", target), "token_in_url", 400)


def test_H5_a_foreign_jwt_in_the_query_is_none_of_our_business(proxy, origin, mint):
    foreign = mint(claims={"iss": "https://accounts.example.com"})
    tokens.minted.discard(foreign)
    assert proxy.ask("GET", f"/enforced/x?state={foreign}&act=1&ace=2", token=mint()).status == 200
    assert origin.last().target == f"/enforced/x?state={foreign}&act=1&ace=2"


def test_H5_the_log_shows_the_query_without_the_token(proxy, origin, mint):
    token = mint()
    proxy.ask("GET", f"/monitored/logged?ac={token}")
    record = proxy.access_of("/monitored/logged")
    assert token not in str(record)


@pytest.mark.parametrize("lines", [
    lambda token: [f"Cookie: X-Firebase-AppCheck={token}"],
    lambda token: [f"Authorization: Bearer {token}"],
    lambda token: [f"X-Firebase-AppCheck-Token: {token}"],
], ids=["cookie", "authorization", "longer-name"])
def test_H5_another_field_is_no_place_for_a_token(proxy, origin, mint, lines):
    token = mint()
    assert_rejected(proxy.ask("GET", "/enforced/x", *lines(token)), "token_missing")


def test_H5_a_body_or_trailer_is_no_place_for_a_token(proxy, origin, mint):
    token = mint()
    assert_rejected(proxy.ask("POST", "/enforced/x", body=token.encode()), "token_missing")
    with proxy.connect() as connection:
        response = connection.ask(
            request("POST", "/enforced/x", "Transfer-Encoding: chunked", "Trailer: X-Firebase-AppCheck")
            + f"1\r\na\r\n0\r\nX-Firebase-AppCheck: {token}\r\n\r\n".encode())
        assert_rejected(response, "token_missing")
    assert origin.requests == []


FORWARDING = {
    "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.test",
    "X-Forwarded-Port": "666", "X-Forwarded-Prefix": "/evil", "X-Forwarded-Uri": "/evil",
    "X-Forwarded-Method": "EVIL", "Forwarded": "for=6.6.6.6", "X-Real-IP": "6.6.6.6",
    "X-Original-URL": "/evil", "X-Rewrite-URL": "/evil", "X-Forwarded-Server": "evil",
    "CF-Connecting-IP": "6.6.6.6", "CF-Connecting-IPv6": "2001:db8::6", "Fastly-Client-IP": "6.6.6.6",
    "Fly-Client-IP": "6.6.6.6", "X-Azure-ClientIP": "6.6.6.6", "True-Client-IP": "6.6.6.6",
    "X_Forwarded_For": "6.6.6.6", "X-Forwarded_Host": "evil.test"}


@pytest.mark.parametrize("name", FORWARDING)
def test_H6_forwarding_fields_of_strangers_are_dropped(proxy, origin, name):
    assert proxy.ask("GET", "/open/x", f"{name}: {FORWARDING[name]}").status == 200
    sent = origin.last()
    assert FORWARDING[name] not in [value for _, value in sent.fields]
    assert sent.get("x-forwarded-for") == "127.0.0.1"
    assert sent.get("x-forwarded-proto") == "http"
    assert sent.get("x-forwarded-host") == HOST


@pytest.mark.parametrize("name", ["X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Uri", "X-Forwarded-Prefix"])
def test_H6_forwarding_fields_do_not_choose_the_route(proxy, origin, name):
    assert_rejected(proxy.ask("GET", "/enforced/x", f"{name}: /open/x"), "token_missing")


def test_H6_a_trusted_proxy_is_believed_and_extended(start, origin):
    proxy = start(origin, listener='trusted_proxies = ["127.0.0.0/8"]')
    proxy.ask("GET", "/open/x", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https",
              "X-Forwarded-Host: public.example")
    sent = origin.last()
    assert sent.get("x-forwarded-for") == "203.0.113.7, 127.0.0.1"
    assert sent.get("x-forwarded-proto") == "https"
    assert sent.get("x-forwarded-host") == "public.example"
    assert proxy.access_of("/open/x")["client"] == "203.0.113.7"


@pytest.mark.parametrize("path, expected", [("/enforced/x", False), ("/forwarding/x", True),
                                            ("/monitored/x", False), ("/open/x", False)])
def test_H7_the_token_goes_upstream_only_where_the_route_says_so(proxy, origin, mint, path, expected):
    token = mint()
    assert proxy.ask("GET", path, token=token).status == 200
    assert origin.last().all("x-firebase-appcheck") == ([token] if expected else [])


BAD_LINES = {
    "obs-fold": "X-A: 1\r\n continued", "obs-fold-tab": "X-A: 1\r\n\tcontinued", "space-colon": "X-A : 1",
    "tab-colon": "X-A\t: 1", "leading-space": " X-A: 1", "nul-value": "X-A: a\0b", "nul-name": "X\0A: 1",
    "cr-value": "X-A: a\rb", "no-colon": "X-A", "empty-name": ": 1", "control": "X-A: a\x01b",
    "delete": "X-A: a\x7fb", "name-space": "X A: 1", "name-bracket": "X[A]: 1", "name-latin": "X-\xe4: 1",
    "lf-line": "X-A: 1\nX-B: 2"}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_H8_a_malformed_field_line_is_refused(proxy, origin, line):
    assert_refused(proxy, origin, request("GET", "/open/smuggled", line))
    assert_refused(proxy, origin, f"GET /open/smuggled HTTP/1.1\r\n{line}\r\nHost: {HOST}\r\n\r\n"
                   .encode("latin-1"))


@pytest.mark.parametrize("fields", [
    [f"X-{number}: 1" for number in range(101)], ["X-Long: " + "a" * 40_000],
    [f"X-{number}: {'a' * 1000}" for number in range(50)], ["X" * 40_000 + ": 1"]],
    ids=["too-many", "one-long", "many-long", "long-name"])
def test_H8_a_head_beyond_the_limits_is_refused(proxy, origin, fields):
    assert_refused(proxy, origin, request("GET", "/open/smuggled", *fields), {431})


def test_H8_a_head_within_the_limits_passes(proxy, origin):
    fields = [f"X-{number}: {'a' * 300}" for number in range(90)]
    assert proxy.ask("GET", "/open/x", *fields).status == 200
    assert set(fields) <= {f"{name}: {value}" for name, value in origin.last().fields}


def test_H8_the_limits_are_configurable(start, origin):
    proxy = start(origin, listener='limits = { header_bytes = "2KiB", headers = 10 }')
    assert_refused(proxy, origin, request("GET", "/open/x", "X-Long: " + "a" * 3000), {431})
    assert_refused(proxy, origin, request("GET", "/open/x", *[f"X-{n}: 1" for n in range(12)]), {431})


@pytest.mark.parametrize("agent", ["GoogleHC/1.0", "kube-probe/1.27", "ELB-HealthChecker/2.0", "curl/8"])
def test_H9_no_user_agent_is_exempt(proxy, origin, agent):
    assert_rejected(proxy.ask("GET", "/enforced/x", f"User-Agent: {agent}"), "token_missing")


def test_the_origin_gets_a_request_id_and_the_answer_says_so_in_the_log(proxy, origin):
    proxy.ask("GET", "/open/identified", "X-Request-Id: chosen-by-the-client")
    identity = origin.last().get("x-request-id")
    assert identity and identity != "chosen-by-the-client"
    assert re.fullmatch(r"[0-9A-Za-z-]{16,64}", identity)
    assert identity in str(proxy.access_of("/open/identified"))


def test_traceparent_passes_and_via_is_extended(proxy, origin):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    proxy.ask("GET", "/open/x", f"traceparent: {trace}", "tracestate: a=b", "Via: 1.0 fred")
    sent = origin.last()
    assert sent.get("traceparent") == trace and sent.get("tracestate") == "a=b"
    via = ", ".join(sent.all("via"))
    assert via.startswith("1.0 fred, 1.1 ")


def test_ordinary_fields_pass_byte_for_byte_in_order(proxy, origin):
    fields = ["X-B: 2", "x-a:1", "Accept: */*", "X-B: \xfc\xe9", "Cookie: a=b; c=d", "X-Empty:",
              "X-B:    spaces   inside   "]
    proxy.ask("GET", "/open/x", *fields)
    kept = [(name, value) for name, value in origin.last().fields
            if name in ("X-B", "x-a", "Accept", "Cookie", "X-Empty")]
    assert kept == [("X-B", "2"), ("x-a", "1"), ("Accept", "*/*"), ("X-B", "\xfc\xe9"),
                    ("Cookie", "a=b; c=d"), ("X-Empty", ""), ("X-B", "spaces   inside")]
