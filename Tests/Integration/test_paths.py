"""P: one reading of the target, for the policy and for the backend alike."""

from urllib.parse import unquote

import pytest

from conftest import running_proxy
from harness.client import HOST, request
from judging import assert_rejected
from refusals import assert_refused

# "/admin" is protected, everything under "/" is open: whatever reaches the origin as something that a lenient
# backend reads as /admin must have been judged as /admin.
ROUTES = '''
[[route]]
name = "admin"
path = "/admin"
upstream = "api"
app_check = "enforce"

[[route]]
name = "admin-tree"
path = "/admin/*"
upstream = "api"
app_check = "enforce"

[[route]]
name = "marker"
path = "/open/*"
upstream = "api"
app_check = "off"

[[route]]
name = "public"
path = "/public/*"
upstream = "api"
app_check = "off"

[[route]]
name = "posts"
path = "/by-method/*"
methods = ["POST"]
upstream = "api"
app_check = "enforce"

[[route]]
name = "gets"
path = "/by-method/*"
methods = ["GET"]
upstream = "api"
app_check = "off"

[[route]]
name = "get-enforced"
path = "/head/*"
methods = ["GET"]
upstream = "api"
app_check = "enforce"

[[route]]
name = "other-host"
hosts = ["other.example.test"]
path = "/admin"
upstream = "api"
app_check = "off"

[[route]]
name = "any-subdomain"
hosts = ["*.wild.test"]
path = "/wild"
upstream = "api"
app_check = "off"
'''


@pytest.fixture(scope="module")
def guarded(module_origin, key_file):
    with running_proxy([module_origin], key_file, routes=ROUTES) as proxy:
        yield proxy


DISGUISES = [
    "/public/../admin", "/public/%2e%2e/admin", "/public/%2E./admin", "/public%2f..%2fadmin", "//admin",
    "/admin/.", "/./admin", "/%61dmin", "/admin%00", "/admin;x=1", "\\admin", "/\\admin", "/public\\..\\admin",
    "/public/..\\admin", "/admin%5c", "/admin?", "/admin?x=/public/", "/admin/", "/admin#x", "/%2561dmin",
    "/public/..;/admin", "/public/%252e%252e/admin", "/public/x/../../admin", "/public/.%00./admin",
    "/public/%2e%2e%2fadmin", "/public//../admin", "/admin%2f", "/admin%20", "/admin/..;/admin",
    "/public/%c0%ae%c0%ae/admin", "/public/%u002e%u002e/admin", "/public/..%2fadmin", "/public/...//admin",
    "/public/../admin?x", "/admin/%2e", "/a%64min", "/ADMIN", "/Admin/", "/public/..", "/public/.", "/admin%zz",
    "/;/admin", "/admin;", "/admin;/x", "/admin;x/y", "/;x=1/admin", "/.;/admin", "//admin/x", "/admin//", "///admin",
    "/public;/../admin", "/public/;/../admin", "/public/;/../../admin", "/public//..//admin", "/public/..//admin",
    "/public//../../admin", "/x;/../admin", "/public/%3B/../../admin", "/admin%3bx=1", "/%2e/admin", "/%2e%2e/admin",
    "/public/%2e%2e;/admin", "/public/.%2e/admin", "/public/%2e./%61dmin", "/open/../admin", "//public/../admin",
    "/public/x/%2e%2e/..//admin", "/\u00e4/../admin"]


def as_a_lenient_backend_reads(target: str) -> str:
    """What the most forgiving backend makes of a path: decoded again and again, dots resolved, no case."""
    path = target.split("?")[0].split("#")[0]
    for _ in range(3):
        path = unquote(path, "latin-1").replace("\\", "/").split("\0")[0]
    segments: list[str] = []
    for segment in path.split("/"):
        segment = segment.split(";")[0].strip()
        if segment == "..":
            segments[-1:] = []
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


@pytest.mark.parametrize("target", DISGUISES)
def test_P2_no_disguise_reaches_the_backend_under_a_weaker_policy(guarded, origin, target):
    response = guarded.ask("GET", target)
    assert response.status in (200, 400, 401, 404), response.head
    if response.status == 200:
        forwarded = origin.last().target
        assert as_a_lenient_backend_reads(forwarded).split("/")[1] != "admin", forwarded
        assert not {".", ".."} & set(forwarded.split("?")[0].split("/")), forwarded
    else:
        assert origin.requests == []


@pytest.mark.parametrize("target", [
    "/public%2f..%2fadmin", "/admin%00", "/admin%5c", "/public\\..\\admin", "/public/%2e%2e%2fadmin",
    "/public/..;/admin", "/admin%zz", "/admin%0a", "/admin%7f", "/public/../../x", "/public/%252e",
    "/public/%c0%ae", "/public/%"])
