"""K: where keys come from, and what happens when they do not."""

import dataclasses
import gzip
import json
import threading
import time

import pytest

from conftest import start_proxy
from harness import tokens
from harness.client import request
from harness.keyserver import ConnectProxy, KeyServer
from harness.origin import Gate, wait_until
from harness.proxy import PROJECT, PROJECTS, Portcullis, free_port
from harness.tokens import SigningKey, encode, key_set, number_bytes
from judging import assert_judged, assert_rejected, verdict_of

# A route table over one project, so that each key set is fetched for one reason only.
ONE = {"projects": PROJECT}


def not_ready(proxy) -> str:
    """What `/readyz` says while it answers 503."""
    response = proxy.admin("/readyz")
    assert response.status == 503, response.head + response.body
    assert proxy.admin("/healthz").status == 200
    return response.body.decode()


@pytest.mark.parametrize("how", ["refused", "500"])
def test_K1_keys_out_of_reach_at_start_are_fetched_later_without_a_restart(
        start, origin, keys, mint, how):
    port = free_port()
    server = None if how == "refused" else KeyServer(keys.first, port=port)
    if server:
        server.status = 500
    proxy = start(origin, jwks=f"http://127.0.0.1:{port}/jwks", ready="/healthz", **ONE)
    assert "production" in not_ready(proxy)
    assert_judged(proxy, origin, mint(), "unavailable", "keys")
    # A missing token is the client's fault even then.
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")
    server = server or KeyServer(keys.first, port=port)
    server.status = 200
    try:
        wait_until(lambda: proxy.admin("/readyz").status == 200, "ready", within=40)
        wait_until(lambda: proxy.ask("GET", "/enforced/x", token=mint()).status == 200, "every loop has the keys")
        assert_judged(proxy, origin, mint(), "verified")
    finally:
        server.stop()


def test_K1_an_unreadable_key_file_is_said_at_start_or_in_readyz(start, origin, tmp_path):
    proxy = start(origin, jwks=tmp_path / "nowhere.json", ready=None, **ONE)
    wait_until(lambda: proxy.process.poll() is not None or admin_answers(proxy), "an answer or an end")
    if proxy.process.poll() is None:
        assert "nowhere.json" in not_ready(proxy) + proxy.output()
    else:
        proxy.expect_failure("nowhere.json")


def admin_answers(proxy) -> bool:
    try:
        return proxy.admin("/healthz").status == 200
    except OSError:
        return False


