"""W6, W7, H7, O2: WebSocket is judged at its handshake, and nothing else is ever upgraded."""

import json
import os
import socket
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from conftest import running_proxy
from harness import tokens
from harness.origin import Gate, wait_until
from harness.proxy import ROUTES, route
from harness.replay import limited
from harness.websocket import KEY, accept, handshake, open_websocket, switching
from judging import assert_rejected

BROWSERS = "".join((
    route("page", projects=["production"], app_check="enforce", websocket_token="protocol"),
    route("page-forwarding", projects=["production"], app_check="enforce", websocket_token="protocol",
          forward_token=True),
    route("page-monitored", projects=["production"], app_check="monitor", websocket_token="protocol"),
    route("page-once", projects=["production"], app_check="enforce", websocket_token="protocol", replay="enforce")))
MEMORY = '\n[replay]\nstore = "memory"\n'


# Whatever a test asks for, it finds the backend as if fresh.
pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(scope="module")
def module_proxy(module_backend, key_file):
    with running_proxy([module_backend], key_file, routes=ROUTES + BROWSERS, extra=MEMORY) as proxy:
        yield proxy


def refused(proxy, path: str, **options):
    """The answer to a handshake that must not open anything."""
    with pytest.raises(InvalidStatus) as caught:
        open_websocket(proxy.port, path, **options)
    return caught.value.response


def code_of(response) -> str:
    return json.loads(response.body)["code"]


