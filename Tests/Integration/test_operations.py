"""O: start, stop, reload, and what the proxy tells the people who run it."""

import json
import multiprocessing
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import client, tokens
from harness.client import request
from harness.origin import Gate, wait_until
from harness.proxy import BINARY, PROJECT, Portcullis, free_port
from judging import assert_rejected


def reload(proxy, text: str, done):
    """Writes a configuration, sends SIGHUP and waits until every loop has it and something is different."""
    def reloads() -> int:
        return proxy.output().count("configuration reloaded")

    before = reloads()
    proxy.config_path.write_text(text)
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: reloads() > before, "the configuration was reloaded")
    wait_until(done, "the new configuration serves")


def test_O2_a_reload_changes_what_is_served(start, origin):
    proxy = start(origin)
    old = proxy.config_path.read_text()
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")
    reload(proxy, old.replace('path = "/enforced/*"', 'path = "/renamed/*"'),
           lambda: proxy.ask("GET", "/renamed/x").status == 401)
    assert proxy.ask("GET", "/enforced/x").status == 404
    # On every loop, hence on every one of many connections.
    reload(proxy, old, lambda: all(proxy.ask("GET", "/renamed/x").status == 404 for _ in range(20)))
    assert proxy.ask("GET", "/enforced/x").status == 401


def test_O2_requests_and_connections_live_through_a_reload(start, origin):
    proxy = start(origin)
    gate = Gate()
    origin.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond(body=b"survived")))
    with proxy.connect() as busy, proxy.connect() as idle:
        assert idle.ask(request("GET", "/open/x")).status == 200
        busy.send(request("GET", "/open/slow"))
        origin.wait(lambda: "/open/slow" in origin.targets(), "the slow request arrives")
        reload(proxy, proxy.config_path.read_text().replace('path = "/enforced/*"', 'path = "/renamed/*"'),
               lambda: proxy.ask("GET", "/renamed/x").status == 401)
        # A connection from before is served by the new configuration, as soon as its loop has it.
        wait_until(lambda: idle.ask(request("GET", "/renamed/x")).status == 401, "the old connection changes over")
        gate.open()
        assert busy.read_response().body == b"survived"


def test_O2_a_reload_opens_and_closes_listeners(start, origin):
    proxy = start(origin)
    text = proxy.config_path.read_text()
    second = free_port()

    def serves(port: int) -> bool:
        try:
            return client.ask(port, "GET", "/open/x").status == 200
        except (OSError, client.Closed):
            return False

    added = text + f'\n[[listener]]\nlisten = "127.0.0.1:{second}"\n'
    reload(proxy, added, lambda: serves(second))
    assert serves(proxy.port)
    reload(proxy, text, lambda: not serves(second))
    assert serves(proxy.port)


def test_O2_a_reload_whose_listener_is_taken_changes_nothing(start, origin):
    proxy = start(origin)
    text = proxy.config_path.read_text()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        changed = text.replace('path = "/enforced/*"', 'path = "/renamed/*"')
        proxy.config_path.write_text(changed + f'\n[[listener]]\nlisten = "127.0.0.1:{number}"\n')
        proxy.signal(signal.SIGHUP)
        proxy.wait_for_record(lambda record: record["level"] == "error" and str(number) in json.dumps(record),
                              "one that names the address")
    assert proxy.ask("GET", "/renamed/x").status == 404
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")


def test_O2_a_reload_in_the_middle_of_a_head_does_not_mix_configurations(start, origin):
    proxy = start(origin, workers=1)
    text = proxy.config_path.read_text()
    # One upstream more: the place of "api" among the upstreams is another one, and the last.
    more = text.replace("[upstream.api]", f'[upstream.aaa]\nservers = ["127.0.0.1:{free_port()}"]\n\n[upstream.api]')
    reload(proxy, more.replace('path = "/enforced/*"', 'path = "/renamed/*"'),
           lambda: proxy.ask("GET", "/renamed/x").status == 401)
    data = request("GET", "/open/x")
    with proxy.connect() as slow:
        slow.send(data[:10])
        proxy.expect_metric(1, "portcullis_connections", state="active")
        reload(proxy, text, lambda: proxy.ask("GET", "/enforced/x").status == 401)
        slow.send(data[10:])
        assert slow.read_response().status == 200
    assert origin.targets() == ["/open/x"]


