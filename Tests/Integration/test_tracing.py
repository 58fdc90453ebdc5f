"""W3C Trace Context and OTLP export, checked with OpenTelemetry's own packages (pitfall O5)."""

import re
import signal
import time

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from harness import tokens
from harness.certificates import Authority
from harness.client import HOST, request
from harness.collector import CLIENT, SERVER, Collector
from harness.http2 import Client
from harness.keyserver import ConnectProxy
from harness.origin import wait_until
from harness.proxy import free_port

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ERROR = 2


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.stop()


@pytest.fixture
def traced(start, origin, collector):
    """Starts a proxy that traces; `settings` are lines of [tracing]."""

    def begin(settings: str = 'sample = "100%"', **parts):
        extra = parts.pop("extra", "")
        return start(origin, extra=extra + collector.settings + settings, **parts)

    return begin


def traceparent(origin) -> tuple[str, str, str]:
    """Trace, span and flags as the backend sees them."""
    values = origin.last().all("traceparent")
    assert len(values) == 1, values
    match = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])", values[0])
    assert match, values
    return match.groups()


def ask(proxy, *fields: str, path: str = "/open/x", **options):
    assert proxy.ask("GET", path, *fields, **options).status == 200


def test_a_span_of_the_SDK_is_the_parent_of_ours_and_ours_of_the_backend(traced, origin, collector):
    proxy = traced()
    before = time.time_ns()
    tracer = TracerProvider(sampler=ALWAYS_ON).get_tracer("test")
    with tracer.start_as_current_span("caller") as caller:
        fields = {}
        TraceContextTextMapPropagator().inject(fields)
    ask(proxy, *(f"{name}: {value}" for name, value in fields.items()), "User-Agent: test/1")
    server, client = collector.wait(1)[0], collector.wait(1, CLIENT)[0]
    context = caller.get_span_context()
    assert server.trace == client.trace == format(context.trace_id, "032x")
    assert server.parent == format(context.span_id, "016x")
    assert client.parent == server.id
    assert traceparent(origin) == (server.trace, client.id, "01")
    assert len({server.parent, server.id, client.id}) == 3
    # What the backend's SDK would make of it.
    extracted = TraceContextTextMapPropagator().extract({"traceparent": origin.last().get("traceparent")})
    assert [format(span.get_span_context().span_id, "016x") for span in extracted.values()] == [client.id]
    assert before - 10 ** 9 < server.span.start_time_unix_nano <= client.span.start_time_unix_nano
    assert client.span.end_time_unix_nano <= server.span.end_time_unix_nano < time.time_ns() + 10 ** 9
    assert server.resource["service.name"] == "portcullis" and server.resource["service.version"]
    line = proxy.access_of("/open/x")
    assert (line["trace_id"], line["span_id"]) == (server.trace, server.id)
    proxy.expect_metric(2, "portcullis_trace_spans_total", result="exported")


def test_attributes_follow_the_semantic_conventions(traced, origin, collector, mint):
    proxy = traced()
    token = mint()
    assert proxy.ask("POST", "/ios/pay?card=4111", "User-Agent: test/1", token=token, body=b"abc").status == 200
    server, client = collector.wait(1)[0], collector.wait(1, CLIENT)[0]
    assert server.span.name == "POST /ios/*" and client.span.name == "POST"
    expected = {
        "http.request.method": "POST", "url.scheme": "http", "url.path": "/ios/pay", "server.address": HOST,
        "client.address": "127.0.0.1", "network.peer.address": "127.0.0.1", "network.protocol.name": "http",
        "network.protocol.version": "1.1", "user_agent.original": "test/1", "http.route": "/ios/*",
        "http.response.status_code": 200, "http.request.body.size": 3, "portcullis.route": "ios-only",
        "portcullis.verdict": "verified", "portcullis.action": "allow", "portcullis.app": "ios"}
    assert {name: server[name] for name in expected} == expected
    assert server["portcullis.request_id"] == origin.last().get("x-request-id")
    assert "portcullis.reason" not in server.attributes and "error.type" not in server.attributes
    assert (client["server.address"], client["server.port"]) == ("127.0.0.1", origin.port)
    assert client["portcullis.upstream"] == "api" and client["http.response.status_code"] == 200
    assert server.span.status.code == client.span.status.code == 0


