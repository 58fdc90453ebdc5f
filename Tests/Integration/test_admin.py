"""O7: changes through the admin listener: who may make them, and what draining a server does and does not."""

import json
import os
import signal
import socket
import threading

import pytest

from harness import client
from harness.client import request
from harness.http2 import Origin as HTTP2Origin
from harness.origin import Gate, wait_until
from harness.proxy import free_port
from harness.websocket import open_websocket
from test_operations import reload
from test_upstream_health import listen_at, named, names  # noqa: F401

TOKEN = "a-token-of-the-operator-0123456789"
OTHER = "another-token-of-the-operator-0123"
POOLED = 'slow_start = "0s"\n'


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "admin-token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def begin(start, token_file):
    """Starts a proxy with a token."""

    def make(*origins, **parts):
        parts["upstream"] = POOLED + parts.get("upstream", "")
        return start(*origins, admin=f'token_file = "{token_file}"', routes=parts.pop("routes", OPEN), **parts)

    return make


OPEN = '\n[[route]]\nname = "open"\npath = "/*"\nupstream = "api"\napp_check = "off"\n'


def change(proxy, server: str, verb: str, *, upstream: str = "api", token: str | None = TOKEN, method: str = "POST",
           host: str = "localhost", fields=()) -> client.Response:
    fields = (*fields, f"Authorization: Bearer {token}") if token is not None else fields
    return client.ask(proxy.admin_port, method, f"/upstreams/{upstream}/servers/{server}/{verb}", *fields, host=host)


def address(origin) -> str:
    return f"127.0.0.1:{origin.port}"


def served(proxy, origins, count: int = 20) -> list[int]:
    """How many of some requests each origin gets."""
    before = [len(origin.targets()) for origin in origins]
    for _ in range(count):
        assert proxy.ask("GET", "/x").status == 200
    return [len(origin.targets()) - number for origin, number in zip(origins, before)]


def test_a_drained_server_gets_no_new_requests_and_finishes_the_others(begin, new_origin):
    first, second = new_origin(), new_origin()
    proxy = begin(first, second, workers=2)
    gate = Gate()
    for origin in (first, second):
        origin.on("/slow", lambda exchange: (gate.wait(), exchange.respond(body=b"finished")))
    assert all(served(proxy, [first, second]))
    # Two each, so that both have one: least requests takes them in turn.
    busy = [proxy.connect() for _ in range(4)]
    for connection in busy:
        connection.send(request("GET", "/slow"))
    first.wait(lambda: first.targets().count("/slow") >= 1, "a slow request arrives")
    wait_until(lambda: (first.targets() + second.targets()).count("/slow") == 4, "all slow requests arrive")
    slow = first.targets().count("/slow")

    answer = change(proxy, address(first), "drain")
    assert answer.status == 200 and answer.get("content-type") == "application/json"
    assert answer.json() == {
        "upstream": "api", "server": address(first), "addresses": [address(first)], "state": "draining",
        "changed": True, "in_flight": slow, "servers_left": 1, "silent_loops": 0}
    # What lay idle is closed, what is under way is not.
    first.wait(lambda: len(first.open_sockets) == slow, "idle connections end")
    assert served(proxy, [first, second]) == [0, 20]
    proxy.expect_metric(1, "portcullis_upstream_server_draining", upstream="api", server=address(first))
    gate.open()
    for connection in busy:
        assert connection.read_response().body == b"finished"
        connection.close()
    # A connection that becomes idle is not kept either.
    first.wait(lambda: not first.open_sockets, "the last connections end")

    again = change(proxy, address(first), "drain").json()
    assert again["changed"] is False and again["in_flight"] == 0
    back = change(proxy, address(first), "undrain").json()
    assert (back["state"], back["changed"], back["servers_left"]) == ("ready", True, 2)
    assert all(served(proxy, [first, second]))
    proxy.expect_metric(0, "portcullis_upstream_server_draining")
    proxy.expect_metric(2, "portcullis_admin_changes_total", result="done")
    proxy.expect_metric(1, "portcullis_admin_changes_total", result="unchanged")
    lines = [record for record in proxy.records if record["msg"] in
             ("upstream server drains", "upstream server gets requests again")]
    assert [line["msg"] for line in lines] == ["upstream server drains", "upstream server gets requests again"]
    assert all(line["server"] == address(first) and line["client"].startswith("127.0.0.1:") for line in lines)


