"""C4: gRPC through the proxy, with a client and a server that were not written here."""

import concurrent.futures
import threading
import time

import grpc
import pytest

from conftest import running_proxy
from harness import tokens
from harness.proxy import route
from translation import LISTENER

ROUTES = "".join((
    route("guarded", upstream="grpc", projects=["production"], app_check="enforce"),
    route("ios", upstream="grpc", projects=["production"], apps=["ios"], app_check="enforce"),
    route("open", upstream="grpc", app_check="off"),
    route("gone", upstream="gone", app_check="off"),
    route("scarce", upstream="grpc", app_check="off", rate_limit={"requests": 3, "per": "1h"}),
    route("web", projects=["production"], app_check="enforce", cors={"allow_origins": ["https://app.example.com"]})))
MEGABYTE = b"m" * (1 << 20)


class Service(grpc.GenericRpcHandler):
    """Answers any service's methods with raw bytes."""

    def __init__(self):
        self.cancelled = threading.Event()
        self.metadata = None

    def service(self, details):
        method = details.method.rsplit("/", 1)[1]
        make = {"Echo": grpc.unary_unary_rpc_method_handler, "Fail": grpc.unary_unary_rpc_method_handler,
                "Wait": grpc.unary_unary_rpc_method_handler, "Count": grpc.unary_stream_rpc_method_handler,
                "Endless": grpc.unary_stream_rpc_method_handler, "Sum": grpc.stream_unary_rpc_method_handler,
                "Chat": grpc.stream_stream_rpc_method_handler}.get(method)
        return make(getattr(self, method)) if make else None

    def Echo(self, message, context):
        self.metadata = dict(context.invocation_metadata())
        context.send_initial_metadata((("x-first", "1"),))
        context.set_trailing_metadata((("x-last", "2"), ("x-last-bin", b"\0\1")))
        return message

    def Fail(self, _, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not näw: 100%")

    def Wait(self, message, context):
        context.add_callback(self.cancelled.set)
        self.cancelled.wait(20)
        return message

    def Count(self, message, _):
        for number in range(int(message)):
            yield str(number).encode()

    def Endless(self, _, context):
        context.add_callback(self.cancelled.set)
        number = 0
        while context.is_active():
            yield str(number).encode()
            number += 1
            time.sleep(0.01)

    def Sum(self, messages, _):
        return str(sum(len(message) for message in messages)).encode()

    def Chat(self, messages, _):
        for message in messages:
            yield b"re: " + message


UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
             ("grpc.max_metadata_size", 1 << 20), ("grpc.absolute_max_metadata_size", 1 << 20)]


@pytest.fixture(scope="module")
def module_service():
    service = Service()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(120), handlers=[service], options=UNLIMITED)
    service.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield service
    server.stop(0).wait()


@pytest.fixture
def service(module_service):
    module_service.cancelled.clear()
    return module_service


@pytest.fixture(scope="module")
def module_proxy(module_service, module_origin, key_file):
    upstreams = f'''
[upstream.grpc]
servers = ["127.0.0.1:{module_service.port}"]
protocol = "h2c"

[upstream.gone]
servers = ["127.0.0.1:1"]
protocol = "h2c"
'''
    with running_proxy([module_origin], key_file, listener=LISTENER, routes=ROUTES, extra=upstreams) as proxy:
        yield proxy


@pytest.fixture
def channel(proxy, service):
    with grpc.insecure_channel(f"127.0.0.1:{proxy.port}", options=UNLIMITED) as channel:
        yield channel


@pytest.fixture
def good(mint):
    return (("x-firebase-appcheck", mint()),)


def test_unary(channel, service, good):
    answer, call = channel.unary_unary("/guarded/Echo").with_call(b"hello", metadata=good)
    assert answer == b"hello" and call.code() == grpc.StatusCode.OK
    assert ("x-first", "1") in [tuple(pair) for pair in call.initial_metadata()]
    last = [tuple(pair) for pair in call.trailing_metadata()]
    assert ("x-last", "2") in last and ("x-last-bin", b"\0\1") in last
    assert service.metadata["x-appcheck-verdict"] == "verified" and "x-firebase-appcheck" not in service.metadata


def test_a_call_beyond_a_rate_limit_is_resource_exhausted(channel):
    call = channel.unary_unary("/scarce/Echo")
    assert [call(b"hello") for _ in range(3)] == [b"hello"] * 3
    with pytest.raises(grpc.RpcError) as refused:
        call(b"hello")
    assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "rate_limited")


def test_a_megabyte_both_ways(channel, good):
    assert channel.unary_unary("/guarded/Echo")(MEGABYTE, metadata=good) == MEGABYTE


def test_an_empty_message(channel):
    assert channel.unary_unary("/open/Echo")(b"") == b""


def test_server_streaming(channel, good):
    answers = list(channel.unary_stream("/guarded/Count")(b"500", metadata=good))
    assert answers == [str(number).encode() for number in range(500)]


def test_client_streaming(channel, good):
    assert channel.stream_unary("/guarded/Sum")((MEGABYTE for _ in range(10)), metadata=good) == b"10485760"


def test_bidirectional_streaming_takes_turns(channel, good):
    ready = threading.Semaphore(1)

    def messages():
        for number in range(100):
            assert ready.acquire(timeout=10)
            yield str(number).encode()

    for number, answer in enumerate(channel.stream_stream("/guarded/Chat")(messages(), metadata=good)):
        assert answer == b"re: " + str(number).encode()
        ready.release()
    assert number == 99