def test_a_refusal_tells_its_reason_and_is_no_error_of_ours(traced, origin, collector, mint):
    proxy = traced()
    old = mint(claims={"exp": int(time.time()) - 600, "iat": int(time.time()) - 4000})
    assert proxy.ask("GET", "/enforced/x", token=old).status == 401
    assert proxy.ask("GET", "/nowhere").status == 404
    refused, lost = sorted(collector.wait(2), key=lambda span: span["url.path"])
    assert (refused["portcullis.verdict"], refused["portcullis.reason"]) == ("invalid", "expired")
    assert (refused["portcullis.action"], refused["portcullis.code"]) == ("reject", "token_expired")
    assert refused["http.response.status_code"] == 401 and refused.span.status.code == 0
    assert lost.span.name == "GET" and lost["http.route"] is None
    assert collector.of(CLIENT) == []


def test_a_backend_that_is_gone_is_an_error(start, collector):
    proxy = start(free_port(), extra=collector.settings + "sample = 100")
    assert proxy.ask("GET", "/open/x").status == 502
    server, client = collector.wait(1)[0], collector.wait(1, CLIENT)[0]
    assert server.span.status.code == client.span.status.code == ERROR
    assert server["error.type"] == client["error.type"] == "upstream_connect"
    assert server["http.response.status_code"] == 502 and client["http.response.status_code"] is None


def test_O5_no_token_and_no_query_is_exported(traced, collector, mint):
    proxy = traced()
    token = mint()
    for path in (f"/open/x?token={token}&pin=hunter2", f"/open/{token}/x", "/open/x?pin=hunter2#"):
        proxy.ask("GET", path, f"User-Agent: {token}", f"X-Other: {token}", token=token)
    proxy.ask("GET", "/enforced/x", token=token)
    collector.wait(3)
    exported = b"".join(collector.bodies)
    assert b"hunter2" not in exported
    for secret in tokens.secrets_of(token):
        assert secret.encode() not in exported


@pytest.mark.parametrize("sampled", [True, False])
def test_the_caller_decides_whether_its_trace_is_recorded(traced, origin, collector, sampled):
    proxy = traced('sample = "0%"' if sampled else 'sample = "100%"')
    tracer = TracerProvider(sampler=ALWAYS_ON if sampled else ALWAYS_OFF).get_tracer("test")
    with tracer.start_as_current_span("caller"):
        fields = {}
        TraceContextTextMapPropagator().inject(fields)
    ask(proxy, f"traceparent: {fields['traceparent']}")
    trace, span, flags = traceparent(origin)
    assert fields["traceparent"].split("-")[1] == trace and fields["traceparent"].split("-")[2] != span
    assert flags == ("01" if sampled else "00")
    if sampled:
        assert collector.wait(1)[0].trace == trace
    proxy.stop()
    assert len(collector.of(SERVER)) == (1 if sampled else 0)


MALFORMED = {
    "version": f"ff-{TRACE}-{SPAN}-01", "capitals": f"00-{TRACE.upper()}-{SPAN}-01", "short": f"00-{TRACE}-{SPAN}-1",
    "long": f"00-{TRACE}-{SPAN}-01-x", "no-trace": f"00-{'0' * 32}-{SPAN}-01", "no-span": f"00-{TRACE}-{'0' * 16}-01",
    "letters": f"00-{TRACE[:-1]}g-{SPAN}-01", "empty": "", "list": f"00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01",
    "separators": f"00_{TRACE}_{SPAN}_01", "future-glued": f"01-{TRACE}-{SPAN}-01x"}


