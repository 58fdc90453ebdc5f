"""Backends that die, hang, answer 500 and come back: which servers get requests, and what is said about it."""

import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

import pytest

from harness.certificates import Authority
from harness.origin import Origin, wait_until
from harness.proxy import free_port

CHECKED = 'health = { path = "/healthz", interval = "200ms", healthy_after = 2, unhealthy_after = 2 }\nslow_start = "0s"\n'

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = sys.argv[1].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Backend:
    """A server in a process of its own, so that it can be killed, stopped in the middle of anything, and started again."""

    def __init__(self):
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, str(self.port)])
        wait_until(self._accepts, "the backend listens")

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def die(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def backends():
    made = [Backend(), Backend()]
    yield made
    for backend in made:
        backend.go_on()
        backend.die()


def spread(proxy, count: int = 20) -> Counter:
    """Which servers answer so many requests; every one of them must be answered with 200."""
    answers = Counter()
    for _ in range(count):
        response = proxy.ask("GET", "/open/x")
        assert response.status == 200, response.head
        answers[int(response.body)] += 1
    return answers


def expect_health(proxy, backend, healthy: bool):
    proxy.expect_metric(float(healthy), "portcullis_upstream_server_healthy",
                        upstream="api", server=f"127.0.0.1:{backend.port}")


@pytest.mark.parametrize("fall, rise, result", [
    ("die", "start", "connect"), ("hang", "go_on", "timeout")])
def test_a_server_that_fails_its_checks_gets_no_requests_until_it_passes_them(start, backends, fall, rise, result):
    proxy = start(*backends, upstream=CHECKED)
    assert len(spread(proxy)) == 2
    bad, good = backends
    getattr(bad, fall)()
    expect_health(proxy, bad, False)
    line = proxy.wait_for_record(lambda record: record["msg"] == "upstream server is unhealthy", "the verdict")
    assert (line["upstream"], line["server"], line["result"]) == ("api", f"127.0.0.1:{bad.port}", result)
    assert line["reason"]
    assert spread(proxy) == {good.port: 20}
    assert proxy.metric("portcullis_upstream_health_checks_total", upstream="api", result=result) >= 2
    getattr(bad, rise)()
    expect_health(proxy, bad, True)
    assert len(spread(proxy)) == 2
    # One line for each change, however many checks there were.
    messages = Counter(record["msg"] for record in proxy.records)
    assert messages["upstream server is unhealthy"] == messages["upstream server is healthy"] == 1


def test_the_status_decides_and_the_check_has_a_connection_of_its_own(start, new_origin):
    origins = [new_origin(), new_origin()]
    origins[0].on("/healthz", lambda exchange: exchange.respond(503))
    proxy = start(*origins, upstream=CHECKED.replace("unhealthy_after", 'status = "200-204", unhealthy_after'))
    expect_health(proxy, origins[0], False)
    expect_health(proxy, origins[1], True)
    checks = [one for one in origins[0].requests if one.target == "/healthz"]
    assert len({one.connection for one in checks}) == len(checks) >= 2
    assert checks[0].get("host") == f"127.0.0.1:{origins[0].port}"
    assert checks[0].get("connection") == "close" and checks[0].method == "GET"
    before = len([one for one in origins[0].requests if one.target != "/healthz"])
    for _ in range(10):
        assert proxy.ask("GET", "/open/x").status == 200
    assert len([one for one in origins[0].requests if one.target != "/healthz"]) == before
    assert proxy.admin("/readyz").status == 200, "readiness is about keys (O6)"


def test_when_all_servers_are_unhealthy_all_are_used(start, new_origin):
    origins = [new_origin(), new_origin()]
    for origin in origins:
        origin.on("/healthz", lambda exchange: exchange.respond(500))
    proxy = start(*origins, upstream=CHECKED)
    for origin in origins:
        expect_health(proxy, origin, False)
    for _ in range(10):
        assert proxy.ask("GET", "/open/x").status == 200
    assert all("/open/x" in origin.targets() for origin in origins)
    proxy.expect_metric(10, "portcullis_upstream_events_total", upstream="api", event="panic")
    assert proxy.admin("/readyz").status == 200


def test_without_a_panic_threshold_an_upstream_can_be_unavailable(start, new_origin):
    origin = new_origin()
    origin.on("/healthz", lambda exchange: exchange.respond(500))
    proxy = start(origin, upstream=CHECKED + 'panic_threshold = "0%"\n')
    expect_health(proxy, origin, False)
    response = proxy.ask("GET", "/open/x")
    assert (response.status, response.code) == (503, "upstream_unavailable")
    record = proxy.access_of("/open/x")
    assert record["failure"] == "upstream_unhealthy" and "upstream_server" not in record
    proxy.expect_metric(1, "portcullis_request_failures_total", failure="upstream_unhealthy")
    origin.on("/healthz", lambda exchange: exchange.respond(200))
    expect_health(proxy, origin, True)
    assert proxy.ask("GET", "/open/x").status == 200


def test_checks_over_tls_verify_the_certificate(start, new_origin, tmp_path):
    authority = Authority(tmp_path)
    good = new_origin(tls=authority.server(authority.issue("api.internal", file="checked")))
    bad = new_origin(tls=authority.server(authority.issue("other.internal", file="unchecked")))
    proxy = start(good, bad, upstream=CHECKED + f'tls = {{ ca = "{authority.path}", name = "api.internal" }}\n')
    expect_health(proxy, bad, False)
    expect_health(proxy, good, True)
    good.wait(lambda: "/healthz" in good.targets(), "a check")
    assert next(one for one in good.requests if one.target == "/healthz").get("host") == "api.internal"
    line = proxy.wait_for_record(lambda record: record["msg"] == "upstream server is unhealthy", "the verdict")
    assert line["result"] == "tls"


def test_a_name_that_is_an_IPv6_address_has_its_brackets_in_a_check(start, new_origin, tmp_path):
    authority = Authority(tmp_path)
    origin = new_origin(tls=authority.server(authority.issue("::1", file="literal")))
    proxy = start(origin, upstream=CHECKED + f'tls = {{ ca = "{authority.path}", name = "::1" }}\n')
    origin.wait(lambda: "/healthz" in origin.targets(), "a check")
    assert next(one for one in origin.requests if one.target == "/healthz").get("host") == "[::1]"
    expect_health(proxy, origin, True)


def test_a_server_that_resets_requests_is_ejected_and_comes_back(start, new_origin):
    bad, good = new_origin(), new_origin()
    bad.on("/open/x", lambda exchange: exchange.reset())
    proxy = start(bad, good, workers=1, upstream=(
        'balance = "round_robin"\nslow_start = "0s"\nejection = { failures = 3, time = "1s" }\n'))
    statuses = [proxy.ask("GET", "/open/x").status for _ in range(16)]
    assert statuses.count(502) == 3 and statuses[6:] == [200] * 10, statuses
    line = proxy.wait_for_record(lambda record: record["msg"] == "upstream server ejected", "the ejection")
    assert (line["server"], line["reason"]) == (f"127.0.0.1:{bad.port}", "upstream_reset")
    proxy.expect_metric(1, "portcullis_upstream_events_total", upstream="api", event="ejected")
    bad.forget()
    wait_until(lambda: proxy.ask("GET", "/open/x").status == 200 and bad.targets(), "it gets requests again")
    # One line, not one for each failed request.
    assert len([one for one in proxy.records if one["msg"] == "upstream server fails"]) == 1


def test_a_share_of_errors_ejects(start, new_origin):
    bad, good = new_origin(), new_origin()
    bad.on("/open/x", lambda exchange: exchange.respond(500))
    proxy = start(bad, good, workers=1, upstream=(
        'balance = "round_robin"\nejection = { error_share = "50%", time = "1m" }\n'))
    statuses = [proxy.ask("GET", "/open/x").status for _ in range(60)]
    assert statuses.count(500) == 20 and statuses[40:] == [200] * 20, statuses
    line = proxy.wait_for_record(lambda record: record["msg"] == "upstream server ejected", "the ejection")
    assert line["reason"] == "error_share"


def test_a_dead_server_is_one_line_in_the_log_and_the_request_goes_to_another(start, new_origin):
    good = new_origin()
    dead = free_port()
    proxy = start(dead, good, workers=1, upstream='balance = "round_robin"\nejection = { failures = 0 }\n')
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert proxy.ask("GET", "/open/x").status == 200
    lines = [record for record in proxy.records if record["msg"] == "upstream server fails"]
    assert [line["server"] for line in lines] == [f"127.0.0.1:{dead}"]
    assert {record["upstream_server"] for record in proxy.access()} == {f"127.0.0.1:{good.port}"}
    revived = Origin(port=dead)
    try:
        wait_until(lambda: proxy.ask("GET", "/open/x").status == 200 and any(
            record["msg"] == "upstream server works again" for record in proxy.records), "works again")
    finally:
        revived.stop()


# Names

class Names:
    """What the resolver of one proxy answers."""

    def __init__(self, library: pathlib.Path, folder: pathlib.Path):
        self.path = folder / "hosts"
        self.environment = {"LD_PRELOAD": str(library), "TEST_HOSTS": str(self.path)}

    def say(self, **names: str):
        fresh = self.path.with_suffix(".new")
        fresh.write_text("".join(f"{name}.test {answer}\n" for name, answer in names.items()))
        fresh.rename(self.path)

    def asked(self) -> list[str]:
        """The names that were looked up so far."""
        return pathlib.Path(f"{self.path}.asked").read_text().split()


@pytest.fixture
def names(resolver, tmp_path):
    return Names(resolver, tmp_path)


def named(port: int, *, interval: str = "1s") -> dict:
    """An upstream "named" beside the usual one, and a route to it."""
    return {"extra": f'''
[upstream.named]
servers = ["backend.test:{port}"]
resolve_interval = "{interval}"

[[route]]
name = "named"
path = "/named/*"
upstream = "named"
app_check = "off"
'''}


def listen_at(address: str, port: int) -> socket.socket:
    """A server at another address of loopback that answers every connection with its address, and closes it."""
    import threading

    listener = socket.create_server((address, port))

    def serve():
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.recv(65536)
                sock.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(address)}\r\nConnection: close\r\n\r\n"
                             f"{address}".encode())

    threading.Thread(target=serve, daemon=True).start()
    return listener