def test_a_websocket_goes_on(begin, backend, origin):
    proxy = begin(backend, routes=OPEN)
    with open_websocket(proxy.port, "/ws") as websocket:
        websocket.send("before")
        assert websocket.recv() == "before"
        assert change(proxy, address(backend), "drain").json()["in_flight"] == 1
        websocket.send("after")
        assert websocket.recv() == "after"


def test_the_last_server_may_be_drained_and_the_answer_says_what_that_means(begin, origin):
    # No panic brings a drained server back.
    proxy = begin(origin, upstream='panic_threshold = "100%"\n')
    assert proxy.ask("GET", "/x").status == 200
    done = change(proxy, address(origin), "drain").json()
    assert done["servers_left"] == 0 and "503 upstream_unavailable" in done["warning"]
    refused = proxy.ask("GET", "/y")
    assert (refused.status, refused.code) == (503, "upstream_unavailable")
    assert origin.targets() == ["/x"]
    assert proxy.access_of("/y")["failure"] == "upstream_unhealthy"
    assert any(record["msg"] == "a drain leaves an upstream without servers" for record in proxy.records)
    assert proxy.admin("/readyz").status == 200
    assert change(proxy, address(origin), "undrain").json()["servers_left"] == 1
    assert proxy.ask("GET", "/z").status == 200


def test_requests_that_wait_for_room_use_a_server_that_comes_back(begin, new_origin):
    first, second = new_origin(), new_origin()
    proxy = begin(first, second, workers=1, upstream='limits = { connections = 1, queue_timeout = "20s" }\n')
    gate = Gate()
    for origin in (first, second):
        origin.on("/slow", lambda exchange: (gate.wait(), exchange.respond()))
    assert change(proxy, address(second), "drain").status == 200
    with proxy.connect() as busy, proxy.connect() as waiting:
        busy.send(request("GET", "/slow"))
        first.wait(lambda: first.targets(), "the slow request arrives")
        waiting.send(request("GET", "/x"))
        proxy.expect_metric(1, "portcullis_upstream_events_total", event="queued")
        assert change(proxy, address(second), "undrain").status == 200
        assert waiting.read_response().status == 200
        assert second.targets() == ["/x"]
        gate.open()
        assert busy.read_response().status == 200


def test_shared_http2_connections_end_when_their_streams_do(begin):
    origin = HTTP2Origin()
    try:
        proxy = begin(origin, workers=1, upstream='protocol = "h2c"\n')
        assert proxy.ask("GET", "/x").status == 200
        assert change(proxy, address(origin), "drain").status == 200
        wait_until(lambda: all(peer.is_closed for peer in origin.peers), "the shared connection ends")
        assert proxy.ask("GET", "/x").status == 503
        assert change(proxy, address(origin), "undrain").status == 200
        assert proxy.ask("GET", "/x").status == 200
    finally:
        origin.stop()


# Names and addresses


