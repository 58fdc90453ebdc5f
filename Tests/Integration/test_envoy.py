"""Envoy as a backend: client → Portcullis → Envoy → origin, over each protocol that both speak."""

import os
import socket

import grpc
import pytest

from harness import envoy, http2
from harness.certificates import Authority
from harness.client import request
from harness.http2websocket import Client as WebSocketClient
from harness.proxy import ROUTES, route
from harness.stream import chunked
from harness.websocket import Backend, open_websocket
from test_grpc import MEGABYTE, Service, module_service, service  # noqa: F401
from translation import LISTENER

pytestmark = pytest.mark.skipif(envoy.PROGRAM is None, reason="there is no Envoy: `make setup` installs it")


@pytest.fixture
def start_envoy():
    started = []

    def begin(port: int, **options) -> envoy.Envoy:
        started.append(envoy.Envoy(port, **options))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


@pytest.fixture(params=["http/1.1", "h2c", "h2"])
def through(request, start, start_envoy, tmp_path):
    """Starts Envoy before an origin, and the proxy before Envoy."""

    def begin(port: int, **options):
        settings = f'protocol = "{request.param}"\n'
        identity = None
        if request.param == "h2":
            authority = Authority(tmp_path)
            identity = authority.issue("envoy.internal", file="envoy")
            settings += f'tls = {{ ca = "{authority.path}", name = "envoy.internal" }}\n'
        behind = start_envoy(port, identity=identity, **options)
        return start(behind.port, listener=LISTENER, upstream=settings, workers=1,
                     routes=ROUTES + route("rpc", path="/guarded/*", projects=["production"], app_check="enforce"))

    return begin


def test_requests_and_answers(through, new_origin, mint):
    origin = new_origin()
    proxy, token, size = through(origin.port), mint(), 3_000_000
    origin.answer("/open/down", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"d" * size)
    origin.answer("/open/chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"a" * 70_000))
    with proxy.connect() as connection:
        assert connection.ask(request("GET", "/enforced/a", token=token)).status == 200
        seen = origin.last()
        assert seen.get("x-appcheck-verdict") == "verified" and seen.get("x-firebase-appcheck") is None
        assert connection.ask(request("GET", "/enforced/a")).code == "token_missing"
        assert connection.ask(request("HEAD", "/open/head")).status == 200
        assert connection.ask(request("POST", "/open/up", body=os.urandom(size))).status == 200
        assert origin.last().body_read.length == size
        assert connection.ask(request("GET", "/open/down")).body_read.length == size
        assert connection.ask(request("GET", "/open/chunked")).body_read.length == 70_000
    with http2.Client(proxy.port) as client:
        for number in range(20):
            assert client.ask("GET", f"/enforced/{number}", token=token).status == 200
        assert client.ask("POST", "/open/up", body=os.urandom(size)).status == 200
        assert origin.last().body_read.length == size
        assert len(client.ask("GET", "/open/chunked").body) == 70_000


def test_an_origin_that_is_gone_is_envoys_answer(through):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert through(port).ask("GET", "/open/a").status == 503


def test_websockets(through, mint):
    backend = Backend()
    try:
        proxy, token, message = through(backend.port), mint(), os.urandom(300_000)
        with open_websocket(proxy.port, "/enforced/ws", token=token, subprotocols=["chat"]) as websocket:
            assert websocket.subprotocol == "chat"
            websocket.send(message)
            assert websocket.recv() == message
        with WebSocketClient(proxy.port) as client:
            stream = client.open("/enforced/ws", ("x-firebase-appcheck", token))
            assert stream.status == 200
            stream.send_message(message)
            assert stream.receive_message() == message
        assert all(one.headers["X-AppCheck-Verdict"] == "verified" for one in backend.handshakes)
    finally:
        backend.stop()


def test_grpc_calls(request, through, service, mint):  # noqa: F811
    if "http/1.1" in request.node.name:
        pytest.skip("gRPC needs HTTP/2 on every hop")
    proxy, token = through(service.port, http2_origin=True), mint()
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{proxy.port}", options=unlimited) as channel:
        allowed = {"metadata": [("x-firebase-appcheck", token)], "timeout": 20}
        assert channel.unary_unary("/guarded/Echo")(MEGABYTE, **allowed) == MEGABYTE
        assert list(channel.unary_stream("/guarded/Count")(b"100", **allowed)) == [b"%d" % n for n in range(100)]
        assert list(channel.stream_stream("/guarded/Chat")(iter([b"a", b"b"]), **allowed)) == [b"re: a", b"re: b"]
        with pytest.raises(grpc.RpcError) as failed:
            channel.unary_unary("/guarded/Fail")(b"", **allowed)
        assert failed.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/guarded/Echo")(b"", timeout=20)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