def test_names_are_looked_up_again_and_keep_their_addresses_when_the_resolver_fails(start, new_origin, names):
    port = free_port()
    listeners = [listen_at(f"127.0.0.{number}", port) for number in (2, 3)]
    names.say(backend="127.0.0.2")
    try:
        proxy = start(new_origin(), environment=names.environment, **named(port))
        assert proxy.ask("GET", "/named/x").body == b"127.0.0.2"
        names.say(backend="127.0.0.3")
        wait_until(lambda: proxy.ask("GET", "/named/x").body == b"127.0.0.3", "the new address is used")
        line = proxy.wait_for_record(lambda record: "other addresses" in record["msg"], "the change")
        assert (line["before"], line["after"]) == (f"127.0.0.2:{port}", f"127.0.0.3:{port}")
        proxy.wait_for_record(lambda record: record.get("upstream_server") == f"127.0.0.3:{port}", "its server")
        names.say(backend="fail")
        proxy.wait_for_record(lambda record: "last addresses stay" in record["msg"], "the failure")
        assert proxy.ask("GET", "/named/x").body == b"127.0.0.3"
        names.say(backend="127.0.0.3 127.0.0.2")
        wait_until(lambda: {proxy.ask("GET", "/named/x").body for _ in range(8)} == {b"127.0.0.2", b"127.0.0.3"},
                   "both addresses are used")
        # The log names the one of several addresses that was asked.
        for address in (2, 3):
            answered = [one for one in proxy.access() if one.get("upstream_server") == f"127.0.0.{address}:{port}"]
            assert answered
        assert len([one for one in proxy.records if "stay in use" in one["msg"]]) == 1, "one line for a failure"
    finally:
        for listener in listeners:
            listener.close()