def test_O2_an_upstream_that_is_gone_keeps_no_connection(start, origin, new_origin):
    old = new_origin()
    proxy = start(old, workers=1)
    gate = Gate()
    old.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond(body=b"finished")))
    with proxy.connect() as busy:
        busy.send(request("GET", "/open/slow"))
        old.wait(lambda: old.targets() == ["/open/slow"], "the slow request arrives")
        text = proxy.config_path.read_text().replace(f'"127.0.0.1:{old.port}"', f'"127.0.0.1:{origin.port}"')
        reload(proxy, text, lambda: proxy.ask("GET", "/open/x").status == 200 and origin.targets())
        gate.open()
        assert busy.read_response().body == b"finished"
        old.wait(lambda: not old.open_sockets, "the connection to the old upstream ends")


def test_O2_many_reloads_under_traffic_lose_no_request(start, origin, mint):
    proxy = start(origin)
    text = proxy.config_path.read_text()
    token, failures, count = mint(), [], []
    done = threading.Event()

    def traffic():
        while not done.is_set():
            with proxy.connect() as connection:
                for _ in range(20):
                    response = connection.ask(request("GET", "/enforced/x", token=token))
                    count.append(1)
                    if response.status != 200:
                        failures.append(response.head)

    threads = [threading.Thread(target=traffic) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(10):
        # Another order of the projects each time: keys must follow the configuration.
        first, second = text.index("[project.production]"), text.index("[project.other]")
        end = text.index("[upstream.api]")
        swapped = text[:first] + text[second:end] + text[first:second] + text[end:]
        proxy.config_path.write_text(swapped if number % 2 else text)
        proxy.signal(signal.SIGHUP)
        proxy.expect_metric(number + 1, "portcullis_config_reloads_total", result="success")
    done.set()
    for thread in threads:
        thread.join()
    assert failures == [] and len(count) > 50


def test_O2_counters_and_keys_live_through_a_reload(start, origin, key_server, mint):
    proxy = start(origin, jwks=key_server.url, projects=PROJECT)
    assert proxy.ask("GET", "/enforced/x", token=mint()).status == 200
    reload(proxy, proxy.config_path.read_text().replace('path = "/open/*"', 'path = "/opened/*"'),
           lambda: proxy.ask("GET", "/opened/x").status == 200)
    proxy.expect_metric(1, "portcullis_requests_total", route="enforced", verdict="verified")
    assert proxy.ask("GET", "/enforced/x", token=mint()).status == 200


def test_O2_an_invalid_reload_changes_nothing_and_says_what_is_wrong(start, origin):
    proxy = start(origin)
    good = proxy.config_path.read_text()
    proxy.config_path.write_text(good.replace("app_check", "app_chekc"))
    proxy.signal(signal.SIGHUP)
    record = proxy.wait_for_record(lambda record: "app_chekc" in json.dumps(record), "one with the mistake")
    assert record["level"] == "error"
    assert re.search(r"proxy\.conf:\d+:\d+", json.dumps(record))
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")
    proxy.expect_metric(1, "portcullis_config_reloads_total", result="failure")
    proxy.expect_metric(0, "portcullis_config_last_reload_successful")
    proxy.config_path.unlink()
    proxy.signal(signal.SIGHUP)
    assert_rejected(proxy.ask("GET", "/enforced/x"), "token_missing")


def test_O3_sigterm_lets_requests_finish_and_exits_0(start, origin):
    proxy = start(origin)
    gate = Gate()
    origin.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond(body=b"finished")))
    with proxy.connect() as busy, proxy.connect() as idle:
        assert idle.ask(request("GET", "/open/x")).status == 200
        busy.send(request("GET", "/open/slow"))
        origin.wait(lambda: "/open/slow" in origin.targets(), "the slow request arrives")
        proxy.signal(signal.SIGTERM)
        # Idle connections end at once, new ones are refused, the one in flight goes on.
        assert idle.is_closed()

        def refused() -> bool:
            try:
                with proxy.connect():
                    return False
            except ConnectionError:
                return True

        wait_until(refused, "the listener closes")
        assert proxy.process.poll() is None
        gate.open()
        response = busy.read_response()
        assert response.body == b"finished" and response.get("connection") == "close"
        assert busy.is_closed()
    assert proxy.wait_for_exit() == 0


