"""W7: WebSocket over HTTP/2 (RFC 8441) is the same handshake, judged by the same story."""

import json
import os
import signal
import socket
import time

import pytest

from conftest import running_proxy
from harness.http2websocket import Client
from harness.origin import Gate, wait_until
from harness.proxy import ROUTES
from harness.replay import limited
from harness.websocket import switching
from test_websocket import BROWSERS, MEMORY
from translation import LISTENER

# Whatever a test asks for, it finds the backend as if fresh.
pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(scope="module")
def module_proxy(module_backend, key_file):
    with running_proxy([module_backend], key_file, listener=LISTENER, routes=ROUTES + BROWSERS, extra=MEMORY) as proxy:
        yield proxy


@pytest.fixture
def client(proxy):
    with Client(proxy.port) as client:
        yield client


def test_messages_come_back(proxy, backend, client, mint):
    assert client.allows_websocket
    stream = client.open("/enforced/h2", ("x-firebase-appcheck", mint()), ("sec-websocket-protocol", "chat"))
    assert stream.status == 200
    assert stream.fields["sec-websocket-protocol"] == "chat"
    assert not {"connection", "upgrade", "sec-websocket-accept"} & set(stream.fields)
    for size in (0, 1, 125, 126, 65_536, 1_000_000):
        message = os.urandom(size)
        stream.send_message(message)
        assert stream.receive_message() == message
    stream.close_websocket()
    stream.wait_until_over()
    assert stream.reset is None
    backend.wait(lambda: ("/enforced/h2", 1000) in backend.closed, "the close code arrives")
    headers = backend.handshakes[-1].headers
    assert headers["X-AppCheck-Verdict"] == "verified" and headers["Via"] == "2.0 portcullis"
    assert "X-Firebase-AppCheck" not in headers
    record = proxy.access_of("/enforced/h2")
    assert (record["protocol"], record["status"]) == ("http/2", 101)
    assert "failure" not in record and record["bytes_in"] > 1_000_000


def test_many_websockets_share_a_connection_with_requests(client, mint):
    token = mint()
    streams = [client.open("/enforced/many", ("x-firebase-appcheck", token)) for _ in range(20)]
    for round in range(3):
        for number, stream in enumerate(streams):
            stream.send_message(b"%d %d" % (round, number))
        for number, stream in enumerate(streams):
            assert stream.receive_message() == b"%d %d" % (round, number)
    for stream in streams:
        stream.close_websocket()
    for stream in streams:
        stream.wait_until_over()
        assert stream.reset is None


def test_a_handshake_without_a_token_is_refused(backend, client):
    stream = client.open("/enforced/refused")
    assert stream.status == 401
    stream.wait_until_over()
    assert json.loads(stream.data)["code"] == "token_missing"
    assert backend.handshakes == []


def test_a_refusal_is_never_a_success_that_would_open_it(client):
    # A refused gRPC call is 200 with grpc-status; here 200 would mean an open WebSocket.
    stream = client.open("/enforced/refused", ("content-type", "application/grpc"))
    assert stream.status == 401


def test_a_token_comes_as_a_subprotocol(backend, client, mint):
    token = mint()
    stream = client.open("/page/h2", ("sec-websocket-protocol", f"chat, appcheck.{token}"))
    assert (stream.status, stream.fields["sec-websocket-protocol"]) == (200, "chat")
    assert backend.handshakes[-1].headers["Sec-WebSocket-Protocol"] == "chat"


def test_a_limited_use_token_opens_one_websocket_over_either_protocol(proxy, client, keys):
    from harness.websocket import open_websocket

    token = limited(keys.first)
    with open_websocket(proxy.port, "/page-once/first", token=token):
        stream = client.open("/page-once/second", ("x-firebase-appcheck", token))
        assert stream.status == 401
        stream.wait_until_over()
        assert json.loads(stream.data)["code"] == "token_already_used"


@pytest.mark.parametrize("protocol", ["connect-udp", "WebSocket", "h2c"])
def test_W7_other_protocols_are_reset(backend, client, mint, protocol):
    stream = client.open("/enforced/x", ("x-firebase-appcheck", mint()), protocol=protocol)
    assert stream.status is None and stream.reset is not None
    assert backend.handshakes == []


@pytest.mark.parametrize("answer, status", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 502),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 502),
    (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", 403),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 502)])
def test_W6_only_a_proper_101_opens_a_websocket(start, new_origin, answer, status):
    origin = new_origin()
    origin.answer("/open/x", answer)
    proxy = start(origin, listener=LISTENER)
    with Client(proxy.port) as client:
        assert client.open("/open/x").status == status


class Tunnel:
    """One open tunnel: the client's stream and the origin's socket."""

    def __init__(self, start, new_origin, **options):
        parts = options.pop("parts", {})
        self.done, far = Gate(), []
        origin = new_origin()

        def script(exchange):
            exchange.send(switching(exchange.request))
            far.append(exchange.stream.socket)
            self.done.wait(within=60)
            exchange.is_over = True

        origin.on("/open/t", script)
        self.proxy = start(origin, listener=LISTENER, **parts)
        self.client = Client(self.proxy.port)
        self.stream = self.client.open("/open/t", **options)
        wait_until(lambda: far, "the tunnel is open")
        self.far = far[0]


@pytest.fixture
def tunnel(start, new_origin):
    made = []

    def make(**options):
        made.append(Tunnel(start, new_origin, **options))
        return made[-1]

    yield make
    for one in made:
        one.done.open()
        one.client.socket.close()


def test_each_direction_ends_by_itself(tunnel):
    both = tunnel()
    both.stream.send(b"last words")
    both.stream.end()
    assert both.far.recv(100) == b"last words" and both.far.recv(1) == b""
    both.far.sendall(b"an answer")
    both.far.shutdown(socket.SHUT_WR)
    both.stream.wait_until_over()
    assert (both.stream.data, both.stream.reset) == (b"an answer", None)


def test_a_reset_stream_takes_the_tunnel_along(tunnel):
    both = tunnel()
    both.client.h2.reset_stream(both.stream.number, 8)
    both.client.flush()
    both.far.settimeout(10)
    assert both.far.recv(1) == b""
    assert both.proxy.access_of("/open/t")["failure"] == "client_aborted"


def test_a_vanished_server_is_CANCEL(tunnel):
    import struct

    both = tunnel()
    both.far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    both.done.open()
    both.stream.wait_until_over()
    assert both.stream.reset == 8


def test_a_client_that_opens_no_window_costs_no_memory(tunnel):
    both = tunnel(takes_data=False)
    both.far.settimeout(1.0)
    before, sent, piece = both.proxy.resident_bytes(), 0, os.urandom(1 << 16)
    with pytest.raises(TimeoutError):
        while sent < 256 << 20:
            sent += both.far.send(piece)
    assert both.proxy.resident_bytes() - before < 4 << 20


def test_O3_a_drain_lets_a_tunnel_go_on_until_its_time_is_over(tunnel):
    both = tunnel(parts={"server": 'drain_timeout = "2s"'})
    both.proxy.signal(signal.SIGTERM)
    while not both.client.goaway:
        both.client.pump()
    # The library sends nothing more once it has seen GOAWAY, so this DATA frame is made by hand.
    both.client.socket.sendall(b"\0\0\1\0\0" + both.stream.number.to_bytes(4) + b"x")
    assert both.far.recv(1) == b"x"
    begun = time.monotonic()
    assert both.proxy.wait_for_exit() == 0
    assert time.monotonic() - begun < 6
    assert both.proxy.access_of("/open/t")["failure"] == "websocket_drained"