def test_P2_an_ambiguous_path_is_refused_rather_than_guessed_at(guarded, origin, target):
    assert_refused(guarded, origin, request("GET", target))


@pytest.mark.parametrize("target, forwarded", [
    ("/public/%61", "/public/a"), ("/public/%3Aa", "/public/:a"), ("/public/<a>", "/public/%3Ca%3E"),
    ("/public/%7Ea", "/public/~a"), ("/public/a%20b", "/public/a%20b"), ("/public/a?b=%2f/../", None),
    ("/public/a?", None), ("/public/%e4%bd%a0", "/public/%E4%BD%A0"), ("/public/a+b", None),
    ("/public/a%2bb", "/public/a%2Bb"),
    ("/public/:@!$&'()*,=", None), ("/public/a/../b", "/public/b"), ("/public/./a", "/public/a"),
    ("/public/a/%2e%2e/b", "/public/b"), ("/public//a", None), ("/public/a;v=1", None),
    ("/public/a%3bv=1", "/public/a%3Bv=1"), ("/public/.", "/public/")])
def test_P1_what_was_matched_is_what_is_forwarded(guarded, origin, target, forwarded):
    assert guarded.ask("GET", target).status == 200
    assert origin.last().target in {target if forwarded is None else forwarded}


def test_P1_normalising_twice_changes_nothing(guarded, origin):
    taken = 0
    for target in DISGUISES:
        if guarded.ask("GET", target).status == 200:
            taken += 1
            once = origin.last().target
            assert guarded.ask("GET", once).status == 200
            assert origin.last().target == once
    assert taken > 0


@pytest.mark.parametrize("target", ["/public/a#b", "/public/a?b#c", "/#"])
def test_P3_a_fragment_is_refused(guarded, origin, target):
    assert_refused(guarded, origin, request("GET", target))


def test_P3_the_query_chooses_no_route(guarded, origin):
    assert_rejected(guarded.ask("GET", "/admin?/public/x"), "token_missing")
    assert guarded.ask("GET", "/nothing?/public/x").status == 404
    assert guarded.ask("GET", "/public/x?/admin").status == 200


def test_P4_an_absolute_target_counts_like_its_path(guarded, origin):
    with guarded.connect() as connection:
        assert connection.ask(request("GET", f"http://{HOST}/public/x?y")).status == 200
    sent = origin.last()
    assert sent.target == "/public/x?y" and sent.get("host") == HOST
    assert_rejected(guarded.ask("GET", f"http://{HOST}/admin"), "token_missing")


@pytest.mark.parametrize("data", [
    request("GET", "http://other.example.test/public/x"),
    request("GET", f"http://user@{HOST}/public/x"),
    request("GET", f"ftp://{HOST}/public/x"),
    request("GET", f"http:///{HOST}/public/x"),
    request("GET", f"{HOST}:80"),
    request("GET", "public/x"),
    request("GET", "*"),
    request("GET", ""),
    request("GET", "/public/a b"),
    request("GET", "/public/\xe4"),
    request("GET", "/public/\x7f"),
    request("GET", "/public/\x01"),
], ids=["other-host", "userinfo", "scheme", "no-host", "authority", "relative", "asterisk-get", "empty",
        "space", "raw-latin", "delete", "control"])
def test_P4_a_target_of_another_form_is_refused(guarded, origin, data):
    assert_refused(guarded, origin, data)


@pytest.mark.parametrize("data", [
    request("CONNECT", "backend.internal:443", host="backend.internal:443"),
    request("CONNECT", "/public/x"), request("TRACE", "/public/x")], ids=["connect", "connect-path", "trace"])
def test_P4_connect_and_trace_are_refused(guarded, origin, data):
    assert_refused(guarded, origin, data, {400, 405, 501})


def test_P4_options_asterisk_is_not_forwarded_without_a_route(guarded, origin):
    response = guarded.ask("OPTIONS", "*")
    assert response.status in (200, 204, 400, 404)
    assert origin.requests == []


@pytest.mark.parametrize("host", ["OTHER.example.test", "other.example.test.", "other.example.test:80",
                                  "Other.Example.Test.:8080", "other.example.test:"])
def test_P5_one_host_has_one_canonical_name(guarded, origin, host):
    response = guarded.ask("GET", "/admin", host=host)
    assert response.status in (200, 400)
    assert response.status == 200 or host.endswith(":")