def test_names_are_looked_up_again_when_their_time_to_live_is_over(start, new_origin, names):
    port = free_port()
    listeners = [listen_at(f"127.0.0.{number}", port) for number in (2, 3)]
    names.say(backend="127.0.0.2 ttl=1")
    try:
        proxy = start(new_origin(), environment=names.environment, **named(port, interval="1h"))
        assert proxy.ask("GET", "/named/x").body == b"127.0.0.2"
        # An hour from now, if it were not for that.
        names.say(backend="127.0.0.3 ttl=3600")
        wait_until(lambda: proxy.ask("GET", "/named/x").body == b"127.0.0.3", "the new address is used")
        # And no oftener than the records say; the last look-up may have come between the two answers.
        time.sleep(1.5)
        looked_up = len(names.asked())
        time.sleep(2.5)
        assert len(names.asked()) == looked_up
    finally:
        for listener in listeners:
            listener.close()


def test_a_resolver_that_hangs_holds_up_neither_requests_nor_reloads_nor_the_end(start, new_origin, names):
    """SIGHUP of a configuration whose names are known takes effect at once; SIGTERM does not wait for a look-up."""
    port = free_port()
    listener = listen_at("127.0.0.2", port)
    names.say(backend="127.0.0.2")
    try:
        proxy = start(new_origin(), environment=names.environment, **named(port))
        assert proxy.ask("GET", "/named/x").status == 200
        names.say(backend="hang", new="hang")
        begun = time.monotonic()
        proxy.signal(signal.SIGHUP)
        proxy.wait_for_record(lambda record: record["msg"] == "configuration reloaded", "the reload")
        assert time.monotonic() - begun < 3
        assert proxy.ask("GET", "/named/x").body == b"127.0.0.2"
        # A name that was never looked up is waited for, but not by whoever wants the end.
        proxy.config_path.write_text(proxy.config_path.read_text().replace("backend.test", "new.test"))
        proxy.signal(signal.SIGHUP)
        wait_until(lambda: "new.test" in names.asked(), "the look-up")
        begun = time.monotonic()
        proxy.stop()
        assert time.monotonic() - begun < 3
    finally:
        listener.close()


def test_a_start_does_not_wait_long_for_a_resolver_that_hangs(start, new_origin, names):
    names.say(backend="hang")
    proxy = start(new_origin(), environment=names.environment, **named(free_port()))
    assert proxy.ask("GET", "/open/x").status == 200
    assert proxy.ask("GET", "/named/x").status == 502
    assert proxy.access_of("/named/x")["failure"] == "upstream_unresolved"