def test_a_name_is_drained_with_all_of_its_addresses_also_later_ones(begin, origin, names):  # noqa: F811
    port = free_port()
    listeners = [listen_at(f"127.0.0.{number}", port) for number in (2, 3, 4)]
    names.say(backend="127.0.0.2", other="127.0.0.4")
    try:
        parts = named(port)
        proxy = begin(origin, environment=names.environment, routes=OPEN, extra=parts["extra"].replace(
            f'"backend.test:{port}"', f'"backend.test:{port}", "other.test:{port}"').replace(
                "resolve_interval", 'slow_start = "0s"\nresolve_interval'))
        assert {proxy.ask("GET", "/named/x").body for _ in range(8)} == {b"127.0.0.2", b"127.0.0.4"}
        done = change(proxy, f"backend.test:{port}", "drain", upstream="named").json()
        assert (done["addresses"], done["servers_left"]) == ([f"127.0.0.2:{port}"], 1)
        bodies = []
        names.say(backend="127.0.0.2 127.0.0.3", other="127.0.0.4")

        def is_known() -> bool:
            bodies.append(proxy.ask("GET", "/named/x").body)
            return proxy.metric("portcullis_upstream_server_draining", upstream="named") == 2

        wait_until(is_known, "the new address is drained")
        bodies += [proxy.ask("GET", "/named/x").body for _ in range(8)]
        assert set(bodies) == {b"127.0.0.4"}
        # One of its addresses comes back alone.
        back = change(proxy, f"127.0.0.3:{port}", "undrain", upstream="named").json()
        assert back["changed"] and back["servers_left"] == 2
        assert {proxy.ask("GET", "/named/x").body for _ in range(8)} == {b"127.0.0.3", b"127.0.0.4"}
    finally:
        for listener in listeners:
            listener.close()


def test_what_is_not_there_is_named_with_what_is(begin, origin):
    proxy = begin(origin)
    for upstream, server, word in (("nothing", address(origin), "there are api"), ("api", "127.0.0.1:1", address(origin)),
                                   ("api", "%2Fx", address(origin))):
        answer = change(proxy, server, "drain", upstream=upstream)
        if server == "%2Fx":
            # Paths are read as on every other listener: an encoded slash is refused.
            assert answer.status == 400
            continue
        assert answer.status == 404 and word in answer.json()["detail"]
        assert answer.get("content-type") == "application/problem+json"
    proxy.expect_metric(2, "portcullis_admin_changes_total", result="unknown")


def test_sockets_and_ipv6_addresses_are_named_as_the_configuration_does(begin, origin, tmp_path):
    path = tmp_path / "backend.sock"
    extra = f'[upstream.odd]\nservers = ["unix:{path}", "[::1]:9"]\n'
    proxy = begin(origin, extra=extra)
    for server in (f"unix:{path}", "[::1]:9", "%5B::1%5D:9"):
        answer = change(proxy, server, "drain", upstream="odd")
        assert answer.status == 200, answer.body
    assert proxy.metric("portcullis_upstream_server_draining", upstream="odd") == 2


# Who may