# Messages


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 1_000_000, 10_000_000])
def test_messages_of_every_size_come_back(proxy, mint, size):
    with open_websocket(proxy.port, token=mint()) as websocket:
        for message in (os.urandom(size), "é" * (size // 2)):
            websocket.send(message)
            assert websocket.recv() == message


def test_fragments_stay_fragments(proxy, backend, mint):
    frames = []

    def handler(connection):
        frames.extend(connection.recv_streaming())
        connection.send(iter(["a", "", "c" * 70_000]))

    backend.on("/enforced/fragments", handler)
    with open_websocket(proxy.port, "/enforced/fragments", token=mint(), compression=None) as websocket:
        websocket.send(iter(["one", "two", "three"]))
        # The last, empty frame ends the message.
        assert list(websocket.recv_streaming())[:3] == ["a", "", "c" * 70_000]
    assert [frame for frame in frames if frame] == ["one", "two", "three"]


def test_pings_are_answered_by_the_other_end(proxy, backend, mint):
    answered = Gate()

    def handler(connection):
        if connection.ping(b"from the backend").wait(10):
            answered.open()
        for message in connection:
            connection.send(message)

    backend.on("/enforced/ping", handler)
    with open_websocket(proxy.port, "/enforced/ping", token=mint()) as websocket:
        assert websocket.ping(b"from the client").wait(10)
        assert answered.wait()


@pytest.mark.parametrize("code", [1000, 1001, 1003, 1008, 1011, 3000, 4999])
def test_close_codes_pass_in_both_directions(proxy, backend, mint, code):
    backend.on("/enforced/bye", lambda connection: connection.close(code, "so long"))
    with open_websocket(proxy.port, "/enforced/bye", token=mint()) as websocket:
        with pytest.raises(ConnectionClosed) as caught:
            websocket.recv()
        assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (code, "so long")
    with open_websocket(proxy.port, "/enforced/ws", token=mint()) as websocket:
        websocket.close(code, "and thanks")
    backend.wait(lambda: ("/enforced/ws", code) in backend.closed, "the close code arrives")


def test_what_the_backend_sends_with_its_answer_is_not_lost(start, new_origin, mint):
    origin = new_origin()

    def script(exchange):
        exchange.send(switching(exchange.request) + b"first" + b"x" * 100_000)
        exchange.send(exchange.stream.take(6))
        exchange.close()

    origin.on("/enforced/now", script)
    proxy = start(origin)
    with proxy.connect() as connection:
        # The client does not wait for the answer either.
        connection.send(handshake("/enforced/now", token=mint()) + b"second")
        head = connection.read_head()
        assert head.status == 101
        assert connection.stream.take_rest() == b"first" + b"x" * 100_000 + b"second"


# The handshake is judged


@pytest.mark.parametrize("fault, code", [
    ("missing", "token_missing"), ("tampered", "token_invalid"), ("expired", "token_expired"),
    ("stranger", "token_invalid"), ("other app", "app_not_allowed")])
def test_a_handshake_without_a_good_token_reaches_nobody(proxy, backend, mint, keys, fault, code):
    path, token = "/enforced/ws", None
    if fault == "tampered":
        token = mint()[:-8] + "AAAAAAAA"
    elif fault == "expired":
        token = mint(claims={"exp": int(time.time()) - 600, "iat": int(time.time()) - 4200})
    elif fault == "stranger":
        token = mint(keys.stranger)
    elif fault == "other app":
        path, token = "/ios/ws", mint(claims={"sub": tokens.ANDROID})
    response = refused(proxy, path, token=token)
    assert code_of(response) == code
    assert backend.handshakes == []


def test_a_monitored_handshake_passes_and_is_reported(proxy, backend):
    with open_websocket(proxy.port, "/monitored/nobody") as websocket:
        websocket.send("hello")
        assert websocket.recv() == "hello"
    record = proxy.access_of("/monitored/nobody")
    assert (record["verdict"], record["action"], record["status"]) == ("missing", "would_reject", 101)
    assert backend.handshakes[-1].headers["X-AppCheck-Action"] == "would_reject"


def test_a_token_in_the_url_is_refused_here_too(proxy, backend, mint):
    assert code_of(refused(proxy, f"/enforced/ws?ac={mint()}")) == "token_in_url"
    assert backend.handshakes == []


def test_H7_the_token_stays_at_the_proxy(proxy, backend, mint):
    token = mint()
    for path, is_forwarded in (("/enforced/ws", False), ("/forwarding/ws", True)):
        with open_websocket(proxy.port, path, token=token):
            pass
        headers = backend.handshakes[-1].headers
        assert headers.get("X-Firebase-AppCheck") == (token if is_forwarded else None)
        assert headers["X-AppCheck-Verdict"] == "verified"


def test_a_limited_use_token_opens_one_websocket(proxy, backend, keys):
    token = limited(keys.first)
    with open_websocket(proxy.port, "/page-once/first", token=token) as websocket:
        websocket.send("hello")
        assert websocket.recv() == "hello"
        assert code_of(refused(proxy, "/page-once/second", token=token)) == "token_already_used"
        websocket.send("still here")
        assert websocket.recv() == "still here"
    assert code_of(refused(proxy, "/page-once/third", token=token)) == "token_already_used"
    assert len(backend.handshakes) == 1
    record = proxy.access_of("/page-once/first")
    assert (record["claim"], record["status"]) == ("claimed", 101)


def test_many_handshakes_with_one_limited_use_token_open_one_websocket(proxy, keys):
    token = limited(keys.first)
    outcomes = []

    def attempt():
        try:
            with open_websocket(proxy.port, "/page-once/race", token=token) as websocket:
                websocket.send("x")
                outcomes.append(websocket.recv())
        except InvalidStatus as refusal:
            outcomes.append(code_of(refusal.response))

    threads = [threading.Thread(target=attempt) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["token_already_used"] * 19 + ["x"]


def test_the_refusal_leaves_the_connection_usable(proxy, mint):
    with proxy.connect() as connection:
        assert_rejected(connection.ask(handshake("/enforced/ws")), "token_missing")
        connection.send(handshake("/enforced/ws", token=mint()))
        assert connection.read_head().status == 101


# Subprotocols, and a token among them


@pytest.mark.parametrize("offered, chosen", [
    (None, None), (["chat"], "chat"), (["x", "superchat", "chat"], "chat"), (["x"], None)])
def test_subprotocols_are_between_the_ends(proxy, backend, mint, offered, chosen):
    with open_websocket(proxy.port, token=mint(), subprotocols=offered) as websocket:
        assert websocket.subprotocol == chosen
    assert backend.handshakes[-1].headers.get("Sec-WebSocket-Protocol") == (
        ", ".join(offered) if offered else None)


def test_a_page_sends_its_token_as_a_subprotocol(proxy, backend, mint):
    token = mint()
    for offered in (["chat", f"appcheck.{token}"], [f"appcheck.{token}", "chat"]):
        with open_websocket(proxy.port, "/page/ws", subprotocols=offered) as websocket:
            assert websocket.subprotocol == "chat"
            websocket.send("hello")
            assert websocket.recv() == "hello"
        headers = backend.handshakes[-1].headers
        assert headers["Sec-WebSocket-Protocol"] == "chat"
        assert headers["X-AppCheck-Verdict"] == "verified"
        assert token not in str(headers)


def test_a_token_alone_leaves_no_subprotocol(proxy, backend, mint):
    with open_websocket(proxy.port, "/page/ws", subprotocols=[f"appcheck.{mint()}"]) as websocket:
        assert websocket.subprotocol is None
    assert "Sec-WebSocket-Protocol" not in backend.handshakes[-1].headers


def test_H7_a_forwarded_token_goes_where_the_backend_looks_for_it(proxy, backend, mint):
    token = mint()
    with open_websocket(proxy.port, "/page-forwarding/ws", subprotocols=["chat", f"appcheck.{token}"]):
        pass
    headers = backend.handshakes[-1].headers
    assert headers["X-Firebase-AppCheck"] == token
    assert headers["Sec-WebSocket-Protocol"] == "chat"


@pytest.mark.parametrize("lines, reason", [
    (["appcheck.{a}, appcheck.{a}"], "duplicate"), (["appcheck.{a}", "appcheck.{b}"], "duplicate"),
    (["chat, appcheck."], "malformed"), (["appcheck.{a}x"], "malformed"),
    (["appcheck.{t}"], "signature"), (["appcheck.a b"], "malformed"),
    (['"appcheck.{a}"'], "unknown_origin"), (["xappcheck.{a}"], "unknown_origin")])
def test_a_token_entry_must_be_one_and_good(proxy, backend, mint, lines, reason):
    fields = [f"Sec-WebSocket-Protocol: {line.format(a=mint(), b=mint(), t=mint()[:-8] + 'AAAAAAAA')}" for line in lines]
    path = f"/page/entry-{reason}-{abs(hash(str(lines)))}"
    with proxy.connect() as connection:
        assert connection.ask(handshake(path, *fields)).status == 401
    assert proxy.access_of(path)["reason"] == reason
    assert backend.handshakes == []


def test_the_field_and_an_entry_together_are_a_duplicate(proxy, backend, mint):
    token = mint()
    response = refused(proxy, "/page/both", token=token, subprotocols=["chat", f"appcheck.{token}"])
    assert code_of(response) == "token_invalid"
    assert proxy.access_of("/page/both")["reason"] == "duplicate"


def test_the_entry_counts_for_handshakes_alone(proxy, mint):
    response = proxy.ask("GET", "/page/plain", f"Sec-WebSocket-Protocol: appcheck.{mint()}")
    assert_rejected(response, "token_missing")


def test_elsewhere_an_entry_admits_nobody_and_still_goes_nowhere(proxy, backend, mint):
    token = mint()
    assert code_of(refused(proxy, "/enforced/ws", subprotocols=["chat", f"appcheck.{token}"])) == "token_missing"
    with open_websocket(proxy.port, "/monitored/ws", subprotocols=["chat", f"AppCheck.{token}"]) as websocket:
        assert websocket.subprotocol == "chat"
    headers = backend.handshakes[-1].headers
    assert headers["Sec-WebSocket-Protocol"] == "chat" and headers["X-AppCheck-Verdict"] == "missing"


def test_O5_entries_are_in_no_log(proxy, mint):
    # What `stop` asserts of every token that was ever minted; here the lines are sure to be written.
    token = mint()
    with open_websocket(proxy.port, "/page-monitored/logged", subprotocols=["chat", f"appcheck.{token}"]):
        pass
    proxy.access_of("/page-monitored/logged")
    for secret in tokens.secrets_of(token):
        assert secret not in proxy.output()


# Nothing else is upgraded


@pytest.mark.parametrize("upgrade", [
    "h2c", "websocket, h2c", "h2c, websocket", "WebSocket/13", "TLS/1.3", "IRC/6.9"])
def test_W7_other_upgrades_are_stripped(start, new_origin, mint, upgrade):
    origin = new_origin()
    proxy = start(origin)
    fields = ["Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
              f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: chat"]
    assert proxy.ask("GET", "/enforced/x", *fields, token=mint()).status == 200
    names = origin.last().names()
    assert not {"upgrade", "http2-settings", "sec-websocket-key", "sec-websocket-version",
                "sec-websocket-protocol", "connection"} & set(names)


@pytest.mark.parametrize("change", ["no key", "short key", "POST", "HTTP/1.0", "a body"])
def test_W7_what_is_no_handshake_is_not_upgraded(start, new_origin, mint, change):
    origin = new_origin()
    proxy = start(origin)
    data = handshake("/enforced/x", token=mint(), key=None if change == "no key" else
                     KEY[:-1] if change == "short key" else KEY,
                     method="POST" if change == "POST" else "GET")
    if change == "HTTP/1.0":
        data = data.replace(b"HTTP/1.1", b"HTTP/1.0")
    if change == "a body":
        data = data[:-2] + b"Content-Length: 2\r\n\r\nhi"
    with proxy.connect() as connection:
        connection.send(data)
        wait_until(lambda: origin.requests, "the request arrives")
    assert "upgrade" not in origin.last().names()
    assert "sec-websocket-key" not in origin.last().names()


@pytest.mark.parametrize("fault", ["accept", "no accept", "upgrade", "plain request"])
def test_W6_101_that_is_no_answer_to_the_handshake_is_a_502(start, new_origin, mint, fault):
    origin = new_origin()

    def script(exchange):
        answer = switching(
            exchange.request, accept_value=accept("another key") if fault == "accept" else None,
            upgrade="h2c" if fault == "upgrade" else "websocket")
        if fault == "no accept":
            answer = b"\r\n".join(line for line in answer.split(b"\r\n") if b"Accept" not in line)
        exchange.send(answer + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        exchange.peer_closed()
        exchange.close()

    origin.on("/enforced/x", script)
    proxy = start(origin)
    with proxy.connect() as connection:
        data = handshake("/enforced/x", token=mint())
        if fault == "plain request":
            data = data.replace(b"Connection: Upgrade\r\n", b"")
        response = connection.ask(data)
        assert (response.status, response.code) == (502, "upstream_protocol")
        assert b"secret" not in response.body


def test_a_backend_that_declines_is_heard(start, new_origin, mint):
    origin = new_origin()
    origin.on("/enforced/x", lambda exchange: exchange.respond(
        426, "Sec-WebSocket-Version: 13", body=b"which version?"))
    proxy = start(origin)
    with proxy.connect() as connection:
        for _ in range(2):
            response = connection.ask(handshake("/enforced/x", token=mint()))
            assert (response.status, response.body) == (426, b"which version?")
            assert response.get("sec-websocket-version") == "13"
    assert origin.connections == 1


# The life of a tunnel


class Tunnel:
    """A proxy before an origin that opens a tunnel for `/open/t` and hands it to the test."""

    def __init__(self, start, new_origin, **parts):
        self.origin = new_origin()
        self.far, self.done = [], Gate()
        self.origin.on("/open/t", self._script)
        self.proxy = start(self.origin, **parts)

    def _script(self, exchange):
        exchange.send(switching(exchange.request))
        self.far.append(exchange.stream.socket)
        self.done.wait(within=60)
        exchange.is_over = True

    def open(self, **options):
        connection = self.proxy.connect(**options)
        connection.send(handshake("/open/t"))
        assert connection.read_head().status == 101
        wait_until(lambda: self.far, "the tunnel is open")
        return connection, self.far.pop()


@pytest.fixture
def tunnel(start, new_origin):
    made = []

    def make(**parts):
        made.append(Tunnel(start, new_origin, **parts))
        return made[-1]

    yield make
    for one in made:
        one.done.open()


def test_a_half_closed_tunnel_goes_on_in_the_other_direction(tunnel):
    both = tunnel()
    near, far = both.open()
    near.send(b"last words")
    near.half_close()
    assert read_all(far) == b"last words"
    far.sendall(b"an answer all the same")
    far.shutdown(socket.SHUT_WR)
    assert near.stream.take_rest() == b"an answer all the same"
    record = both.proxy.access_of("/open/t")
    assert (record["status"], record["bytes_in"], record["bytes_out"]) == (101, 10, 22)
    assert "failure" not in record


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(1 << 16):
        data += piece
    return data


def test_the_server_may_end_first(tunnel):
    both = tunnel()
    near, far = both.open()
    far.sendall(b"bye")
    far.shutdown(socket.SHUT_WR)
    assert near.stream.take_rest() == b"bye"
    near.send(b"and bye")
    near.close()
    assert read_all(far) == b"and bye"
    assert "failure" not in both.proxy.access_of("/open/t")


def test_a_client_that_vanishes_takes_the_tunnel_along(tunnel):
    both = tunnel()
    near, far = both.open()
    near.reset()
    far.settimeout(10)
    assert far.recv(1) == b""
    assert both.proxy.access_of("/open/t")["failure"] == "client_aborted"


def test_a_server_that_vanishes_takes_the_tunnel_along(tunnel):
    import struct

    both = tunnel()
    near, far = both.open()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    both.done.open()
    with pytest.raises(ConnectionError):
        while near.socket.recv(1):
            pass
    assert both.proxy.access_of("/open/t")["failure"] == "upstream_reset"


def test_a_tunnel_is_never_used_again(tunnel):
    both = tunnel()
    near, far = both.open()
    near.half_close()
    far.shutdown(socket.SHUT_WR)
    assert near.is_closed()
    both.done.open()
    both.proxy.access_of("/open/t")
    assert both.proxy.ask("GET", "/open/else").status == 200
    assert both.origin.connections == 2


def test_only_silence_of_both_sides_ends_a_tunnel(tunnel):
    both = tunnel(upstream='timeouts = { idle = "1s" }')
    near, far = both.open()
    begun = time.monotonic()
    # Longer than the limit, with bytes in one direction at a time; the sleeps are what is tested.
    for _ in range(4):
        time.sleep(0.4)
        far.sendall(b"x")
        assert near.stream.take(1) == b"x"
    for _ in range(4):
        time.sleep(0.4)
        near.send(b"y")
        assert far.recv(1) == b"y"
    assert time.monotonic() - begun > 3
    assert near.is_closed()
    record = both.proxy.access_of("/open/t")
    assert record["failure"] == "websocket_idle"
    assert record["duration_us"] > 3_900_000 and record["upstream_us"] < 2_000_000


@pytest.mark.parametrize("direction", ["to the client", "to the server"])
def test_a_slow_reader_costs_no_memory(tunnel, direction):
    both = tunnel()
    near, far = both.open(receive_buffer=64 << 10)
    writer, reader = (far, near.socket) if direction == "to the client" else (near.socket, far)
    writer.settimeout(1.0)
    before = both.proxy.resident_bytes()
    sent = 0
    piece = os.urandom(1 << 16)
    try:
        while sent < 256 << 20:
            sent += writer.send(piece)
        pytest.fail("256 MiB were taken although nobody reads")
    except TimeoutError:
        pass
    assert both.proxy.resident_bytes() - before < 4 << 20
    writer.settimeout(10)
    received = 0
    while received < sent:
        received += len(reader.recv(1 << 16))
    assert received == sent


def test_the_metrics_count_a_websocket_when_it_ends(tunnel):
    both = tunnel()
    near, far = both.open()
    assert both.proxy.metric("portcullis_requests_total", route="open") == 0
    assert both.proxy.metric("portcullis_connections", state="active") == 1
    near.half_close()
    far.shutdown(socket.SHUT_WR)
    both.proxy.expect_metric(1, "portcullis_requests_total", route="open")


# Drain and reload


def test_O3_tunnels_have_until_the_drain_timeout(tunnel):
    import signal

    both = tunnel(server='drain_timeout = "2s"')
    near, far = both.open()
    both.proxy.signal(signal.SIGTERM)
    for _ in range(3):
        near.send(b"x")
        assert far.recv(1) == b"x"
    begun = time.monotonic()
    assert near.is_closed()
    assert 0.5 < time.monotonic() - begun < 6
    assert both.proxy.wait_for_exit() == 0
    assert both.proxy.access_of("/open/t")["failure"] == "websocket_drained"


def test_O3_a_drain_ends_with_the_last_tunnel(tunnel):
    import signal

    both = tunnel(server='drain_timeout = "60s"')
    near, far = both.open()
    both.proxy.signal(signal.SIGTERM)
    near.half_close()
    far.shutdown(socket.SHUT_WR)
    assert both.proxy.wait_for_exit() == 0


def test_O2_a_reload_leaves_open_websockets_alone(tunnel):
    import signal

    both = tunnel()
    near, far = both.open()
    text = both.proxy.config_path.read_text()
    # Another route, another upstream, and the tunnel's own route enforced: the handshake is over.
    both.proxy.config_path.write_text(
        text.replace('app_check = "off"', 'app_check = "enforce"').replace(
            "[upstream.api]", '[upstream.api]\nidle_connections = 7'))
    both.proxy.signal(signal.SIGHUP)
    wait_until(lambda: both.proxy.ask("GET", "/open/else").status == 401, "the reload is done")
    near.send(b"still")
    assert far.recv(5) == b"still"
    far.sendall(b"here")
    assert near.stream.take(4) == b"here"
