"""C: preflights, and rejections that browser code can read."""

import pytest

from harness import tokens
from harness.proxy import PROJECT, ROUTES, free_port
from judging import assert_rejected, verdict_of

APP = "https://app.example.com"
PREFLIGHT = [f"Origin: {APP}", "Access-Control-Request-Method: POST",
             "Access-Control-Request-Headers: x-firebase-appcheck"]


def test_C1_a_preflight_passes_without_a_token(proxy, origin):
    assert proxy.ask("OPTIONS", "/enforced/x", *PREFLIGHT).status == 200
    assert verdict_of(origin) == ("exempt", None)
    assert origin.last().method == "OPTIONS"


@pytest.mark.parametrize("fields", [[], PREFLIGHT[:1], PREFLIGHT[1:2], [*PREFLIGHT, "Content-Length: 4"],
                                    [*PREFLIGHT, "Transfer-Encoding: chunked"]])
def test_C1_any_other_options_request_is_judged(proxy, origin, fields):
    assert_rejected(proxy.ask("OPTIONS", "/enforced/x", *fields), "token_missing")
    assert origin.requests == []


def test_C1_no_other_method_is_exempt_by_preflight_fields(proxy, origin):
    for method in ("GET", "POST", "HEAD"):
        assert proxy.ask(method, "/enforced/x", *PREFLIGHT).status == 401
    assert origin.requests == []


def test_C1_a_preflight_is_answered_where_the_route_says_so(start, origin):
    proxy = start(origin, routes=ROUTES.replace(
        'allow_origins = ["https://app.example.com"]',
        'allow_origins = ["https://app.example.com"], answer_preflights = true, allow_methods = ["POST"], '
        'allow_headers = ["Content-Type"], max_age = "5m"'))
    response = proxy.ask("OPTIONS", "/browser/x", *PREFLIGHT)
    assert response.status in (200, 204)
    assert response.get("access-control-allow-origin") == APP
    assert "POST" in response.get("access-control-allow-methods")
    allowed = response.get("access-control-allow-headers").lower().replace(" ", "").split(",")
    assert {"x-firebase-appcheck", "content-type"} <= set(allowed)
    assert response.get("access-control-max-age") == "300"
    assert "origin" in response.get("vary").lower()
    stranger = proxy.ask("OPTIONS", "/browser/x", "Origin: https://evil.example", *PREFLIGHT[1:])
    assert stranger.get("access-control-allow-origin") is None
    assert origin.requests == []


REJECTIONS = {
    "missing": (None, "token_missing", 401), "garbage": ("garbage", "token_invalid", 401),
    "placeholder": (tokens.PLACEHOLDER, "attestation_failed", 401)}


@pytest.mark.parametrize("token, code, status", REJECTIONS.values(), ids=REJECTIONS)
def test_C2_a_rejection_can_be_read_by_the_routes_origins(proxy, origin, token, code, status):
    response = proxy.ask("GET", "/browser/x", f"Origin: {APP}", token=token)
    assert_rejected(response, code, status)
    assert response.get("access-control-allow-origin") == APP
    assert "origin" in response.get("vary").lower()
    assert "www-authenticate" in response.get("access-control-expose-headers").lower()


def test_C2_strangers_get_no_cors_fields_but_caches_are_told(proxy, origin):
    for fields in (["Origin: https://evil.example"], []):
        response = proxy.ask("GET", "/browser/x", *fields)
        assert_rejected(response, "token_missing")
        assert response.get("access-control-allow-origin") is None
        assert "origin" in response.get("vary").lower()


def test_C2_a_route_without_cors_adds_nothing(proxy, origin):
    response = proxy.ask("GET", "/enforced/x", f"Origin: {APP}")
    assert response.get("access-control-allow-origin") is None


def test_C2_an_answer_of_the_origin_keeps_its_own_cors_fields(proxy, origin, mint):
    origin.on("/browser/x", lambda exchange: exchange.respond(200, "Access-Control-Allow-Origin: *"))
    response = proxy.ask("GET", "/browser/x", f"Origin: {APP}", token=mint())
    assert response.all("access-control-allow-origin") == ["*"]


def test_C2_C3_keys_out_of_reach_is_readable_too(start, origin, mint):
    proxy = start(origin, jwks=f"http://127.0.0.1:{free_port()}/jwks", projects=PROJECT, ready="/healthz",
                  routes=ROUTES)
    response = proxy.ask("GET", "/browser/x", f"Origin: {APP}", token=mint())
    assert_rejected(response, "verification_unavailable", 503)
    assert response.get("access-control-allow-origin") == APP


def test_C3_an_app_that_may_not_call_gets_403_without_a_challenge(proxy, origin, mint):
    token = mint(claims={"sub": tokens.ANDROID})
    assert_rejected(proxy.ask("GET", "/ios/x", token=token), "app_not_allowed", 403)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_C3_every_method_gets_the_same_rejection(proxy, origin, method):
    assert_rejected(proxy.ask(method, "/enforced/x"), "token_missing")


def test_C5_the_answer_does_not_tell_which_check_failed(proxy, origin, keys, mint):
    wrong = [mint(keys.stranger), mint(claims={"aud": ["x"]}), mint(claims={"iss": "x"}), "x.y.z",
             mint(header={"alg": "HS256"}), mint(header={"kid": "zz"}), mint(claims={"sub": ""})]
    answers = set()
    for token in wrong:
        response = proxy.ask("GET", "/enforced/x", token=token)
        assert_rejected(response, "token_invalid")
        problem = response.json()
        problem.pop("instance", None)
        fields = tuple((name, value) for name, value in response.fields
                       if name.lower() not in ("date", "x-request-id", "content-length"))
        answers.add((str(problem), fields))
    assert len(answers) == 1, answers
    text = str(answers).lower()
    for word in ("signature", "audience", "issuer", "algorithm", "subject", "kid"):
        assert word not in text


@pytest.mark.parametrize("content_type", ["application/grpc", "application/grpc+proto"])
@pytest.mark.parametrize("token, code, status", [
    (None, "token_missing", "16"), ("x.y.z", "token_invalid", "16")])
def test_C4_a_grpc_caller_gets_a_trailers_only_answer(proxy, origin, content_type, token, code, status):
    response = proxy.ask("POST", "/enforced/x", f"Content-Type: {content_type}", "TE: trailers", token=token, body=b"")
    assert (response.status, response.body) == (200, b"")
    assert response.get("content-type").startswith("application/grpc")
    assert (response.get("grpc-status"), response.get("grpc-message")) == (status, code)
    assert origin.requests == []


def test_C4_a_grpc_caller_whose_app_may_not_call_gets_7(proxy, origin, mint):
    token = mint(claims={"sub": tokens.ANDROID})
    response = proxy.ask("POST", "/ios/x", "Content-Type: application/grpc", token=token, body=b"")
    assert (response.status, response.get("grpc-status")) == (200, "7")