def bad_keys(keys) -> dict[str, dict]:
    """Keys that must be skipped, whatever stands beside them."""
    small = SigningKey("small", 1024)
    good = keys.second
    public = good.private.public_key().public_numbers()
    return {
        "unknown-kty": {"kty": "AKP", "kid": "x", "alg": "ML-DSA-44", "pub": "AAAA"},
        "elliptic": {"kty": "EC", "kid": "x", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        "no-kid": good.jwk(kid=None), "encryption": good.jwk(use="enc"), "small": small.jwk(),
        "other-alg": good.jwk(alg="RS512"),
        "even-exponent": good.jwk(e=encode(number_bytes(65536))), "exponent-1": good.jwk(e="AQ"),
        "huge-exponent": good.jwk(e=encode(b"\xff" * 256)), "no-modulus": good.jwk(n=None),
        "modulus-number": good.jwk(n=5), "modulus-empty": good.jwk(n=""),
        "modulus-even": good.jwk(n=encode(number_bytes(public.n - 1))),
        "modulus-huge": good.jwk(n=encode(b"\xff" * 4096)), "not-base64": good.jwk(n="!!!!"),
        "array": [], "null": None, "string": "k1", "number": 1, "empty": {}}


def test_K5_usable_keys_survive_beside_every_kind_of_bad_one(start, origin, key_server, keys, mint):
    bad = list(bad_keys(keys).values())
    key_server.serve(*bad[:10], keys.first, *bad[10:])
    proxy = start(origin, jwks=key_server.url, **ONE)
    assert_judged(proxy, origin, mint(), "verified")
    # None of the bad ones verifies anything.
    assert_judged(proxy, origin, mint(keys.second), "invalid", "unknown_key")
    assert_judged(proxy, origin, mint(SigningKey("small", 1024)), "invalid", "unknown_key")


@pytest.mark.parametrize("changes", [{"use": None}, {"alg": None}, {"n": "padded"}, {"x5t": "abc", "ext": True}],
                         ids=["no-use", "no-alg", "leading-zero", "unknown-members"])
def test_K5_a_lenient_spelling_of_a_good_key_is_read(start, origin, key_server, keys, mint, changes):
    if changes.get("n") == "padded":
        public = keys.first.private.public_key().public_numbers()
        changes = {"n": encode(b"\0" + number_bytes(public.n))}
    key_server.body = json.dumps({"keys": [keys.first.jwk(**changes)]}).encode()
    proxy = start(origin, jwks=key_server.url, **ONE)
    assert_judged(proxy, origin, mint(), "verified")


def test_K5_a_key_id_that_occurs_twice_verifies_with_neither_or_the_first(
        start, origin, key_server, keys, mint):
    key_server.serve(keys.first, keys.second.jwk(kid="k1"), keys.wide)
    proxy = start(origin, jwks=key_server.url, **ONE)
    assert_judged(proxy, origin, mint(keys.wide), "verified")
    response = proxy.ask("GET", "/enforced/x", token=mint(keys.second, header={"kid": "k1"}))
    assert response.status == 401


HOSTILE = {
    "huge": lambda server: setattr(server, "body", b'{"keys":[' + b" " * (5 << 20) + b"]}"),
    "html": lambda server: setattr(server, "body", b"<!doctype html><title>Sign in</title>"),
    "empty-body": lambda server: setattr(server, "body", b""),
    "no-keys": lambda server: setattr(server, "body", b'{"keys":[]}'),
    "keys-object": lambda server: setattr(server, "body", b'{"keys":{}}'),
    "array": lambda server: setattr(server, "body", b"[]"),
    "deep": lambda server: setattr(server, "body", b"[" * 100_000),
    "gzip": lambda server: (setattr(server, "body", gzip.compress(server.body)),
                            server.fields.append("Content-Encoding: gzip")),
    "redirect": lambda server: (setattr(server, "status", 302),
                                server.fields.append(f"Location: http://127.0.0.1:{server.port}/elsewhere")),
    "304": lambda server: setattr(server, "status", 304),
    "204": lambda server: setattr(server, "status", 204),
    "403": lambda server: setattr(server, "status", 403),
}


@pytest.mark.parametrize("hostility", HOSTILE.values(), ids=HOSTILE)
def test_K5_a_hostile_answer_is_no_key_set_and_no_crash(start, origin, key_server, mint, hostility):
    hostility(key_server)
    proxy = start(origin, jwks=key_server.url, ready="/healthz", **ONE)
    key_server.wait_for_hits(1)
    wait_until(lambda: proxy.metric("portcullis_jwks_refreshes_total", project="production") >= 1,
               "the fetch ends")
    not_ready(proxy)
    assert_judged(proxy, origin, mint(), "unavailable", "keys")
    assert "/elsewhere" not in key_server.targets()
    assert proxy.resident_bytes() < 200 << 20


@pytest.mark.parametrize("data", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000, b""],
    ids=["two-lengths", "bad-chunk", "garbage", "short", "endless-head", "nothing"])
def test_K5_a_broken_answer_is_no_key_set_and_no_crash(start, origin, key_server, mint, data):
    key_server.answer("/jwks", data, then_close=True)
    proxy = start(origin, jwks=key_server.url, ready="/healthz", **ONE)
    wait_until(lambda: proxy.metric("portcullis_jwks_refreshes_total", project="production") >= 1,
               "the fetch ends")
    assert_judged(proxy, origin, mint(), "unavailable", "keys")