@pytest.fixture(scope="module")
def module_collector():
    collector = Collector()
    yield collector
    collector.stop()


@pytest.fixture(scope="module")
def module_proxy(module_origin, key_file, module_collector):
    from conftest import running_proxy

    with running_proxy([module_origin], key_file, extra=module_collector.settings + "sample = 100") as proxy:
        yield proxy


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_traceparent_begins_a_trace(proxy, origin, value):
    ask(proxy, f"traceparent: {value}", "tracestate: a=b")
    trace, span, flags = traceparent(origin)
    assert trace not in (TRACE, "0" * 32) and span not in (SPAN, "0" * 16) and flags == "01"
    assert origin.last().all("tracestate") == []


def test_two_traceparents_are_none(proxy, origin):
    ask(proxy, *[f"traceparent: 00-{TRACE}-{SPAN}-01"] * 2)
    assert traceparent(origin)[0] != TRACE


def test_a_later_version_is_read_as_far_as_it_is_known(proxy, origin):
    ask(proxy, f"traceparent: cc-{TRACE}-{SPAN}-01-what-the-future-brings", "tracestate: a=b")
    assert traceparent(origin)[0] == TRACE
    assert origin.last().all("tracestate") == ["a=b"]


STATES = {
    "one": (["a=b"], True), "two-lines": (["a=b", "c=d"], True), "tenant": (["1a@sys=x y,  b=c"], True),
    "empty-members": (["a=b,,c=d"], True), "512": ["a=" + "x" * 254 + ",b=" + "y" * 253],
    "513": (["a=" + "x" * 254 + ",b=" + "y" * 254], False), "capital": (["A=b"], False), "no-value": (["a="], False),
    "no-key": (["=b"], False), "equals": (["a=b=c"], False), "33": ([",".join(f"k{n}=v" for n in range(33))], False),
    "32": ([",".join(f"k{n}=v" for n in range(32))], True), "second-bad": (["a=b", "C=d"], False)}


@pytest.mark.parametrize("case", STATES)
def test_a_tracestate_is_passed_on_within_bounds(proxy, origin, case):
    lines, passes = STATES[case] if isinstance(STATES[case], tuple) else (STATES[case], True)
    ask(proxy, f"traceparent: 00-{TRACE}-{SPAN}-00", *(f"tracestate: {line}" for line in lines))
    assert origin.last().all("tracestate") == (lines if passes else [])
    assert traceparent(origin)[0] == TRACE


def test_each_request_of_a_connection_has_a_trace_of_its_own(proxy, origin):
    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/open/1", f"traceparent: 00-{TRACE}-{SPAN}-01")).status == 200
        assert connection.ask(request("GET", "/open/2")).status == 200
    assert origin.requests[0].get("traceparent").split("-")[1] == TRACE
    # The next request of a connection is of no trace that came before.
    assert origin.requests[1].get("traceparent").split("-")[1] != TRACE


def test_over_HTTP2_the_same_trace_goes_on(traced, origin, collector):
    proxy = traced(listener='protocols = ["h2", "http/1.1"]')
    with Client(proxy.port) as client:
        assert client.ask("GET", "/open/x", ("traceparent", f"00-{TRACE}-{SPAN}-01")).status == 200
    span = collector.wait(1)[0]
    assert (span.trace, span.parent, span["network.protocol.version"]) == (TRACE, SPAN, "2")
    assert traceparent(origin)[0] == TRACE


def test_only_trusted_peers_may_continue_a_trace_where_that_is_asked(traced, origin, collector):
    proxy = traced('parents = "trusted"\nsample = 0')
    ask(proxy, f"traceparent: 00-{TRACE}-{SPAN}-01", "tracestate: a=b")
    trace, _, flags = traceparent(origin)
    assert trace != TRACE and flags == "00" and origin.last().all("tracestate") == []
    trusting = traced('parents = "trusted"\nsample = 0', listener='trusted_proxies = ["127.0.0.1"]')
    ask(trusting, f"traceparent: 00-{TRACE}-{SPAN}-01")
    assert traceparent(origin)[0] == collector.wait(1)[0].trace == TRACE


