"""C1, C2, W7, W12: what a page sees in a real browser, over TLS and HTTP/2, and what the log says of it."""

import json
import time

import pytest

from conftest import running_proxy
from harness import chromium
from harness.certificates import Authority
from harness.chromium import Browser, Page, PageError
from harness.origin import Gate
from harness.proxy import PROJECT

APP, API, STRANGER = (f"https://{name}.example.test" for name in ("app", "api", "stranger"))

pytestmark = pytest.mark.skipif(
    chromium.BINARY is None, reason="chromium is not installed: `make setup` does it")

ROUTES = '''
[[route]]
name = "page"
path = "/page"
upstream = "api"
app_check = "off"

[[route]]
name = "same"
hosts = ["app.example.test"]
path = "/data/*"
upstream = "api"
app_check = "enforce"

[[route]]
name = "cross"
hosts = ["api.example.test"]
path = "/v1/*"
upstream = "api"
app_check = "enforce"
cors = { allow_origins = ["https://app.example.test"], answer_preflights = true, allow_methods = ["GET", "PUT"], \
allow_headers = ["Content-Type"], max_age = "10m" }

[[route]]
name = "events"
hosts = ["app.example.test"]
path = "/events/*"
upstream = "api"
app_check = "monitor"

[[route]]
name = "socket"
hosts = ["api.example.test"]
path = "/socket/*"
upstream = "sockets"
app_check = "enforce"
websocket_token = "protocol"
'''

# What a page that uses fetch keeps of an answer, its failure included: then there is nothing but a TypeError.
ASK = """async (url, options) => {
    try {
        const answer = await fetch(url, options);
        return {status: answer.status, fields: Object.fromEntries(answer.headers), text: await answer.text()};
    } catch (error) {
        return {error: error.name};
    }
}"""


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"))
    return authority.issue("*.example.test", file="pages")


@pytest.fixture(scope="module")
def module_proxy(module_origin, module_backend, key_file, identity):
    with running_proxy(
            [module_origin], key_file, routes=ROUTES, projects=PROJECT,
            extra=f'[upstream.sockets]\nservers = ["127.0.0.1:{module_backend.port}"]\n',
            listener=f'tls.certificates = [{identity.toml}]\nprotocols = ["h2", "http/1.1"]\n') as proxy:
        yield proxy


@pytest.fixture(scope="module")
def browsers(module_proxy, identity, tmp_path_factory):
    """One browser for each set of options, started when a test asks for it first."""
    started = {}

    def make(*options: str) -> Browser:
        if options not in started:
            started[options] = Browser(tmp_path_factory.mktemp("browser"), port=module_proxy.port,
                                       trusts=identity.x509, options=options)
        return started[options]

    yield make
    for browser in started.values():
        browser.stop()


@pytest.fixture
def visit(browsers, proxy, origin):
    """Opens a page of an origin, with the proxy and its origin as if fresh."""
    html = b"<!doctype html><link rel=icon href=data:,><title>Page</title>"
    origin.on("/page", lambda exchange: exchange.respond(200, "Content-Type: text/html", body=html))
    opened = []

    def make(site: str = APP, *options: str) -> Page:
        opened.append(browsers(*options).open(f"{site}/page"))
        return opened[-1]

    yield make
    for page in opened:
        page.close()


def seen(record: dict, *names: str) -> tuple:
    return tuple(record.get(name) for name in names)


def with_token(token: str, **options) -> dict:
    return {"headers": {"X-Firebase-AppCheck": token}, **options}


def test_a_page_loads_over_http_2(proxy, visit):
    page = visit()
    assert page.run("() => document.title") == "Page"
    assert page.run("() => isSecureContext")
    assert page.protocols() == {f"{APP}/page": "h2"}
    record = proxy.access_of("/page")
    assert seen(record, "protocol", "tls_version", "sni", "host", "verdict", "status") == (
        "http/2", "TLSv1.3", "app.example.test", "app.example.test", "exempt", 200)