def test_K5_a_wrong_content_type_or_a_chunked_answer_does_not_matter(
        start, origin, key_server, keys, mint):
    body = json.dumps(key_set(keys.first)).encode()
    key_server.answer("/jwks", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"
                      b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert_judged(start(origin, jwks=key_server.url, **ONE), origin, mint(), "verified")


@pytest.mark.parametrize("field", ["Cache-Control: max-age=0", "Cache-Control: no-store", "Expires: 0",
                                   "Cache-Control: max-age=315360000", "Cache-Control: max-age=-1"])
def test_K6_the_servers_cache_lifetime_is_clamped(start, origin, key_server, mint, field):
    key_server.fields.append(field)
    proxy = start(origin, jwks=key_server.url, **ONE)
    with proxy.connect() as connection:
        for _ in range(30):
            assert connection.ask(request("GET", "/enforced/x", token=mint())).status == 200
    assert key_server.hits == 1


def secure(server: KeyServer, authority, more: str = "", host: str = "localhost") -> dict:
    """Parts of a configuration that fetches keys from a TLS server of the test's authority."""
    projects = PROJECT.replace("apps =", f'jwks_ca = "{authority.path}"\n{more}\napps =')
    return {"projects": projects, "jwks": f"https://{host}:{server.port}/jwks"}


@pytest.fixture
def secure_server(keys, authority):
    server = KeyServer(keys.first, tls=authority.context())
    yield server
    server.stop()


def test_keys_come_over_https_from_a_verified_server(start, origin, secure_server, authority, mint):
    proxy = start(origin, **secure(secure_server, authority))
    assert_judged(proxy, origin, mint(), "verified")
    assert secure_server.last().get("host") == f"localhost:{secure_server.port}"


def test_keys_come_over_https_from_an_ip_address(start, origin, keys, authority, mint):
    server = KeyServer(keys.first, tls=authority.context("127.0.0.1"))
    proxy = start(origin, **secure(server, authority, host="127.0.0.1"))
    assert_judged(proxy, origin, mint(), "verified")
    server.stop()


@pytest.mark.parametrize("name, expired, host", [
    ("elsewhere.example", False, "localhost"), ("localhost", True, "localhost"),
    ("localhost", False, "127.0.0.1")], ids=["wrong-name", "expired", "name-for-address"])
def test_keys_from_a_server_with_a_bad_certificate_are_not_taken(
        start, origin, keys, authority, mint, name, expired, host):
    server = KeyServer(keys.first, tls=authority.context(name, expired=expired))
    proxy = start(origin, ready="/healthz", **secure(server, authority, host=host))
    wait_until(lambda: proxy.metric("portcullis_jwks_refreshes_total", project="production") >= 1,
               "the fetch ends")
    assert "certificate" in (not_ready(proxy) + proxy.output()).lower()
    assert server.requests == []
    assert_judged(proxy, origin, mint(), "unavailable", "keys")
    server.stop()


def test_keys_from_a_server_of_an_unknown_authority_are_not_taken(start, origin, secure_server):
    proxy = start(origin, jwks=secure_server.url, projects=PROJECT, ready="/healthz")
    wait_until(lambda: proxy.metric("portcullis_jwks_refreshes_total", project="production") >= 1,
               "the fetch ends")
    not_ready(proxy)
    assert secure_server.requests == []


def test_the_system_store_can_be_named_as_openssl_reads_it(
        start, origin, secure_server, authority, mint):
    proxy = start(origin, jwks=secure_server.url, projects=PROJECT,
                  environment={"SSL_CERT_FILE": str(authority.path)})
    assert_judged(proxy, origin, mint(), "verified")


def test_key_requests_carry_the_configured_fields(start, origin, secure_server, authority):
    start(origin, **secure(secure_server, authority, 'jwks_headers = { X-Goog-Api-Key = "AIza-secret" }'))
    assert secure_server.last().get("x-goog-api-key") == "AIza-secret"


def test_keys_are_fetched_through_an_egress_proxy(start, origin, secure_server, authority, mint):
    tunnel = ConnectProxy()
    proxy = start(origin, **secure(secure_server, authority, f'egress_proxy = "http://127.0.0.1:{tunnel.port}"',
                                   host="localhost"))
    assert_judged(proxy, origin, mint(), "verified")
    head = tunnel.heads[0].decode()
    assert head.startswith(f"CONNECT localhost:{secure_server.port} HTTP/1.1\r\n")
    tunnel.stop()


def test_an_egress_proxy_is_not_passed_by_for_plain_http(start, origin, key_server, mint):
    tunnel = ConnectProxy()
    project = PROJECT + f'egress_proxy = "http://127.0.0.1:{tunnel.port}"\n'
    proxy = start(origin, jwks=key_server.url, projects=project)
    assert_judged(proxy, origin, mint(), "verified")
    assert tunnel.heads[0].decode().startswith(f"CONNECT localhost:{key_server.port} HTTP/1.1\r\n")
    tunnel.stop()


def test_an_egress_proxy_that_refuses_leaves_the_proxy_not_ready(
        start, origin, secure_server, authority):
    tunnel = ConnectProxy(refuse=True)
    proxy = start(origin, ready="/healthz",
                  **secure(secure_server, authority, f'egress_proxy = "http://127.0.0.1:{tunnel.port}"'))
    wait_until(lambda: tunnel.heads, "the egress proxy is asked")
    not_ready(proxy)
    assert secure_server.requests == []
    tunnel.stop()


def test_each_project_uses_its_own_keys_only(start, origin, keys, key_server, mint):
    second = KeyServer(keys.second)
    projects = PROJECT.replace("@JWKS@", key_server.url) + PROJECTS.removeprefix(PROJECT).replace(
        "@JWKS@", second.url)
    proxy = start(origin, projects=projects)
    foreign = {"iss": tokens.OTHER_ISSUER, "sub": tokens.OTHER_IOS,
               "aud": [f"projects/{tokens.OTHER_NUMBER}", f"projects/{tokens.OTHER_PROJECT_ID}"]}
    assert proxy.ask("GET", "/forwarding/x", token=mint(keys.second, claims=foreign)).status == 200
    assert proxy.ask("GET", "/forwarding/x", token=mint()).status == 200
    assert proxy.ask("GET", "/forwarding/x", token=mint(claims=foreign)).status == 401
    assert proxy.ask("GET", "/forwarding/x", token=mint(keys.second)).status == 401
    second.stop()


def test_keys_unavailable_is_our_fault_not_the_clients(start, origin, mint):
    proxy = start(origin, jwks=f"http://127.0.0.1:{free_port()}/jwks", ready="/healthz", **ONE)
    assert_rejected(proxy.ask("GET", "/enforced/x", token=mint()), "verification_unavailable", 503)
    proxy.ask("GET", "/monitored/x", token=mint())
    assert verdict_of(origin) == ("unavailable", "keys")
    # What is wrong with a token whatever the keys are is said all the same.
    assert_judged(proxy, origin, "x.y", "invalid", "malformed")
    assert_judged(proxy, origin, tokens.PLACEHOLDER, "attestation_failed")


def test_K7_a_file_that_changes_is_read_again(start, origin, keys, mint, tmp_path):
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(key_set(keys.first, keys.wide)))
    proxy = start(origin, jwks=path, **ONE)
    remembered = mint()
    for _ in range(5):
        assert proxy.ask("GET", "/enforced/x", token=remembered).status == 200
    replacement = tmp_path / "jwks.json.new"
    replacement.write_text(json.dumps(key_set(keys.second, keys.wide)))
    replacement.rename(path)
    wait_until(lambda: proxy.ask("GET", "/enforced/x", token=mint(keys.second)).status == 200,
               "the new key verifies")
    # On every loop: several connections, one after another.
    for _ in range(10):
        assert_rejected(proxy.ask("GET", "/enforced/x", token=remembered), "token_invalid")
    assert proxy.ask("GET", "/enforced/x", token=mint(keys.wide)).status == 200