def test_O3_readyz_says_draining_while_it_drains(start, origin):
    proxy = start(origin)
    gate = Gate()
    origin.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond()))
    with proxy.connect() as busy:
        busy.send(request("GET", "/open/slow"))
        origin.wait(lambda: origin.requests, "the request arrives")
        proxy.signal(signal.SIGTERM)
        wait_until(lambda: proxy.admin("/readyz").status == 503, "not ready")
        assert "drain" in proxy.admin("/readyz").body.decode()
        assert proxy.admin("/healthz").status == 200
        gate.open()
        assert busy.read_response().status == 200
    assert proxy.wait_for_exit() == 0


def test_O3_the_drain_has_a_limit(start, origin):
    proxy = start(origin, server='drain_timeout = "300ms"')
    gate = Gate()
    origin.on("/open/slow", lambda exchange: gate.wait() and exchange.close())
    with proxy.connect() as busy:
        busy.send(request("GET", "/open/slow"))
        origin.wait(lambda: origin.requests, "the request arrives")
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_for_exit(10) == 0
        assert busy.is_closed()
    gate.open()
    # Not the client went.
    assert proxy.access_of("/open/slow")["failure"] == "drained"


def test_O3_sigint_ends_it_too(start, origin):
    proxy = start(origin)
    proxy.signal(signal.SIGINT)
    assert proxy.wait_for_exit(10) in (0, -signal.SIGINT, 130)
    proxy.process.returncode = 0


@pytest.mark.parametrize("stray", [signal.SIGUSR1, signal.SIGXFSZ, signal.SIGPIPE], ids=lambda signal: signal.name)
def test_what_is_no_request_to_end_ends_nothing(start, origin, stray):
    """Log rotation sends SIGUSR1 to whatever it knows; a file that may not grow is an error of its own."""
    proxy = start(origin)
    with proxy.connect() as kept:
        assert kept.ask(request("GET", "/open/x")).status == 200
        proxy.signal(stray)
        if stray == signal.SIGUSR1:
            wait_until(lambda: any("SIGUSR1" in record.get("msg", "") for record in list(proxy.records)), "it is logged")
        assert kept.ask(request("GET", "/open/x")).status == 200
    assert proxy.ask("GET", "/open/x").status == 200


def test_O5_no_token_is_in_any_output_however_it_ended(start, origin, keys, mint):
    """The teardown of every proxy searches all output; this one provokes every way to end."""
    proxy = start(origin, log='format = "json"')
    origin.on("/open/resets", lambda exchange: exchange.reset())
    token = mint()
    proxy.ask("GET", "/enforced/x", token=token)
    proxy.ask("GET", f"/enforced/{token}", token=mint(keys.stranger))
    proxy.ask("GET", f"/monitored/x?appCheckToken={mint()}&other={mint()}", token=mint())
    proxy.ask("GET", f"/nothing?X-Firebase-AppCheck={mint()}")
    proxy.ask("GET", "/open/resets", token=mint())
    proxy.ask("GET", "/open/x", f"Referer: https://a.test/?ac={mint()}", f"User-Agent: {mint()}")
    proxy.ask("GET", "/open/x", host=f"{mint()[:60]}.test")
    for data in (f"GET /open/x?ac={mint()} HTTP/1.1\r\nHost : a\r\n\r\n",
                 f"{mint()} /open/x HTTP/1.1\r\n\r\n", f"GET /open/x HTTP/1.1\r\nX-Firebase-AppCheck {mint()}\r\n\r\n"):
        with proxy.connect() as connection:
            connection.send(data.encode())
            connection.read_until_closed()
    connection = proxy.connect()
    connection.send(f"GET /open/x HTTP/1.1\r\nX-Firebase-AppCheck: {mint()}".encode())
    connection.reset()
    wait_until(lambda: len(proxy.access()) >= 10, "every request is logged")