def test_fetch_to_the_pages_own_origin(proxy, origin, visit, mint):
    page = visit()
    answer = page.run(ASK, "/data/good", with_token(mint()))
    assert (answer["status"], answer["text"]) == (200, "ok")
    assert origin.last().get("x-appcheck-verdict") == "verified"
    refused = page.run(ASK, "/data/none", {})
    assert refused["status"] == 401
    # To its own origin a page may read every field.
    assert refused["fields"]["www-authenticate"] == 'AppCheck error="token_missing"'
    assert refused["fields"]["content-type"] == "application/problem+json"
    assert json.loads(refused["text"])["code"] == "token_missing"
    assert origin.last().target == "/data/good"
    assert set(page.protocols().values()) == {"h2"}
    words = ("protocol", "method", "verdict", "action", "status")
    assert seen(proxy.access_of("/data/good"), *words) == ("http/2", "GET", "verified", "allow", 200)
    assert seen(proxy.access_of("/data/none"), *words) == ("http/2", "GET", "missing", "reject", 401)


def test_C1_fetch_to_another_origin_after_its_preflight(proxy, origin, visit, mint):
    origin.on("/v1/good", lambda exchange: exchange.respond(
        200, f"Access-Control-Allow-Origin: {APP}", "Vary: Origin", body=b"data"))
    page = visit()
    options = with_token(mint(), method="PUT", body="{}")
    options["headers"]["Content-Type"] = "application/json"
    answer = page.run(ASK, f"{API}/v1/good", options)
    assert (answer.get("status"), answer.get("text")) == (200, "data"), answer
    # The preflight went no further than the proxy, which the browser asked by itself.
    assert [(request.method, request.body) for request in origin.requests if request.target == "/v1/good"] == [
        ("PUT", b"{}")]
    assert origin.last().get("x-appcheck-verdict") == "verified"
    words = ("protocol", "method", "route", "verdict", "action")
    preflight, request = proxy.access_of("/v1/good"), proxy.access_of("/v1/good", 1)
    assert seen(preflight, *words) == ("http/2", "OPTIONS", "cross", "exempt", "allow")
    assert seen(request, *words) == ("http/2", "PUT", "cross", "verified", "allow")


def test_C1_a_preflight_is_kept_as_long_as_the_route_says(proxy, origin, visit, mint):
    origin.on("/v1/kept", lambda exchange: exchange.respond(200, f"Access-Control-Allow-Origin: {APP}"))
    page = visit()
    for _ in range(3):
        assert page.run(ASK, f"{API}/v1/kept", with_token(mint()))["status"] == 200
    methods = [proxy.access_of("/v1/kept", index)["method"] for index in range(4)]
    assert methods == ["OPTIONS", "GET", "GET", "GET"]


@pytest.mark.parametrize("path, method", [("/v1/method", "DELETE"), ("/v1/field", "GET")])
def test_C1_what_the_preflight_does_not_allow_is_never_sent(proxy, origin, visit, mint, path, method):
    page = visit()
    options = with_token(mint(), method=method)
    if method == "GET":
        options["headers"]["X-Other"] = "1"
    assert page.run(ASK, API + path, options) == {"error": "TypeError"}
    assert proxy.access_of(path)["method"] == "OPTIONS"
    # By when this one is there, another would be, too.
    assert page.run(ASK, "/data/after", {})["status"] == 401
    proxy.access_of("/data/after")
    assert [record["method"] for record in proxy.access() if record["target"] == path] == ["OPTIONS"]
    assert path not in origin.targets()


REJECTIONS = {
    "missing": (lambda mint, keys: None, "token_missing", "missing", "unknown_origin"),
    "expired": (lambda mint, keys: mint(lifetime=-300, claims={"iat": int(time.time()) - 3900}), "token_expired",
                "invalid", "expired"),
    "forged": (lambda mint, keys: mint(keys.stranger), "token_invalid", "invalid", "signature")}


@pytest.mark.parametrize("make, code, verdict, reason", REJECTIONS.values(), ids=REJECTIONS)
def test_C2_a_rejection_can_be_read_from_another_origin(
        proxy, origin, visit, mint, keys, make, code, verdict, reason):
    page = visit()
    token = make(mint, keys)
    answer = page.run(ASK, f"{API}/v1/{code}", with_token(token) if token else {})
    assert answer.get("status") == 401, answer
    problem = json.loads(answer["text"])
    assert (problem["code"], problem["status"]) == (code, 401)
    # The fields that the page may read are those of the answer that are exposed, or safelisted by the standard.
    # With a token there was a preflight before it.
    record = proxy.access_of(f"/v1/{code}", 1 if token else 0)
    assert answer["fields"] == {
        "www-authenticate": f'AppCheck error="{code}"', "x-request-id": record["request_id"],
        "content-type": "application/problem+json", "content-length": str(len(answer["text"])),
        "cache-control": "no-store"}
    assert seen(record, "protocol", "verdict", "reason", "action", "code") == (
        "http/2", verdict, reason, "reject", code)
    assert f"/v1/{code}" not in origin.targets()