@pytest.mark.parametrize("fields, status, challenge", [
    ((), 401, 'Bearer realm="portcullis admin"'),
    (("Authorization: Bearer wrong-token-of-somebody-else",), 401, 'error="invalid_token"'),
    ((f"Authorization: Bearer {TOKEN}x",), 401, 'error="invalid_token"'),
    ((f"Authorization: Bearer {TOKEN[:-1]}",), 401, 'error="invalid_token"'),
    ((f"Authorization: Bearer {TOKEN.upper()}",), 401, 'error="invalid_token"'),
    ((f"Authorization: Basic {TOKEN}",), 401, 'error="invalid_token"'),
    ((f"Authorization: {TOKEN}",), 401, 'error="invalid_token"'),
    (("Authorization: Bearer ",), 401, "Bearer"),
    ((f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {TOKEN}"), 401, "Bearer"),
    ((f"Authorization: Bearer {TOKEN}, Bearer {TOKEN}",), 401, "Bearer"),
    ((f"Cookie: token={TOKEN}",), 401, "Bearer"),
    ((f"Authorization: bearer   {TOKEN}",), 200, None)])
def test_a_change_needs_the_token(begin, origin, fields, status, challenge):
    proxy = begin(origin)
    answer = change(proxy, address(origin), "drain", token=None, fields=fields)
    assert answer.status == status
    if challenge:
        assert challenge in answer.get("www-authenticate")
        assert answer.json()["status"] == 401
        assert proxy.ask("GET", "/x").status == 200
    assert TOKEN not in proxy.output() and TOKEN not in answer.body.decode()


def test_the_token_is_no_good_in_the_query(begin, origin):
    proxy = begin(origin)
    answer = client.ask(proxy.admin_port, "POST",
                        f"/upstreams/api/servers/{address(origin)}/drain?access_token={TOKEN}", host="localhost")
    assert answer.status == 401


def test_a_change_is_a_post(begin, origin):
    proxy = begin(origin)
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        answer = change(proxy, address(origin), "drain", method=method)
        assert (answer.status, answer.get("allow")) == (405, "POST")
    assert change(proxy, address(origin), "frobnicate").status == 404
    assert proxy.ask("GET", "/x").status == 200
    reading = client.ask(proxy.admin_port, "POST", "/metrics", host="localhost")
    assert (reading.status, reading.get("allow")) == (405, "GET, HEAD")


@pytest.mark.parametrize("how", ["no token_file", "unreadable"])
def test_without_a_token_the_listener_only_reads_and_says_how_to_change_that(start, origin, tmp_path, how):
    admin = "" if how == "no token_file" else f'token_file = "{tmp_path / "nowhere"}"'
    proxy = start(origin, admin=admin, routes=OPEN)
    answer = change(proxy, address(origin), "drain")
    assert answer.status == 403 and answer.get("www-authenticate") is None
    assert ("token_file of [admin]" if not admin else "could not be read") in answer.json()["detail"]
    proxy.expect_metric(1, "portcullis_admin_changes_total", result="read_only")
    assert any("admin token cannot be read" in record["msg"] for record in proxy.records) == bool(admin)
    if admin:
        (tmp_path / "nowhere").write_text(TOKEN)
        proxy.signal(signal.SIGHUP)
        wait_until(lambda: change(proxy, address(origin), "drain").status == 200, "the reload read the token")


def test_a_reload_reads_the_token_again(begin, origin, token_file):
    proxy = begin(origin)
    token_file.write_text(OTHER)
    assert change(proxy, address(origin), "undrain").status == 200
    reload(proxy, proxy.config_path.read_text(),
           lambda: change(proxy, address(origin), "undrain", token=OTHER).status == 200)
    assert change(proxy, address(origin), "undrain").status == 401
    # A token that is none changes nothing: the configuration is refused as a whole.
    token_file.write_text("short")
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: "fewer than 16 characters" in json.dumps(record), "the mistake")
    assert change(proxy, address(origin), "undrain", token=OTHER).status == 200


def test_guesses_are_bounded_in_the_log_and_lock_nobody_out(begin, origin):
    proxy = begin(origin)
    statuses = [change(proxy, address(origin), "drain", token=f"guess-number-{number:08}").status for number in range(40)]
    assert statuses[:10] == [401] * 10 and statuses[12:] == [429] * 28
    late = change(proxy, address(origin), "drain", token="guess-number-again-01")
    assert 1 <= int(late.get("retry-after")) <= 6
    reported = [record for record in proxy.records if record["msg"] == "a wrong admin token was sent"]
    assert 10 <= len(reported) <= 12
    assert reported[0]["client"].startswith("127.0.0.1:") and "guess-number" not in proxy.output()
    assert change(proxy, address(origin), "drain").status == 200


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("127.0.0.1:9090", 200), ("[::1]", 200), ("admin.localhost", 200), ("evil.example", 421),
    ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421)])
def test_a_page_that_led_its_name_to_this_machine_gets_nothing(begin, origin, host, status):
    proxy = begin(origin)
    assert change(proxy, address(origin), "drain", host=host).status == status
    assert client.ask(proxy.admin_port, "GET", "/metrics", host=host).status == status
    assert client.ask(proxy.admin_port, "GET", "/healthz", host=host).status == 200