def test_the_share_is_of_traces_that_begin_here(traced, origin, collector):
    proxy = traced('sample = "30%"')
    with proxy.connect() as connection:
        for _ in range(400):
            assert connection.ask(request("GET", "/open/x")).status == 200
    sampled = sum(sent.get("traceparent").endswith("-01") for sent in origin.requests)
    # Six standard deviations around 120.
    assert 65 < sampled < 175
    proxy.stop()
    assert len(collector.of(SERVER)) == len(collector.of(CLIENT)) == sampled


# The collector

def test_secrets_of_the_collector_come_from_files_and_the_environment(start, origin, collector, tmp_path):
    secret = tmp_path / "key"
    secret.write_text("from-a-file\n")
    proxy = start(origin, environment={"OTLP_TOKEN": "Bearer from-the-environment"}, extra=collector.settings + f'''
sample = 100
service_name = "edge"
headers = {{ Authorization = {{ env = "OTLP_TOKEN" }}, X-Api-Key = {{ file = "{secret}" }} }}
''')
    ask(proxy)
    assert collector.wait(1)[0].resource["service.name"] == "edge"
    fields = collector.fields[0]
    assert fields["Authorization"] == "Bearer from-the-environment" and fields["X-Api-Key"] == "from-a-file"
    assert fields["Content-Type"] == "application/json" and fields["User-Agent"].startswith("portcullis/")
    assert "from-the-environment" not in proxy.output() and "from-a-file" not in proxy.output()


@pytest.fixture
def encrypted(tmp_path):
    """A collector over TLS, and who vouches for it."""
    authority = Authority(tmp_path)
    collector = Collector(tls=authority.server(authority.issue("127.0.0.1", file="collector")))
    yield collector, authority
    collector.stop()


def test_spans_go_over_TLS_and_through_an_egress_proxy(start, origin, encrypted):
    collector, authority = encrypted
    tunnel = ConnectProxy()
    proxy = start(origin, extra=collector.settings + f'''
sample = 100
ca = "{authority.path}"
egress_proxy = "http://127.0.0.1:{tunnel.port}"
''')
    ask(proxy)
    assert len(collector.wait(1)) == 1
    assert tunnel.heads[0].startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % collector.port)
    tunnel.stop()


def test_a_collector_whom_nobody_vouches_for_gets_nothing(start, origin, encrypted, tmp_path):
    collector, _ = encrypted
    other = Authority(tmp_path, "Somebody else")
    proxy = start(origin, extra=collector.settings + f'sample = 100\nca = "{other.path}"\n')
    ask(proxy)
    record = proxy.wait_for_record(lambda record: record["msg"] == "spans cannot be exported", "the reason")
    assert "certificate" in record["reason"]
    assert collector.bodies == []


def test_a_collector_that_is_busy_gets_the_spans_later_and_once(traced, collector):
    answers = iter([(503, {"Retry-After": "3"}, b""), (429, {}, b""), (200, {}, b"{}")])
    came = []
    collector.answer = lambda: (came.append(time.monotonic()), next(answers))[1]
    proxy = traced()
    ask(proxy)
    collector.wait_exports(3)
    # Left to itself it would have come back after a second or so.
    assert came[1] - came[0] >= 3
    assert len(set(collector.bodies)) == 1
    proxy.expect_metric(2, "portcullis_trace_spans_total", result="exported")
    proxy.expect_metric(0, "portcullis_trace_spans_total", result="failed")
    levels = [record["level"] for record in proxy.records if record["msg"].startswith("spans ")]
    assert levels == ["warning", "info"]


