"""T: what makes a token good or bad, seen from both ends of the proxy."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

from harness import tokens
from harness.client import request
from harness.origin import wait_until
from harness.proxy import PROJECT, PROJECTS
from harness.tokens import encode
from judging import assert_judged, assert_rejected, verdict_of


def test_a_good_token_passes_and_the_origin_learns_who_called(proxy, origin, mint):
    assert_judged(proxy, origin, mint(), "verified")
    request = origin.last()
    assert request.get("x-appcheck-app") == "ios"
    assert request.get("x-appcheck-app-id") == tokens.IOS
    assert request.get("x-appcheck-action") == "allow"
    assert request.get("x-appcheck-reason") is None
    assert request.get("x-firebase-appcheck") is None


def test_a_token_of_a_3072_bit_key_passes(proxy, origin, keys, mint):
    assert_judged(proxy, origin, mint(keys.wide), "verified")


def test_a_missing_token_is_told_apart_from_a_bad_one(proxy, origin):
    assert proxy.ask("GET", "/monitored/x").status == 200
    assert verdict_of(origin) == ("missing", "unknown_origin")
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")


def resigned(key, token: str, algorithm: str) -> str:
    """The token's claims under another algorithm, signed as that algorithm would."""
    claims = token.split(".")[1]
    header = encode(json.dumps({"kid": key.kid, "typ": "JWT", "alg": algorithm}).encode())
    signed = f"{header}.{claims}".encode()
    if algorithm == "HS256":
        public = key.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        signature = hmac.new(public, signed, hashlib.sha256).digest()
    elif algorithm == "PS256":
        signature = key.private.sign(
            signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    elif algorithm.lower() == "none":
        signature = b""
    else:
        signature = key.sign(signed)
    token = signed.decode() + "." + encode(signature)
    tokens.minted.add(token)
    return token


@pytest.mark.parametrize("algorithm", ["HS256", "PS256", "ES256", "RS384", "rs256", "None", "RS256 "])
def test_T1_only_rs256_is_an_algorithm(proxy, origin, keys, mint, algorithm):
    assert_judged(proxy, origin, resigned(keys.first, mint(), algorithm), "invalid", "algorithm")


def test_T1_alg_none_without_a_signature_is_refused(proxy, origin, keys, mint):
    token = resigned(keys.first, mint(), "none")
    assert proxy.ask("GET", "/monitored/x", token=token).status == 200
    verdict, reason = verdict_of(origin)
    assert verdict == "invalid" and reason in ("algorithm", "malformed")
    assert_rejected(proxy.ask("GET", "/enforced/x", token=token), "token_invalid")


@pytest.mark.parametrize("member", ["jwk", "jku", "x5u", "x5c"])
def test_T2_a_key_that_the_token_brings_is_never_used(proxy, origin, keys, mint, member):
    value = {"jwk": keys.stranger.jwk(), "x5c": ["MIIB"]}.get(member, "http://127.0.0.1:1/keys")
    token = mint(keys.stranger, header={member: value})
    assert_judged(proxy, origin, token, "invalid", "signature")


def test_T2_a_critical_extension_is_refused(proxy, origin, mint):
    token = mint(header={"crit": ["exp"], "exp": 1})
    assert_judged(proxy, origin, token, "invalid", "malformed")


def test_T3_a_token_without_a_key_id_never_tries_keys(proxy, origin, mint):
    assert_judged(proxy, origin, mint(header={"kid": None}), "invalid", "malformed")


@pytest.mark.parametrize(
    "kid", ['"', "a\nb", "a\0b", "../../etc/passwd", "k" * 3_000, "", "ü", 7,
            ["k1"], "k1 "],
    ids=["quote", "newline", "nul", "path", "long", "empty", "not-ascii", "number", "array", "space"])
def test_T4_a_hostile_key_id_is_refused_and_never_repeated(proxy, origin, mint, kid):
    token = mint(header={"kid": kid})
    assert proxy.ask("GET", "/monitored/x", token=token).status == 200
    verdict, reason = verdict_of(origin)
    assert verdict == "invalid" and reason in ("unknown_key", "malformed")
    assert_rejected(proxy.ask("GET", "/enforced/x", token=token), "token_invalid")
    for text in (proxy.output(), proxy.admin("/metrics").body.decode()):
        assert "../../etc/passwd" not in text and "k" * 100 not in text


@pytest.mark.parametrize(
    "audience",
    [f"projects/{tokens.NUMBER}", 5, {"a": 1}, [], None, [[f"projects/{tokens.NUMBER}"]], [1, 2],
     [tokens.NUMBER, tokens.PROJECT_ID], [f"projects/{tokens.NUMBER}0", "projects/my-app2"]],
    ids=["string", "number", "object", "empty", "null", "nested", "numbers", "bare", "longer"])
def test_T5_an_audience_of_another_shape_is_refused(proxy, origin, mint, audience):
    assert_judged(proxy, origin, mint(claims={"aud": audience}), "invalid", "audience")


def test_T5_a_missing_audience_is_refused(proxy, origin, mint):
    assert_judged(proxy, origin, mint(drop=("aud",)), "invalid", "audience")


def test_T6_a_token_of_another_project_is_refused_although_its_signature_is_good(
        proxy, origin, mint):
    foreign = {"aud": [f"projects/{tokens.OTHER_NUMBER}", f"projects/{tokens.OTHER_PROJECT_ID}"]}
    assert_judged(proxy, origin, mint(claims=foreign), "invalid", "audience")
    whole = foreign | {"iss": tokens.OTHER_ISSUER, "sub": tokens.OTHER_IOS}
    token = mint(claims=whole)
    # Genuine, and good where that project is served; not on a route that serves only the first one.
    assert proxy.ask("GET", "/forwarding/x", token=token).status == 200
    assert verdict_of(origin) == ("verified", None)
    assert_judged(proxy, origin, token, "app_not_allowed")


@pytest.mark.parametrize(
    "issuer",
    ["https://firebaseappcheck.googleapis.com/999999999999", "https://firebaseappcheck.googleapis.com/",
     "https://firebaseappcheck.googleapis.com.evil/" + tokens.NUMBER, tokens.ISSUER + "/",
     tokens.ISSUER + "0", tokens.ISSUER.upper(), tokens.ISSUER.replace("https", "http"), 5, None, ""])
def test_T7_the_issuer_is_compared_whole(proxy, origin, mint, issuer):
    assert_judged(proxy, origin, mint(claims={"iss": issuer}), "invalid", "issuer")


def test_T7_an_escaped_issuer_is_the_same_issuer(proxy, origin, mint):
    now = int(time.time())
    claims = json.dumps({"iss": tokens.ISSUER, "sub": tokens.IOS, "iat": now, "exp": now + 3600,
                         "aud": [f"projects/{tokens.NUMBER}", f"projects/{tokens.PROJECT_ID}"]})
    token = mint(raw_claims=claims.replace("/", "\\/").encode())
    assert_judged(proxy, origin, token, "verified")


@pytest.mark.parametrize("subject", ["", 5, None, ["1:1:ios:a"]])
def test_T8_a_subject_must_be_an_app(proxy, origin, mint, subject):
    assert_judged(proxy, origin, mint(claims={"sub": subject}), "invalid", "subject")


def test_T8_an_app_that_the_route_does_not_list_has_a_verdict_of_its_own(proxy, origin, mint):
    token = mint(claims={"sub": tokens.ANDROID})
    assert_judged(proxy, origin, token, "app_not_allowed", monitored="/ios-monitored/x",
                  enforced="/ios/x")
    assert_judged(proxy, origin, token, "verified")


def now() -> int:
    return int(time.time())


WEIRD_TIMES = ['"1"', "-1", "1e400", "99999999999999999999", "true", "[]", "{}", "null", '""', "1e-400",
               "9223372036854775807", "-9223372036854775808", "0"]


@pytest.mark.parametrize("claim", ["exp", "iat"])
@pytest.mark.parametrize("value", WEIRD_TIMES)
def test_T9_a_time_that_is_no_sensible_number_is_refused(proxy, origin, mint, claim, value):
    times = {"exp": str(now() + 3600), "iat": str(now())} | {claim: value}
    claims = (f'{{"iss":"{tokens.ISSUER}","sub":"{tokens.IOS}","exp":{times["exp"]},'
              f'"iat":{times["iat"]},"aud":["projects/{tokens.NUMBER}","projects/my-app"]}}')
    token = mint(raw_claims=claims.encode())
    response = proxy.ask("GET", "/monitored/x", token=token)
    assert response.status == 200
    verdict, reason = verdict_of(origin)
    assert verdict == "invalid" and reason in ("expired", "not_yet_valid", "lifetime", "malformed")
    assert proxy.ask("GET", "/enforced/x", token=token).status == 401


@pytest.mark.parametrize("claim", ["exp", "iat"])
def test_T9_both_times_are_required(proxy, origin, mint, claim):
    assert_judged(proxy, origin, mint(drop=(claim,)), "invalid", "malformed")


@pytest.mark.parametrize("claims, reason", [
    (lambda: {"iat": now() + 600, "exp": now() + 1200}, "not_yet_valid"),
    (lambda: {"iat": now(), "exp": now() + 8 * 86400}, "lifetime"),
    (lambda: {"nbf": now() + 600}, "not_yet_valid"),
    (lambda: {"iat": now() - 30, "exp": now() - 40}, "lifetime"),
], ids=["future-iat", "eight-days", "future-nbf", "exp-before-iat"])
def test_T9_times_must_make_sense_together(proxy, origin, mint, claims, reason):
    assert_judged(proxy, origin, mint(claims=claims()), "invalid", reason)


def test_T10_a_firebase_auth_id_token_is_refused(proxy, origin, mint):
    token = mint(claims={"iss": "https://securetoken.google.com/my-app", "aud": "my-app",
                         "user_id": "u", "firebase": {"sign_in_provider": "password"}})
    assert_judged(proxy, origin, token, "invalid", "issuer")


def good_claims() -> str:
    return (f'"iss":"{tokens.ISSUER}","sub":"{tokens.IOS}","exp":{now() + 3600},"iat":{now()},'
            f'"aud":["projects/{tokens.NUMBER}","projects/my-app"]')


@pytest.mark.parametrize("parts", [
    {"raw_header": b'{"alg":"RS256","kid":"k1","typ":"JWT","alg":"RS256"}'},
    {"raw_header": b'{"alg":"none","kid":"k1","typ":"JWT","alg":"RS256"}'},
    {"raw_header": b'{"kid":"k1","kid":"k1","typ":"JWT","alg":"RS256"}'},
    {"raw_header": rb'{"kid":"k1","\u006bid":"k1","typ":"JWT","alg":"RS256"}'},
    {"raw_claims": lambda: "{" + good_claims() + f',"exp":{now() + 7200}' + "}"},
    {"raw_claims": lambda: '{"aud":["projects/1"],' + good_claims() + "}"},
    {"raw_claims": lambda: '{"sub":"1:1:web:a",' + good_claims() + "}"},
], ids=["alg-twice", "alg-none-first", "kid-twice", "kid-escaped", "exp", "aud", "sub"])
def test_T11_a_member_that_occurs_twice_is_refused(proxy, origin, mint, parts):
    parts = {name: part().encode() if callable(part) else part for name, part in parts.items()}
    assert_judged(proxy, origin, mint(**parts), "invalid", "malformed")


def other_spelling(segment: str) -> str:
    """The same bytes in base64url with stray bits in the last character."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    stray = {2: 0x0F, 3: 0x03}[len(segment) % 4]
    last = alphabet.index(segment[-1])
    assert last & stray == 0, "not canonical to begin with"
    other = segment[:-1] + alphabet[last | 1]
    padded = other + "=" * (-len(other) % 4)
    assert base64.urlsafe_b64decode(padded) == base64.urlsafe_b64decode(
        segment + "=" * (-len(segment) % 4))
    return other


@pytest.mark.parametrize("change", [
    lambda token: token + "=", lambda token: token + "==",
    lambda token: token.replace("-", "+").replace("_", "/"),
    lambda token: token[:30] + " " + token[30:], lambda token: token[:30] + "\t" + token[30:],
    lambda token: token.rpartition(".")[0] + "." + other_spelling(token.rpartition(".")[2]),
], ids=["padding", "two-paddings", "standard-alphabet", "space", "tab", "stray-bits"])
def test_T12_a_token_has_one_spelling(proxy, origin, mint, change):
    token = mint()
    while not set("-_") & set(token.split(".")[2]):
        token = mint()
    tokens.minted.add(change(token))
    assert_judged(proxy, origin, change(token), "invalid", "malformed")


@pytest.mark.parametrize("token", [
    lambda mint: mint(claims={"pad": "x" * 8000}), lambda mint: "a." * 4 + "a",
    lambda mint: ".".join(mint().split(".")[:2]), lambda mint: mint() + ".AAAA",
    lambda mint: mint() + "." + "A" * 40 + ".AAAA", lambda mint: "..", lambda mint: "x",
    lambda mint: "." + mint(), lambda mint: mint() + ".",
], ids=["too-long", "five-short", "two", "four", "five", "empty-segments", "one", "leading", "trailing"])
def test_T13_only_three_segments_of_sensible_length_are_a_token(proxy, origin, mint, token):
    assert_judged(proxy, origin, token(mint), "invalid", "malformed")


def test_T14_the_placeholder_is_a_failed_attestation_and_fetches_nothing(
        start, origin, key_server):
    proxy = start(origin, jwks=key_server.url, projects=PROJECT)
    assert_judged(proxy, origin, tokens.PLACEHOLDER, "attestation_failed")
    assert key_server.hits == 1
    proxy.expect_metric(1, "portcullis_requests_total", verdict="attestation_failed",
                        action="reject", route="enforced")
    proxy.expect_metric(1, "portcullis_requests_total", verdict="attestation_failed",
                        action="would_reject", route="monitored")


@pytest.mark.parametrize("age, verdict", [(45, ("verified", None)), (75, ("invalid", "expired"))])
def test_T15_expiry_has_the_documented_leeway(proxy, origin, mint, age, verdict):
    token = mint(claims={"iat": now() - 3600, "exp": now() - age})
    assert_judged(proxy, origin, token, *verdict)


def test_T15_the_leeway_is_configurable(start, origin, mint):
    proxy = start(origin, projects=PROJECTS.replace("apps =", 'leeway = "0s"\napps ='))
    token = mint(claims={"iat": now() - 3600, "exp": now() - 2})
    assert_judged(proxy, origin, token, "invalid", "expired")


def test_T16_a_remembered_token_is_forgotten_when_it_expires(start, origin, mint):
    proxy = start(origin, projects=PROJECTS.replace("apps =", 'leeway = "0s"\napps ='))
    token = mint(claims={"iat": now(), "exp": now() + 3})
    with proxy.connect() as connection:
        ask = request("GET", "/enforced/x", token=token)
        assert connection.ask(ask).status == 200
        assert connection.ask(ask).status == 200
        wait_until(lambda: connection.ask(ask).status == 401, "the token expires")
        assert now() >= json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["exp"]
        assert connection.ask(ask).code == "token_expired"


def test_T16_the_cache_tells_tokens_apart_by_every_byte(proxy, origin, mint):
    token = mint()
    assert_judged(proxy, origin, token, "verified")
    header, claims, signature = token.split(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    assert_judged(proxy, origin, f"{header}.{claims}.{flipped}", "invalid", "signature")
    assert_judged(proxy, origin, token, "verified")


def test_a_debug_secret_is_explained_but_not_repeated(proxy, origin):
    secret = "7D6C9A9E-3F7B-4B5E-9E0B-0C6C1B1A2F3D"
    assert_judged(proxy, origin, secret, "invalid", "malformed")
    proxy.wait_for_record(lambda record: "debug" in record["msg"].lower() and record["level"] == "warning",
                          "one that explains the debug secret")
    assert secret not in proxy.output()