def test_K2_a_file_that_breaks_leaves_the_last_good_keys(start, origin, keys, mint, tmp_path):
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(key_set(keys.first)))
    proxy = start(origin, jwks=path, **ONE)
    path.write_text("{")
    wait_until(lambda: failed_refreshes(proxy) >= 1, "the file is read again")
    assert_judged(proxy, origin, mint(), "verified")
    path.unlink()
    before = failed_refreshes(proxy)
    wait_until(lambda: failed_refreshes(proxy) > before, "the file is looked for again")
    assert_judged(proxy, origin, mint(), "verified")


def failed_refreshes(proxy) -> float:
    every = proxy.metric("portcullis_jwks_refreshes_total", project="production")
    return every - proxy.metric("portcullis_jwks_refreshes_total", project="production", result="success")


def test_K2_a_restart_uses_the_keys_of_the_run_before(start, origin, key_server, mint):
    proxy = start(origin, jwks=key_server.url, **ONE)
    text = proxy.config_path.read_text()
    proxy.stop()
    key_server.status = 500
    again = Portcullis(proxy.folder, text, port=proxy.port, admin_port=proxy.admin_port)
    try:
        again.wait_until_ready()
        assert_judged(again, origin, mint(), "verified")
        again.stop()
    finally:
        again.kill()