def test_a_status_of_the_servers_own_passes(channel):
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/open/Fail")(b"")
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "not näw: 100%")


def test_a_method_that_is_not_there_is_unimplemented(channel):
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/open/Nothing")(b"")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_deadline_reaches_the_server(channel, service):
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/open/Wait")(b"", timeout=0.3)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert service.cancelled.wait(10)


def test_a_cancellation_reaches_the_server(proxy, channel, service):
    answers = channel.unary_stream("/open/Endless")(b"")
    assert next(answers) == b"0"
    answers.cancel()
    assert service.cancelled.wait(10)
    assert proxy.access_of("/open/Endless")["failure"] == "client_aborted"


def test_large_metadata(channel, service):
    value = "v" * 12_000
    channel.unary_unary("/open/Echo")(b"", metadata=(("x-large", value),))
    assert service.metadata["x-large"] == value


def test_a_hundred_at_once(channel, good):
    echo = channel.unary_unary("/guarded/Echo")
    calls = [echo.future(str(number).encode() * 100, metadata=good) for number in range(100)]
    assert [call.result() for call in calls] == [str(number).encode() * 100 for number in range(100)]


def test_many_calls_that_are_cancelled_do_not_end_the_connection(channel):
    wait = channel.unary_unary("/open/Wait")
    for _ in range(5):
        calls = [wait.future(b"") for _ in range(50)]
        for call in calls:
            call.cancel()
    assert channel.unary_unary("/open/Echo")(b"a") == b"a"


@pytest.mark.parametrize("path, change, code, message", [
    ("/guarded/Echo", None, grpc.StatusCode.UNAUTHENTICATED, "token_missing"),
    ("/guarded/Echo", {"claims": {"exp": 1000, "iat": 900}}, grpc.StatusCode.UNAUTHENTICATED, "token_expired"),
    ("/guarded/Echo", {"signature": b"a" * 256}, grpc.StatusCode.UNAUTHENTICATED, "token_invalid"),
    ("/ios/Echo", {"claims": {"sub": tokens.ANDROID}}, grpc.StatusCode.PERMISSION_DENIED, "app_not_allowed")],
    ids=["missing", "expired", "invalid", "app"])
def test_C4_a_refusal_is_a_status(channel, mint, path, change, code, message):
    metadata = () if change is None else (("x-firebase-appcheck", mint(**change)),)
    for call in (channel.unary_unary(path), channel.stream_unary(path)):
        body = b"" if call.__class__.__name__.startswith("_UnaryUnary") else iter([b"a"] * 10)
        with pytest.raises(grpc.RpcError) as caught:
            call(body, metadata=metadata)
        assert (caught.value.code(), caught.value.details()) == (code, message)


def test_C4_the_placeholder_is_a_status(channel):
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/guarded/Echo")(b"", metadata=(("x-firebase-appcheck", tokens.PLACEHOLDER),))
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAUTHENTICATED, "attestation_failed")


def test_C4_a_refusal_is_one_block_of_fields(proxy):
    from harness.http2 import Client
    with Client(proxy.port) as client:
        half = client.ask("POST", "/guarded/Echo", ("content-type", "application/grpc"), ("te", "trailers"), body=b"\0\0\0\0\0")
    assert (half.status, half.get("grpc-status"), half.get("grpc-message")) == (200, "16", "token_missing")
    assert half.is_head_only and half.trailers == [] and half.get("content-type") == "application/grpc"


def test_a_server_that_is_gone_is_unavailable(channel):
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/gone/Echo")(b"")
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


def test_grpc_web_passes_through_http_1(proxy, origin, mint):
    body = b"\0\0\0\0\5hello"
    answer = body + b"\x80\0\0\0\x10grpc-status: 0\r\n"
    origin.on("/web/Echo", lambda exchange: exchange.respond(200, "Content-Type: application/grpc-web+proto", body=answer))
    fields = ("Content-Type: application/grpc-web+proto", "X-Grpc-Web: 1", "Origin: https://app.example.com")
    response = proxy.ask("POST", "/web/Echo", *fields, token=mint(), body=body)
    assert (response.status, response.body) == (200, answer)
    assert origin.last().body == body
    refused = proxy.ask("POST", "/web/Echo", *fields, body=body)
    assert (refused.status, refused.get("grpc-status"), refused.get("grpc-message")) == (200, "16", "token_missing")
    exposed = refused.get("access-control-expose-headers").lower()
    assert "grpc-status" in exposed and "grpc-message" in exposed


@pytest.mark.parametrize("asked, answered", [
    ("application/grpc-web+proto", "application/grpc-web+proto"), ("application/grpc-web", "application/grpc-web+proto"),
    ("Application/GRPC-Web+JSON", "application/grpc-web+json"), ("application/grpc-web-text", "application/grpc-web-text+proto"),
    ("application/grpc", "application/grpc"), ("application/grpc+proto", "application/grpc")])
def test_C4_a_refusal_is_of_the_kind_that_the_caller_speaks(proxy, asked, answered):
    refused = proxy.ask("POST", "/web/Echo", f"Content-Type: {asked}", body=b"\0\0\0\0\0")
    assert (refused.status, refused.get("content-type"), refused.get("grpc-status")) == (200, answered, "16")