@pytest.mark.parametrize("host", ["a.wild.test", "a.b.wild.test", "A.WILD.test:1"])
def test_P5_a_wildcard_covers_its_subdomains(guarded, origin, host):
    assert guarded.ask("GET", "/wild", host=host).status == 200


@pytest.mark.parametrize("host", ["wild.test", "xwild.test", "wild.test.evil", "a.wild.test.evil"])
def test_P5_a_wildcard_covers_nothing_else(guarded, origin, host):
    assert guarded.ask("GET", "/wild", host=host).status == 404
    assert origin.requests == []


@pytest.mark.parametrize("lines", [
    [], ["Host: a.test", "Host: a.test"], ["Host: a.test", "Host: b.test"], ["Host: a.test, b.test"],
    ["Host: user@a.test"], ["Host: a.test/admin"], ["Host: a b"], ["Host: a.test:99999"],
    ["Host: a.test:8o"], ["Host: [::1"], ["Host: ::1"], ["Host: a..test"], ["Host: a\\b"], ["Host: a?b"],
    ["Host: a#b"], ["Host: a%00b"], ["Host: " + "a" * 300 + ".test"]], ids=repr)
def test_P5_any_other_host_is_refused(guarded, origin, lines):
    assert_refused(guarded, origin, request("GET", "/public/smuggled", *lines, host=None))


@pytest.mark.parametrize("host", ["[::1]", "[2001:db8::1]:8080", "127.0.0.1", "localhost", "a-b.c_d.test"])
def test_P5_every_legal_kind_of_host_passes_unchanged(guarded, origin, host):
    assert guarded.ask("GET", "/public/x", host=host).status == 200
    assert origin.last().get("host").lower() == host


def test_P6_without_a_route_nothing_is_forwarded(guarded, origin):
    for target in ("/", "/nothing", "/publi", "/publicx", "/publicx/a", "/Public/a"):
        response = guarded.ask("GET", target)
        assert response.status == 404, target
        assert response.get("content-type") == "application/problem+json"
    assert origin.requests == []


@pytest.mark.parametrize("field", ["X-HTTP-Method-Override: GET", "X-HTTP-Method: GET", "X-Method-Override: GET"])
def test_P8_a_method_override_changes_no_policy(guarded, origin, field):
    assert_rejected(guarded.ask("POST", "/by-method/x", field, body=b"a"), "token_missing")
    assert_rejected(guarded.ask("POST", "/by-method/x?_method=GET", body=b"a"), "token_missing")


def test_P8_head_follows_get(guarded, origin, mint):
    response = guarded.ask("HEAD", "/head/x")
    assert response.status == 401 and response.body == b""
    assert guarded.ask("HEAD", "/head/x", token=mint()).status == 200
    assert origin.last().method == "HEAD"
    assert guarded.ask("HEAD", "/by-method/x").status == 200


@pytest.mark.parametrize("method", ["get", "Get", "BREW", "DELETE", "PATCH", "G-E.T", "PROPFIND"])
def test_P8_an_unknown_method_gets_no_weaker_policy(guarded, origin, method):
    assert guarded.ask(method, "/by-method/x").status in (400, 404, 405)
    assert origin.requests == []
    response = guarded.ask(method, "/admin")
    assert response.status == 400 or response.code == "token_missing"


def test_P8_an_unknown_method_is_no_metric_label(guarded, origin):
    guarded.ask("XYZZYMETHOD", "/public/x")
    assert "XYZZYMETHOD" not in guarded.admin("/metrics").body.decode()


@pytest.mark.parametrize("start_line", [
    "GET  /public/x HTTP/1.1", "GET /public/x  HTTP/1.1", "GET\t/public/x HTTP/1.1", " GET /public/x HTTP/1.1",
    "GET /public/x HTTP/1.1 ", "GET /public/x", "GET /public/x http/1.1", "GET /public/x HTTP/1.10",
    "GET /public/x HTTP/2.0", "GET /public/x HTTP/0.9", "GET /public/x HTTP/1,1", "G(T /public/x HTTP/1.1",
    "GET /public/x HTTQ/1.1", "\0GET /public/x HTTP/1.1", "GET /public/x HTTP/1.1 smuggled",
    "G" * 100 + " /public/x HTTP/1.1 x"])
def test_P8_a_malformed_start_line_is_refused(guarded, origin, start_line):
    data = f"{start_line}\r\nHost: {HOST}\r\n\r\n".encode("latin-1")
    assert_refused(guarded, origin, data, {400, 505})


def test_a_target_beyond_the_limit_is_refused(guarded, origin):
    assert_refused(guarded, origin, request("GET", "/public/" + "a" * 9000), {414})