def test_O6_liveness_does_not_depend_on_keys(start, origin):
    proxy = start(origin, jwks=f"http://127.0.0.1:{free_port()}/jwks", ready="/healthz")
    assert proxy.admin("/healthz").status == 200
    response = proxy.admin("/readyz")
    assert response.status == 503
    text = response.body.decode()
    assert "production" in text and "other" in text
    # An unguarded route needs no keys.
    assert proxy.ask("GET", "/open/x").status == 200


def test_O7_the_admin_pages_are_on_no_public_listener(proxy, origin):
    for path in ("/metrics", "/healthz", "/readyz"):
        assert proxy.ask("GET", path).status == 404
        assert proxy.admin(path).status == 200
    assert origin.requests == []


def test_O7_the_admin_listener_serves_nothing_else(proxy, origin):
    assert proxy.admin("/").status in (200, 404)
    assert proxy.admin("/enforced/x").status == 404
    assert proxy.admin("/../etc/passwd").status in (400, 404)
    assert proxy.admin("/metrics", "POST").status in (404, 405)
    with client.Connection(proxy.admin_port) as connection:
        connection.send(b"nonsense\r\n\r\n")
        assert [response.status for response in connection.read_until_closed()] == [400]
    with client.Connection(proxy.admin_port) as connection:
        for _ in range(3):
            assert connection.ask(request("GET", "/healthz", host="localhost")).status == 200
    assert origin.requests == []


def test_O7_the_admin_listener_can_be_a_unix_socket(start, origin, tmp_path):
    path = tmp_path / "admin.sock"
    proxy = start(origin, ready=None)
    text = proxy.config_path.read_text()
    proxy.wait_until_ready()
    other = proxy.folder / "other.conf"
    port = free_port()
    other.write_text(text.replace(f"127.0.0.1:{proxy.admin_port}", f"unix:{path}").replace(
        f":{proxy.port}\"", f":{port}\""))
    second = Portcullis(proxy.folder, other.read_text(), port=port, admin_port=str(path))
    try:
        second.wait_until_ready()
        assert second.metrics()
        second.stop()
    finally:
        second.kill()


DOCUMENTED = {
    "portcullis_requests": "counter", "portcullis_request_duration_seconds": "histogram",
    "portcullis_upstream_duration_seconds": "histogram", "portcullis_jwks_age_seconds": "gauge",
    "portcullis_jwks_refreshes": "counter", "portcullis_connections": "gauge"}


def test_metrics_are_what_prometheus_reads(proxy, origin, mint):
    proxy.ask("GET", "/enforced/x", token=mint())
    proxy.ask("GET", "/enforced/x")
    response = proxy.admin("/metrics")
    assert response.get("content-type").startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(response.body.decode())}
    for name, kind in DOCUMENTED.items():
        assert families[name].type == kind, name
    for family in families.values():
        assert family.documentation, f"{family.name} has no HELP"
        assert family.type in ("counter", "gauge", "histogram"), f"{family.name} has no TYPE"
        assert family.samples, f"{family.name} has no sample"
    buckets = [sample for sample in families["portcullis_request_duration_seconds"].samples
               if sample.name.endswith("_bucket") and sample.labels["route"] == "enforced"]
    counts = [sample.value for sample in buckets]
    assert counts == sorted(counts) and buckets[-1].labels["le"] == "+Inf"


def test_metrics_count_every_request_once(start, origin, keys, mint):
    proxy = start(origin)
    for token in (mint(), mint(), None, "x.y.z", mint(keys.stranger), mint(claims={"sub": tokens.ANDROID})):
        proxy.ask("GET", "/ios/x", token=token)
    expected = {("ios", "verified", "", "allow"): 2, ("other", "missing", "unknown_origin", "reject"): 1,
                ("other", "invalid", "malformed", "reject"): 1, ("other", "invalid", "signature", "reject"): 1,
                ("android", "app_not_allowed", "", "reject"): 1}
    proxy.expect_metric(6, "portcullis_request_duration_seconds_count", route="ios-only")
    counted = {}
    for (name, pairs), value in proxy.metrics().items():
        labels = dict(pairs)
        if name == "portcullis_requests_total" and labels["route"] == "ios-only" and value:
            counted[labels["app"], labels["verdict"], labels["reason"], labels["action"]] = value
    assert counted == expected
    proxy.expect_metric(2, "portcullis_upstream_duration_seconds_count", upstream="api")