# An unknown key asks for the key set again at most every 30 s. The one proxy that has to sit that out begins before
# the first test of this module, and has done so when its turn comes.

COOL_DOWN = 30


@dataclasses.dataclass
class AskedEarly:
    """A proxy that was asked, in its cool-down, for a key that had just come in, and what came of it."""
    proxy: Portcullis
    server: KeyServer
    status: int
    hits: int
    began: float


@pytest.fixture(scope="module", autouse=True)
def asked_early(keys, module_origin, tmp_path_factory):
    server = KeyServer(keys.first, keys.wide)
    proxy = start_proxy(tmp_path_factory.mktemp("asked-early"), [module_origin], server.url, **ONE)
    try:
        proxy.wait_until_ready()
        refetch(proxy, lambda **changes: tokens.mint(keys.first, **changes))
        began = time.monotonic()
        server.wait_for_hits(2)
        server.serve(keys.first, keys.second)
        response = proxy.ask("GET", "/enforced/x", token=tokens.mint(keys.second))
        yield AskedEarly(proxy, server, response.status, server.hits, began)
        proxy.stop()
    finally:
        proxy.kill()
        server.stop()


@pytest.fixture
def served(start, origin, keys):
    """A proxy and its key server."""
    server = KeyServer(keys.first, keys.wide)
    yield start(origin, jwks=server.url, **ONE), server
    server.stop()


def refetch(proxy, mint):
    """Makes the proxy ask for the key set again, by a key id that it does not know."""
    proxy.ask("GET", "/monitored/x", token=mint(header={"kid": "unheard-of"}))


@pytest.mark.parametrize("failure", ["failing", "garbage", "stopped"])
def test_K2_the_last_good_keys_stay_when_a_refresh_fails(served, origin, mint, failure):
    proxy, server = served
    if failure == "failing":
        server.status = 500
    elif failure == "garbage":
        server.body = b'{"keys": [{"kty":'
    else:
        server.stop()
    assert failed_refreshes(proxy) == 0
    refetch(proxy, mint)
    wait_until(lambda: failed_refreshes(proxy) >= 1, "the refresh ends")
    assert_judged(proxy, origin, mint(), "verified")
    assert proxy.admin("/readyz").status == 200
    assert 0 < proxy.metric("portcullis_jwks_age_seconds", project="production") < 600
    proxy.wait_for_record(lambda record: record["level"] in ("warning", "error") and "key" in record["msg"],
                          "one that says that the refresh failed")