def test_a_local_socket_tells_who_it_was(start, origin, token_file, tmp_path):
    path = str(tmp_path / "admin.sock")
    proxy = start(origin, ready=None, routes=OPEN)
    proxy.wait_until_ready()
    proxy.stop()
    text = proxy.config_path.read_text().replace(
        f'listen = "127.0.0.1:{proxy.admin_port}"', f'listen = "unix:{path}"\ntoken_file = "{token_file}"')
    proxy = type(proxy)(tmp_path, text, port=proxy.port, admin_port=proxy.admin_port)
    try:
        wait_until(lambda: os.path.exists(path), "the socket is there")
        answer = client.ask(path, "POST", f"/upstreams/api/servers/{address(origin)}/drain",
                            f"Authorization: Bearer {TOKEN}", host="whatever")
        assert answer.status == 200
        record = proxy.wait_for_record(lambda record: record["msg"] == "upstream server drains", "the drain")
        assert record["client"] == f"uid {os.getuid()} pid {os.getpid()}"
        proxy.admin_port = path
    finally:
        proxy.stop()


# What it survives


def test_a_drain_survives_reloads_while_the_server_stays(begin, new_origin, token_file):
    first, second, third = new_origin(), new_origin(), new_origin()
    proxy = begin(first, second, workers=2)
    text = proxy.config_path.read_text()
    assert change(proxy, address(first), "drain").status == 200
    more = text.replace(f'"{address(second)}"', f'"{address(second)}", "{address(third)}"')
    # Another upstream in the configuration's eyes: its pools are new ones.
    reload(proxy, more.replace(POOLED, POOLED + "idle_connections = 5\n"), lambda: sum(served(proxy, [third])))
    assert served(proxy, [first, second, third])[0] == 0
    reload(proxy, text.replace(f'"{address(first)}", ', ""), lambda: not sum(served(proxy, [third])))
    assert proxy.wait_for_record(lambda record: record["msg"] == "a drained upstream server left the configuration",
                                 "that it is forgotten")["server"] == address(first)
    reload(proxy, text, lambda: sum(served(proxy, [first])))


def test_reloads_under_traffic_never_use_a_drained_server(begin, new_origin):
    first, second = new_origin(), new_origin()
    proxy = begin(first, second, workers=2)
    text = proxy.config_path.read_text()
    assert change(proxy, address(first), "drain").status == 200
    statuses, done = [], threading.Event()

    def traffic():
        while not done.is_set():
            statuses.append(proxy.ask("GET", "/x").status)

    threads = [threading.Thread(target=traffic) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(8):
        proxy.config_path.write_text(text.replace(POOLED, POOLED + f"idle_connections = {number % 2 + 3}\n"))
        proxy.signal(signal.SIGHUP)
        proxy.expect_metric(number + 1, "portcullis_config_reloads_total", result="success")
    done.set()
    for thread in threads:
        thread.join()
    assert first.targets() == [] and set(statuses) == {200}


def test_a_restart_forgets_drains(begin, start, origin, token_file):
    proxy = begin(origin)
    assert change(proxy, address(origin), "drain").status == 200
    proxy.stop()
    again = begin(origin)
    assert again.ask("GET", "/x").status == 200


def test_the_listener_is_no_place_to_wait(begin, origin):
    """A head that does not end, and more connections than it takes, cost nobody else a probe for long."""
    proxy = begin(origin)
    with socket.create_connection(("127.0.0.1", proxy.admin_port)) as slow:
        slow.sendall(b"POST /upstreams/api/servers/x/drain HTTP/1.1\r\nHost: localhost\r\n")
        assert proxy.admin("/healthz").status == 200
    refused = client.ask(proxy.admin_port, "POST", f"/upstreams/api/servers/{address(origin)}/drain",
                         f"Authorization: Bearer {TOKEN}", host="localhost", body=b"{}")
    assert refused.status == 400 and refused.get("connection") == "close"
    assert proxy.ask("GET", "/x").status == 200