def test_metrics_count_connections(start, origin):
    proxy = start(origin)
    listener = f"127.0.0.1:{proxy.port}"
    connections = [proxy.connect() for _ in range(5)]
    for connection in connections:
        assert connection.ask(request("GET", "/open/x")).status == 200
    wait_until(lambda: proxy.metric("portcullis_connections", listener=listener, state="idle") == 5, "five idle")
    for connection in connections:
        connection.close()
    wait_until(lambda: proxy.metric("portcullis_connections", listener=listener) == 0, "none left")


def test_the_access_log_has_one_line_for_every_request(start, origin, mint):
    proxy = start(origin)
    origin.on("/open/resets", lambda exchange: exchange.reset())
    proxy.ask("GET", "/enforced/a?q=1", "User-Agent: tester", token=mint())
    proxy.ask("POST", "/enforced/b", body=b"hello")
    proxy.ask("GET", "/nothing/c")
    proxy.ask("GET", "/open/resets")
    with proxy.connect() as connection:
        connection.send(b"nonsense\r\n\r\n")
        connection.read_until_closed()
    wait_until(lambda: len(proxy.access()) >= 5, "five lines")
    # Each loop writes in its own time, so the order between connections is not that of the requests.
    good, refused, lost, reset = (
        proxy.access_of(path) for path in ("/enforced/a", "/enforced/b", "/nothing/c", "/open/resets"))
    malformed = proxy.wait_for_record(lambda record: record.get("failure") == "malformed", "the malformed one")
    for record in proxy.access():
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", record["ts"])
        assert record["client"] == "127.0.0.1"
        assert record["duration_us"] >= 0
    assert (good["method"], good["target"], good["status"]) == ("GET", "/enforced/a?q=1", 200)
    assert (good["route"], good["verdict"], good["action"], good["app"]) == ("enforced", "verified", "allow", "ios")
    assert good["user_agent"] == "tester" and good["host"] == client.HOST
    assert good["verify_us"] > 0 and good["upstream_us"] > 0 and good["upstream"] == "api"
    assert (refused["status"], refused["code"], refused["action"]) == (401, "token_missing", "reject")
    assert (refused["verdict"], refused["reason"]) == ("missing", "unknown_origin")
    assert (lost["status"], lost["failure"]) == (404, "no_route")
    assert (reset["status"], reset["failure"]) == (502, "upstream_reset")
    assert (malformed["status"], malformed["failure"]) == (400, "malformed")
    identities = [record["request_id"] for record in proxy.access()]
    assert len(set(identities)) == 5 and all(identities)


def test_the_access_log_can_be_turned_down(start, origin, mint):
    proxy = start(origin, log='access = "rejected"')
    proxy.ask("GET", "/enforced/a", token=mint())
    proxy.ask("GET", "/enforced/b")
    assert proxy.access_of("/enforced/b")["status"] == 401
    assert len(proxy.access()) == 1
    silent = start(origin, log='access = "off"')
    silent.ask("GET", "/enforced/b")
    silent.stop()
    assert silent.access() == []


def test_the_log_can_be_text(start, origin, mint):
    proxy = start(origin, log='format = "text"')
    proxy.ask("GET", "/enforced/seen", token=mint())
    wait_until(lambda: any("/enforced/seen" in line for line in proxy.lines), "a line")
    line = next(line for line in proxy.lines if "/enforced/seen" in line)
    assert "verified" in line and "200" in line and not line.startswith("{")


@pytest.mark.parametrize("path", ['/open/"quoted"', "/open/%22%5Cescaped", "/open/\\u0041", "/open/%0Aline"])
def test_hostile_targets_make_no_broken_log_line(start, origin, path):
    proxy = start(origin)
    proxy.ask("GET", path, 'User-Agent: a"b\\c\td\xff')
    wait_until(lambda: proxy.access(), "a line")
    assert all(line.startswith("{") and json.loads(line) for line in proxy.lines if "open" in line)