def test_C2_a_page_of_a_stranger_can_read_nothing(proxy, origin, visit, mint):
    page = visit(STRANGER)
    assert page.run(ASK, f"{API}/v1/simple", {}) == {"error": "TypeError"}
    assert page.run(ASK, f"{API}/v1/stolen", with_token(mint())) == {"error": "TypeError"}
    # The first is sent and refused; the second ends with its preflight.
    assert seen(proxy.access_of("/v1/simple"), "method", "verdict", "status") == ("GET", "missing", 401)
    assert seen(proxy.access_of("/v1/stolen"), "method", "verdict") == ("OPTIONS", "exempt")
    assert origin.targets() == ["/page"]


STREAM = """async (url, options) => {
    const reader = (await fetch(url, options)).body.getReader();
    const pieces = [], decoder = new TextDecoder();
    for (;;) {
        const {done, value} = await reader.read();
        if (done) return pieces;
        pieces.push(decoder.decode(value));
        await fetch("/data/got", {method: "POST", headers: options.headers, body: pieces.at(-1)});
    }
}"""


def one_by_one(origin, *pieces: bytes, content_type: str = "text/plain"):
    """A script that sends a piece, and the next one only when the page has said that it has it."""
    gates = {piece: Gate() for piece in pieces}

    def got(exchange):
        gates[exchange.request.body].open()
        exchange.respond(204)

    def script(exchange):
        exchange.send(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nCache-Control: no-cache\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n".encode())
        for piece in pieces:
            exchange.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            assert gates[piece].wait(), f"the page does not have {piece}"
        exchange.send(b"0\r\n\r\n")

    origin.on("/data/got", got)
    return script


def test_W12_a_stream_arrives_as_it_is_sent(proxy, origin, visit, mint):
    origin.on("/data/stream", one_by_one(origin, b"one", b"two", b"three"))
    page = visit()
    assert page.run(STREAM, "/data/stream", with_token(mint())) == ["one", "two", "three"]
    assert proxy.access_of("/data/stream")["verdict"] == "verified"


EVENTS = """(url, options, count) => new Promise((resolve, reject) => {
    const source = new EventSource(url), seen = [];
    source.addEventListener("tick", async (event) => {
        seen.push([event.data, event.lastEventId]);
        if (seen.length == count) {
            source.close();
            resolve(seen);
        }
        // As the origin wrote it, so that the origin can tell which one has arrived.
        const body = `event: tick\\nid: ${event.lastEventId}\\ndata: ${event.data}\\n\\n`;
        await fetch("/data/got", {method: "POST", headers: options.headers, body});
    });
    source.onerror = () => reject(new Error(`state ${source.readyState} after ${seen.length} events`));
})"""


def test_W12_events_arrive_as_they_are_sent(proxy, origin, visit, mint):
    pieces = [b"event: tick\nid: %d\ndata: number %d\n\n" % (number, number) for number in range(3)]
    origin.on("/events/ticks", one_by_one(origin, *pieces, content_type="text/event-stream"))
    page = visit()
    assert page.run(EVENTS, "/events/ticks", with_token(mint()), 3) == [
        [f"number {number}", str(number)] for number in range(3)]
    # A browser sets no field of this request, so that there is no token to judge.
    assert seen(proxy.access_of("/events/ticks"), "protocol", "verdict", "action") == (
        "http/2", "missing", "would_reject")
    assert page.protocols()[f"{APP}/events/ticks"] == "h2"


def test_W12_events_that_are_refused_are_not_asked_for_again(proxy, origin, visit):
    page = visit()
    with pytest.raises(PageError, match="state 2 after 0 events"):
        page.run(EVENTS, "/data/ticks", {}, 1)
    assert seen(proxy.access_of("/data/ticks"), "verdict", "status") == ("missing", 401)
    assert "/data/ticks" not in origin.targets()


def test_many_requests_of_a_page_share_one_connection(proxy, origin, visit, mint):
    page = visit()
    statuses = page.run("""async (options) => {
        const answers = Array.from({length: 60}, (_, number) => fetch(`/data/many-${number}`, options));
        return (await Promise.all(answers)).map((answer) => answer.status);
    }""", with_token(mint()))
    assert statuses == [200] * 60
    connections = {answer["connectionId"] for answer in page.answers() if "/data/many-" in answer["url"]}
    assert len(connections) == 1
    records = [proxy.access_of(f"/data/many-{number}") for number in range(60)]
    assert {seen(record, "protocol", "verdict") for record in records} == {("http/2", "verified")}


# Sends its messages one after the other, each when the echo of the one before is there, then says goodbye.
SOCKET = """(url, protocols, messages) => new Promise((resolve) => {
    const socket = new WebSocket(url, protocols), echoes = [];
    const next = () => {
        if (echoes.length < messages.length) socket.send(messages[echoes.length]);
        else socket.close(1000, "done");
    };
    socket.onopen = next;
    socket.onmessage = (event) => { echoes.push(event.data); next(); };
    socket.onclose = (event) => resolve({protocol: socket.protocol, echoes, code: event.code, clean: event.wasClean});
})"""
SOCKETS = API.replace("https", "wss")
# Over a connection of HTTP/2 that is there, a browser uses extended CONNECT (RFC 8441).
VERSIONS = {"http/2": (), "http/1.1": ("--disable-http2",)}
over_both = pytest.mark.parametrize("protocol, options", VERSIONS.items(), ids=VERSIONS)


def connected(visit, options: tuple[str, ...]) -> Page:
    """A page that has already talked to the other origin, so that there is a connection to it."""
    page = visit(APP, *options)
    assert page.run(ASK, f"{API}/v1/first", {})["status"] == 401
    return page


@over_both
def test_W7_a_websocket_with_its_token_among_the_protocols(
        proxy, backend, visit, mint, protocol, options):
    page = connected(visit, options)
    path = f"/socket/good-{protocol[5]}"
    messages = ["one", "zwei", "x" * 100_000]
    told = page.run(SOCKET, SOCKETS + path, ["chat", f"appcheck.{mint()}"], messages)
    assert told == {"protocol": "chat", "echoes": messages, "code": 1000, "clean": True}
    fields = backend.handshakes[-1].headers
    assert fields["Sec-WebSocket-Protocol"] == "chat"
    assert (fields["X-AppCheck-Verdict"], fields["Origin"]) == ("verified", APP)
    record = proxy.access_of(path)
    assert seen(record, "protocol", "route", "verdict", "action", "app") == (
        protocol, "socket", "verified", "allow", "ios")


@over_both
@pytest.mark.parametrize("kind", ["missing", "invalid"])
def test_W7_a_websocket_that_is_refused_never_opens(
        proxy, backend, visit, mint, keys, protocol, options, kind):
    page = connected(visit, options)
    path = f"/socket/{kind}-{protocol[5]}"
    entries = ["chat"] if kind == "missing" else ["chat", f"appcheck.{mint(keys.stranger)}"]
    told = page.run(SOCKET, SOCKETS + path, entries, ["one"])
    assert told == {"protocol": "", "echoes": [], "code": 1006, "clean": False}
    assert backend.handshakes == []
    assert seen(proxy.access_of(path), "protocol", "verdict", "action", "status") == (
        protocol, kind, "reject", 401)


@over_both
def test_W7_a_page_must_offer_a_protocol_beside_its_token(proxy, backend, visit, mint, protocol, options):
    page = connected(visit, options)
    path = f"/socket/alone-{protocol[5]}"
    # The backend cannot choose what it does not see, and a browser that offered something insists on a choice.
    told = page.run(SOCKET, SOCKETS + path, [f"appcheck.{mint()}"], ["one"])
    assert told == {"protocol": "", "echoes": [], "code": 1006, "clean": False}
    assert "Sec-WebSocket-Protocol" not in backend.handshakes[-1].headers
    assert proxy.access_of(path)["verdict"] == "verified"
