"""W7: a WebSocket before a backend that speaks HTTP/2 (RFC 8441): from either version, judged as before."""

import contextlib
import json
import os
import signal
import socket
import threading
import time

import pytest
from websockets.exceptions import InvalidStatus

from conftest import running_proxy
from harness import http2
from harness.http2backend import Backend
from harness.http2websocket import Client
from harness.origin import Gate, wait_until
from harness.proxy import ROUTES
from harness.replay import limited
from harness.websocket import handshake, open_websocket
from test_websocket import BROWSERS, MEMORY
from translation import LISTENER

H2C = 'protocol = "h2c"'


@pytest.fixture(scope="module")
def module_http2_backend():
    backend = Backend()
    yield backend
    backend.stop()


@pytest.fixture
def backend(module_http2_backend):
    module_http2_backend.forget()
    module_http2_backend.closed.clear()
    yield module_http2_backend
    assert module_http2_backend.errors == []


@pytest.fixture(scope="module")
def module_proxy(module_http2_backend, key_file):
    with running_proxy([module_http2_backend], key_file, listener=LISTENER, upstream=H2C, routes=ROUTES + BROWSERS,
                       extra=MEMORY, workers=1) as proxy:
        yield proxy


def test_messages_of_a_client_of_http1_come_back(proxy, backend, mint):
    token = mint()
    with open_websocket(proxy.port, "/enforced/one?a=b", token=token, subprotocols=["chat"], compression=None) as ws:
        assert ws.subprotocol == "chat"
        for size in (0, 1, 125, 126, 65_536, 1_000_000):
            message = os.urandom(size)
            ws.send(message)
            assert ws.recv() == message
    backend.wait(lambda: ("/enforced/one?a=b", 1000, None) in backend.closed, "the close code, and a clean end")
    seen = backend.last()
    assert [seen.get(name) for name in (":method", ":protocol", ":scheme", ":path")] == [
        "CONNECT", "websocket", "http", "/enforced/one?a=b"]
    assert seen.get("x-appcheck-verdict") == "verified" and seen.get("sec-websocket-version") == "13"
    # What is about a connection stays behind (RFC 8441, section 5), and so does the token.
    for name in ("connection", "upgrade", "x-firebase-appcheck"):
        assert seen.get(name) is None
    record = proxy.access_of("/enforced/one")
    assert (record["protocol"], record["status"]) == ("http/1.1", 101)
    assert "failure" not in record and record["bytes_in"] > 1_000_000


def test_messages_of_a_client_of_http2_come_back(proxy, backend, mint):
    with Client(proxy.port) as client:
        stream = client.open("/enforced/two", ("x-firebase-appcheck", mint()), ("sec-websocket-protocol", "chat"))
        assert (stream.status, stream.fields["sec-websocket-protocol"]) == (200, "chat")
        assert not {"connection", "upgrade", "sec-websocket-accept"} & set(stream.fields)
        for size in (1, 126, 65_536, 1_000_000):
            message = os.urandom(size)
            stream.send_message(message)
            assert stream.receive_message() == message
        stream.close_websocket()
        stream.wait_until_over()
        assert stream.reset is None
    backend.wait(lambda: ("/enforced/two", 1000, None) in backend.closed, "the close code, and a clean end")
    assert proxy.access_of("/enforced/two")["protocol"] == "http/2"


def test_many_share_one_connection_with_requests(proxy, backend, mint):
    token = mint()
    before = backend.connections
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open_websocket(proxy.port, "/enforced/many", token=token, compression=None))
                  for _ in range(20)]
        assert proxy.ask("GET", "/open/beside").status == 200
        for number, websocket in enumerate(opened):
            websocket.send(f"message {number}")
        for number, websocket in enumerate(opened):
            assert websocket.recv() == f"message {number}"
    assert backend.connections - before <= 1