def health(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, "health", *map(str, arguments)], capture_output=True, text=True, timeout=10)


def test_O9_the_health_command_needs_no_shell_and_no_configuration(start, origin):
    proxy = start(origin, jwks=f"http://127.0.0.1:{free_port()}/jwks", ready="/healthz")
    # Liveness: that keys are out of reach is no reason to restart it (pitfall O6).
    assert health("--admin", f"127.0.0.1:{proxy.admin_port}").returncode == 0
    done = health("--admin", f"127.0.0.1:{free_port()}")
    assert done.returncode == 1 and done.stderr.strip()
    assert health("--admin", "nonsense").returncode == 2
    assert health("--no-such-option").returncode == 2


# What can be wrong at start


def test_a_port_in_use_is_said(start, origin):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        proxy = start(origin, ready=None, extra=f'[[listener]]\nlisten = "127.0.0.1:{number}"\n')
        proxy.expect_failure(f"127.0.0.1:{number}", "in use")


def test_an_address_that_is_not_ours_is_said(start, origin):
    proxy = start(origin, ready=None, extra='[[listener]]\nlisten = "192.0.2.1:8080"\n')
    proxy.expect_failure("192.0.2.1:8080")


def test_a_state_directory_that_cannot_be_written_is_said_and_done_without(start, origin, key_server, mint, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a directory")
    # Nothing but the key sets of the last run is kept there, so that serving goes on.
    proxy = start(origin, jwks=key_server.url, projects=PROJECT, state=file)
    proxy.wait_for_record(lambda record: record["level"] == "warning" and str(file) in json.dumps(record),
                          "one about the directory")
    assert proxy.ask("GET", "/enforced/x", token=mint()).status == 200


def test_a_missing_configuration_is_said(tmp_path):
    done = subprocess.run([BINARY, "run", "-c", tmp_path / "nowhere.conf"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert "nowhere.conf" in done.stdout + done.stderr


def connect_without_end(port: int, done):
    """Opens connections that ask for something and are gone, as fast as one process can."""
    data = request("GET", "/nothing", "Connection: close")
    while not done.is_set():
        sockets = [socket.socket() for _ in range(100)]
        for sock in sockets:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            try:
                sock.connect_ex(("127.0.0.1", port))
                sock.send(data)
            except OSError:
                pass
        for sock in sockets:
            sock.close()


def test_W9_a_flood_of_connections_keeps_neither_clients_nor_sigterm_waiting(start, origin):
    proxy = start(origin, workers=1, log='access = "off"')
    done = multiprocessing.Event()
    floods = [multiprocessing.Process(target=connect_without_end, args=(proxy.port, done), daemon=True)
              for _ in range(2)]
    with proxy.connect() as connection:
        for flood in floods:
            flood.start()
        wait_until(lambda: proxy.metric("portcullis_connections_accepted_total") > 500, "the flood comes in")
        waits = []
        for _ in range(10):
            before = time.monotonic()
            assert connection.ask(request("GET", "/nothing")).status == 404
            waits.append(time.monotonic() - before)
    before = time.monotonic()
    proxy.stop()
    waits.append((time.monotonic() - before) / 10)
    done.set()
    for flood in floods:
        flood.join()
    # Some hundredths of a second; when accepting goes before serving it is seconds.
    assert sorted(waits)[len(waits) // 2] < 0.5 and waits[-1] < 0.5, waits


def test_a_flood_of_connections_beyond_the_descriptor_limit_is_survived(start, origin):
    proxy = start(origin)
    resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (proxy.descriptors() + 20,) * 2)
    connections = []
    try:
        for _ in range(60):
            connections.append(proxy.connect(patience=5))
    except OSError:
        pass
    served = threading.Event()

    def ask_all():
        for connection in connections:
            connection.socket.settimeout(0.2)
            try:
                if connection.ask(request("GET", "/enforced/x")).status == 401:
                    served.set()
            except (OSError, client.Closed):
                pass

    ask_all()
    assert served.is_set()
    for connection in connections:
        connection.close()
    wait_until(lambda: proxy.ask("GET", "/open/x").status == 200, "it serves again")