def test_a_collector_that_refuses_is_not_asked_again(traced, collector):
    collector.answer = lambda: (401, {}, b"{}")
    proxy = traced()
    ask(proxy)
    proxy.expect_metric(2, "portcullis_trace_spans_total", result="failed")
    assert len(collector.bodies) == 1


def test_spans_that_a_collector_rejects_are_counted(traced, collector):
    collector.answer = lambda: (200, {}, b'{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "old"}}')
    proxy = traced()
    ask(proxy)
    collector.wait(1)
    proxy.expect_metric(1, "portcullis_trace_spans_total", result="failed")
    proxy.expect_metric(1, "portcullis_trace_spans_total", result="exported")


def test_a_dead_collector_costs_spans_and_no_request(start, origin):
    port = free_port()
    proxy = start(origin, extra=f'[tracing]\notlp = "http://127.0.0.1:{port}/v1/traces"\nsample = 100\nqueue = 128\n')
    with proxy.connect() as connection:
        for _ in range(200):
            assert connection.ask(request("GET", "/open/x")).status == 200
    wait_until(lambda: proxy.metric("portcullis_trace_spans_total", result="dropped") >= 100, "spans are dropped")
    assert proxy.metric("portcullis_trace_spans_waiting") <= 128
    collector = Collector(port)
    collector.wait(1, within=30)

    def counted() -> float:
        return sum(proxy.metric("portcullis_trace_spans_total", result=word) for word in ("exported", "dropped"))

    wait_until(lambda: counted() == 400, "each span is sent or counted as lost")
    assert len(collector.spans) == proxy.metric("portcullis_trace_spans_total", result="exported") > 0
    collector.stop()


def test_O3_the_last_spans_are_sent_before_the_end(traced, collector):
    proxy = traced()
    ask(proxy)
    proxy.stop()
    assert len(collector.of(SERVER)) == len(collector.of(CLIENT)) == 1


def test_O3_a_collector_that_hangs_does_not_keep_the_process(traced, collector):
    collector.may_answer.clear()
    proxy = traced('sample = 100\ntimeout = "30s"')
    ask(proxy)
    begun = time.monotonic()
    proxy.stop()
    assert time.monotonic() - begun < 8


def reload(proxy, change):
    seen = len([1 for record in proxy.records if record.get("msg") == "configuration reloaded"])
    proxy.config_path.write_text(change(proxy.config_path.read_text()))
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: len([1 for record in proxy.records if record.get("msg") == "configuration reloaded"]) > seen,
               "a reload")


def test_a_reload_swaps_the_collector_and_switches_tracing_off_and_on(traced, origin, collector):
    proxy = traced()
    ask(proxy)
    collector.wait(1)
    other = Collector()
    reload(proxy, lambda text: text.replace(str(collector.port), str(other.port)) + '\nservice_name = "other"\n')
    ask(proxy)
    assert other.wait(1)[0].resource["service.name"] == "other"
    settings = other.settings + 'sample = "100%"\nservice_name = "other"\n'
    reload(proxy, lambda text: text[:text.index("[tracing]")])
    ask(proxy, f"traceparent: 00-{TRACE}-{SPAN}-01", "tracestate: A=b")
    # Switched off, everything passes as it came.
    assert origin.last().get("traceparent") == f"00-{TRACE}-{SPAN}-01" and origin.last().get("tracestate") == "A=b"
    assert "trace_id" not in proxy.access_of("/open/x", 2)
    reload(proxy, lambda text: text + settings)
    ask(proxy)
    assert len(other.wait(2)) == 2 and len(collector.of(SERVER)) == 1
    other.stop()


def test_a_new_collector_does_not_wait_for_what_the_old_one_asked_for(traced, collector):
    collector.answer = lambda: (503, {"Retry-After": "60"}, b"")
    proxy = traced()
    ask(proxy)
    collector.wait_exports(1)
    other = Collector()
    reload(proxy, lambda text: text.replace(str(collector.port), str(other.port)))
    other.wait(1)
    other.stop()