def test_a_handshake_that_is_refused_reaches_nobody(proxy, backend):
    with pytest.raises(InvalidStatus) as caught:
        open_websocket(proxy.port, "/enforced/refused")
    assert json.loads(caught.value.response.body)["code"] == "token_missing"
    assert backend.requests == []


def test_a_token_as_a_subprotocol_is_removed(proxy, backend, mint):
    with open_websocket(proxy.port, "/page/h2", subprotocols=["chat", f"appcheck.{mint()}"], compression=None) as ws:
        assert ws.subprotocol == "chat"
    assert backend.last().get("sec-websocket-protocol") == "chat"


@pytest.mark.parametrize("answer", ["refused", "reset"])
def test_a_backend_that_declines_is_heard(proxy, backend, mint, answer):
    def refuse(exchange):
        exchange.head(403, ("content-length", "2"))
        exchange.send(b"no", end=True)

    backend.on("/enforced/no", refuse if answer == "refused" else lambda exchange: exchange.reset(7), early=True)
    with proxy.connect() as connection:
        response = connection.ask(handshake("/enforced/no", token=mint()))
        assert response.status == (403 if answer == "refused" else 502)
        if answer == "refused":
            assert response.body == b"no"
            # The connection goes on, and nothing of the answer before is left on it.
            assert connection.ask(b"GET /open/after HTTP/1.1\r\nHost: a.test\r\n\r\n").status == 200


def test_W10_more_than_was_announced_is_not_the_next_answer(proxy, backend, mint):
    def smuggle(exchange):
        peer, stream = exchange.peer, exchange.stream
        with peer.changed:
            peer.h2.send_headers(stream, [(":status", "403"), ("content-length", "2")])
            peer.h2.send_data(stream, b"noHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", end_stream=True)
            peer.flush()

    backend.on("/enforced/smuggle", smuggle, early=True)
    with proxy.connect() as connection:
        response = connection.ask(handshake("/enforced/smuggle", token=mint()))
        assert (response.status, response.json()["code"]) == (502, "upstream_protocol")
    with proxy.connect() as connection:
        assert connection.ask(b"GET /open/after HTTP/1.1\r\nHost: a.test\r\n\r\n").body == b"ok"


@pytest.mark.parametrize("settings", [{}, {http2.h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 0}])
@pytest.mark.parametrize("version", [1, 2])
def test_R9_who_does_not_offer_it_is_not_asked_and_no_token_is_spent(start, keys, settings, version):
    behind = Backend(settings)
    try:
        proxy = start(behind, listener=LISTENER, upstream=H2C, routes=ROUTES + BROWSERS, extra=MEMORY)
        token = limited(keys.first)
        for _ in range(2):
            if version == 1:
                with proxy.connect() as connection:
                    response = connection.ask(handshake("/page-once/x", token=token))
                    assert (response.status, response.code) == (501, "websocket_not_supported")
            else:
                with Client(proxy.port) as client:
                    stream = client.open("/page-once/x", ("x-firebase-appcheck", token))
                    assert stream.status == 501
        assert behind.requests == []
        assert proxy.access_of("/page-once/x")["failure"] == "websocket_not_supported"
        # The token is as good as new: for an ordinary request of the route it is claimed once.
        assert proxy.ask("GET", "/page-once/y", token=token).status == 200
        assert proxy.ask("GET", "/page-once/y", token=token).code == "token_already_used"
    finally:
        behind.stop()


def test_a_server_that_never_says_what_it_takes_is_given_up(start, mint):
    silent = socket.create_server(("127.0.0.1", 0))
    try:
        proxy = start(silent.getsockname()[1], upstream=H2C + '\ntimeouts = { connect = "300ms" }')
        with proxy.connect() as connection:
            assert connection.ask(handshake("/open/x")).status == 504
    finally:
        silent.close()