def test_K3_ten_thousand_unknown_keys_cost_one_fetch(served, origin, mint):
    proxy, server = served
    good = mint()
    # The signature is never looked at for an unknown key, so that one token's serves them all.
    _, claims, signature = good.split(".")
    header = '{"kid":"%s","typ":"JWT","alg":"RS256"}'
    count = 10_000

    def flood(first: int):
        with proxy.connect() as connection:
            for number in range(first, count, 4):
                token = f"{encode((header % f'random-{number}').encode())}.{claims}.{signature}"
                response = connection.ask(request("GET", "/enforced/x", token=token))
                assert response.code in ("token_invalid", "verification_unavailable")

    threads = [threading.Thread(target=flood, args=(first,)) for first in range(4)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    windows = 1 + (time.monotonic() - began) // COOL_DOWN
    assert 2 <= server.hits <= 1 + windows
    assert_judged(proxy, origin, good, "verified")


def test_K3_a_rotated_key_is_fetched_once_for_everybody_who_waits(served, origin, keys, mint):
    proxy, server = served
    server.serve(keys.first, keys.second)
    server.gate = Gate()
    rotated = [mint(keys.second) for _ in range(20)]
    connections = [proxy.connect() for _ in rotated]
    for connection, token in zip(connections, rotated):
        connection.send(request("GET", "/enforced/x", token=token))
    server.wait_for_hits(2)
    # A token of a key that is known does not wait with them.
    assert proxy.ask("GET", "/enforced/x", token=mint()).status == 200
    server.gate.open()
    statuses = [connection.read_response().status for connection in connections]
    for connection in connections:
        connection.close()
    assert statuses == [200] * 20
    assert server.hits == 2


def test_K3_nobody_waits_for_ever_for_a_key(served, origin, keys, mint):
    proxy, server = served
    server.gate = Gate()
    with proxy.connect() as connection:
        connection.send(request("GET", "/enforced/x", token=mint(keys.second)))
        server.wait_for_hits(2)
        response = connection.read_response()
    assert response.code in ("token_invalid", "verification_unavailable")
    # A monitored request is not held up at all (pitfall M1): it is answered while the fetch still hangs.
    assert proxy.ask("GET", "/monitored/x", token=mint(keys.second)).status == 200
    assert not server.gate.is_open()
    server.gate.open()


def test_K4_a_key_rotated_in_right_after_a_planned_fetch_is_found_at_once(served, keys, mint):
    proxy, server = served
    server.serve(keys.first, keys.second)
    assert proxy.ask("GET", "/enforced/x", token=mint(keys.second)).status == 200
    assert server.hits == 2


def test_K4_a_key_asked_for_too_early_is_there_when_the_cool_down_ends(asked_early, keys, mint):
    assert asked_early.status in (401, 503) and asked_early.hits == 2
    time.sleep(max(0, asked_early.began + COOL_DOWN - time.monotonic()))
    wait_until(lambda: asked_early.proxy.ask("GET", "/enforced/x", token=mint(keys.second)).status == 200,
               "the rotated key verifies")
    assert asked_early.server.hits == 3


def test_K7_a_removed_key_stops_verifying_even_remembered_tokens(served, origin, keys, mint):
    proxy, server = served
    remembered = mint()
    for _ in range(5):
        assert proxy.ask("GET", "/enforced/x", token=remembered).status == 200
    server.serve(keys.wide, keys.second)
    wait_until(lambda: proxy.ask("GET", "/enforced/x", token=mint(keys.second)).status == 200,
               "the new key verifies")
    for _ in range(10):
        assert_rejected(proxy.ask("GET", "/enforced/x", token=remembered), "token_invalid")
    assert proxy.ask("GET", "/enforced/x", token=mint(keys.wide)).status == 200