def test_a_vanished_backend_ends_the_tunnel(proxy, backend, mint):
    backend.on("/open/cut", lambda exchange: (exchange.head(200), exchange.send(b"\x82\x01x"), exchange.peer.abort()),
               early=True)
    with proxy.connect() as connection:
        connection.send(handshake("/open/cut"))
        assert connection.read_head().status == 101
        with pytest.raises(OSError):
            while connection.stream.socket.recv(100):
                pass
            raise OSError
    assert proxy.access_of("/open/cut")["failure"] == "upstream_reset"


# Trailers that end nothing (RFC 9113, section 8.1).
NO_END = [("x", "1")]


def test_W3_a_client_whose_stream_is_malformed_in_an_open_tunnel_is_not_taken_for_gone(proxy, backend):
    with Client(proxy.port) as client:
        stream = client.open("/open/client-breaks")
        stream.send_message(b"a")
        assert stream.receive_message() == b"a"
        client.socket.sendall(http2.frame(1, 4, stream.number, client.h2.encoder.encode(NO_END)))
        stream.wait_until_over()
        assert stream.reset == 1
    assert proxy.access_of("/open/client-breaks")["failure"] == "malformed"
    backend.wait(lambda: backend.last().reset is not None, "the backend's stream is reset")
    assert backend.last().reset == 8


def test_W10_a_backend_whose_stream_is_malformed_in_an_open_tunnel_is_not_taken_for_gone(proxy, backend):
    def script(exchange):
        exchange.head(200)
        assert gate.wait()
        exchange.peer.send_raw(http2.frame(1, 4, exchange.stream, exchange.peer.h2.encoder.encode(NO_END)))
        codes.append(exchange.wait_for_reset())

    gate, codes = Gate(), []
    backend.on("/open/backend-breaks", script, early=True)
    with Client(proxy.port) as client:
        stream = client.open("/open/backend-breaks")
        assert stream.status == 200
        gate.open()
        stream.wait_until_over()
        assert stream.reset == 8
    assert proxy.access_of("/open/backend-breaks")["failure"] == "upstream_protocol"
    wait_until(lambda: codes, "the backend's stream is reset")
    assert codes == [1]


def test_a_client_that_vanishes_is_told_to_the_backend(proxy, backend):
    with proxy.connect() as connection:
        connection.send(handshake("/open/gone"))
        assert connection.read_head().status == 101
    backend.wait(lambda: any(path == "/open/gone" for path, _, _ in backend.closed), "the stream ends")


def test_a_backend_that_opens_no_window_costs_no_memory(start, mint):
    behind = Backend()
    gate = threading.Event()

    def ignore(exchange):
        exchange.peer.opens_windows = False
        exchange.head(200)
        gate.wait(60)

    behind.on("/open/slow", ignore, early=True)
    try:
        proxy = start(behind, upstream=H2C, workers=1)
        with proxy.connect() as connection:
            connection.send(handshake("/open/slow"))
            assert connection.read_head().status == 101
            sock = connection.stream.socket
            sock.settimeout(1.0)
            before, sent, piece = proxy.resident_bytes(), 0, os.urandom(1 << 16)
            with pytest.raises(TimeoutError):
                while sent < 256 << 20:
                    sent += sock.send(piece)
            assert proxy.resident_bytes() - before < 4 << 20
    finally:
        gate.set()
        behind.stop()


def test_O2_O3_reload_and_drain_leave_a_tunnel_alone(start):
    behind = Backend()
    try:
        proxy = start(behind, upstream=H2C, server='drain_timeout = "2s"')
        with open_websocket(proxy.port, "/open/t", compression=None) as websocket:
            proxy.signal(signal.SIGHUP)
            proxy.expect_metric(1, "portcullis_config_reloads_total", result="success")
            websocket.send("after the reload")
            assert websocket.recv() == "after the reload"
            proxy.signal(signal.SIGTERM)
            websocket.send("while it drains")
            assert websocket.recv() == "while it drains"
            begun = time.monotonic()
            assert proxy.wait_for_exit() == 0
            assert time.monotonic() - begun < 6
        assert proxy.access_of("/open/t")["failure"] == "websocket_drained"
    finally:
        behind.stop()
