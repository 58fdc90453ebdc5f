"""TLS that the kernel does for what listeners send. Most of it needs a kernel that has it (`modprobe tls`)."""

import ctypes
import errno
import hashlib
import pathlib
import random
import signal
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.certificates import Authority
from harness.client import Connection, request
from harness.origin import wait_until
from test_upgrade import program, upgrade  # noqa: F401

HOST = "api.example.test"
TCP_ULP = 31
SSL_KEY_UPDATE_REQUESTED = 1
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
CIPHERS = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"]


def is_offered() -> bool:
    """As the proxy finds out: an unconnected socket is refused for that alone."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls\0")
        except OSError as error:
            return error.errno == errno.ENOTCONN
    return True


needs_kernel = pytest.mark.skipif(not is_offered(), reason="this kernel offers no TLS (TCP_ULP refused)")


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def serve(start, new_origin, authority):
    """Starts a proxy whose listener asks for the kernel: `serve(extra)` gives it and its origin."""

    def begin(extra: str = "", **parts):
        identity = authority.issue(HOST, file="api")
        origin = new_origin()
        proxy = start(origin, listener=f"tls.certificates = [{identity.toml}]\ntls.kernel = true\n{extra}", **parts)
        return proxy, origin

    return begin


def connect(proxy, context, **options) -> Connection:
    return Connection(proxy.port, tls=context, name=HOST, **options)


def sealed_by_kernel() -> int:
    lines = pathlib.Path("/proc/net/tls_stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split()[0] in ("TlsTxSw", "TlsTxDevice"))


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def answer(body: bytes, *fields: str) -> bytes:
    head = "\r\n".join(("HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields))
    return head.encode() + b"\r\n\r\n" + body


def is_whole(response, body: bytes) -> bool:
    return (response.body_read.length, response.body_read.sha256) == (len(body), hashlib.sha256(body).hexdigest())


def connections(proxy) -> float:
    return sum(proxy.metric("portcullis_connections", state=state) for state in ("active", "idle"))


def update_keys(sock: ssl.SSLSocket):
    """Has the next bytes that the client sends bring new keys and ask for new ones (RFC 8446, section 4.6.3). Python has
    no call for it, so it is made on the OpenSSL object behind the socket."""
    library = ctypes.CDLL("libssl.so.3")
    library.SSL_version.argtypes = [ctypes.c_void_p]
    library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
    stream = ctypes.c_void_p.from_address(id(sock._sslobj) + 24).value
    assert library.SSL_version(stream) == 0x304, "not where CPython keeps it"
    assert library.SSL_key_update(stream, SSL_KEY_UPDATE_REQUESTED) == 1


def drip(sock: ssl.SSLSocket, count: int, pause: float) -> bytes:
    """Reads to the end (close_notify), slowly at first."""
    got = bytearray()
    while data := sock.recv(16 << 10):
        got += data
        if len(got) < count:
            time.sleep(pause)
    return bytes(got)


@pytest.mark.skipif(is_offered(), reason="this kernel offers TLS")
def test_where_the_kernel_offers_none_that_is_said_and_nothing_else_changes(serve, authority):
    proxy, origin = serve()
    record = proxy.wait_for_record(lambda record: record["msg"].startswith("kernel TLS is not offered"), "the notice")
    assert record["level"] == "warning" and "modprobe tls" in record["msg"]
    assert record["listeners"] == f"127.0.0.1:{proxy.port}"
    body = content(3_000_000)
    origin.answer("/open/a", answer(body))
    with connect(proxy, authority.client()) as connection:
        assert is_whole(connection.ask(request("GET", "/open/a", host=HOST)), body)
    assert proxy.metric("portcullis_tls_kernel_connections_total") == 0


@needs_kernel
@pytest.mark.parametrize("version", VERSIONS)
def test_the_kernel_encrypts_what_is_sent(serve, authority, version):
    proxy, origin = serve()
    proxy.wait_for_record(lambda record: record["msg"].startswith("kernel TLS: the kernel"), "the line")
    before = sealed_by_kernel()
    body = content(2_000_000)
    origin.answer("/open/large", answer(body))
    context = authority.client()
    context.maximum_version = version
    with connect(proxy, context) as connection:
        for _ in range(3):
            assert connection.ask(request("GET", "/open/a", host=HOST)).status == 200
        assert is_whole(connection.ask(request("GET", "/open/large", host=HOST)), body)
        assert connection.ask(request("POST", "/open/up", host=HOST, body=body)).status == 200
        assert origin.last().body_read.length == len(body)
        session = connection.socket.session
    # Tickets were sent after the handshake, by the kernel.
    with connect(proxy, context, session=session) as connection:
        assert connection.ask(request("GET", "/open/a", host=HOST)).status == 200
        assert connection.socket.session_reused
    assert sealed_by_kernel() >= before + 2
    proxy.expect_metric(2, "portcullis_tls_kernel_connections_total")


@needs_kernel
@pytest.mark.parametrize("cipher", CIPHERS + [None])
def test_each_cipher_is_sealed_and_its_connections_end_at_once(serve, authority, cipher):
    proxy, origin = serve()
    body = content(300_000)
    origin.answer("/open/a", answer(body))
    context = authority.client()
    if cipher:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(cipher)
    with connect(proxy, context) as connection:
        assert cipher in (None, connection.socket.cipher()[0])
        assert is_whole(connection.ask(request("GET", "/open/a", "Connection: close", host=HOST)), body)
        assert connection.socket.recv(1) == b""
        # The client has not closed. Did the proxy miscount what the kernel has sent, it would wait for longer.
        wait_until(lambda: connections(proxy) == 0, "the connection is gone", within=20)
    assert proxy.metric("portcullis_tls_kernel_connections_total") == 1


@needs_kernel
@pytest.mark.parametrize("version", VERSIONS)
def test_the_end_of_the_last_answer_reaches_slow_readers(serve, authority, version):
    # The more of them, the more ways in which the kernel is left with the end of a record.
    proxy, origin = serve()
    context = authority.client()
    context.maximum_version = version
    bodies = [content(1_000_000 + 90_001 * place) for place in range(16)]

    def read(body: bytes) -> bool:
        path = f"/open/{len(body)}"
        origin.answer(path, answer(body))
        got = bytearray()
        with connect(proxy, context, receive_buffer=4096, patience=50) as connection:
            connection.socket.suppress_ragged_eofs = False
            connection.send(request("GET", path, "Connection: close", host=HOST))
            step = 0
            try:
                while data := connection.socket.recv(16 << 10):
                    got += data
                    if len(got) - step > 250_000:
                        step = len(got)
                        # Longer than a connection lingers.
                        time.sleep(2.5)
            except OSError:
                return False
        return got.endswith(body)

    with ThreadPoolExecutor(len(bodies)) as pool:
        assert [len(body) for body, is_whole in zip(bodies, pool.map(read, bodies)) if not is_whole] == []


@needs_kernel
def test_a_drain_waits_for_what_the_kernel_still_holds(serve, authority):
    proxy, origin = serve()
    body = content(3_000_000)
    origin.answer("/open/a", answer(body))
    with connect(proxy, authority.client(), receive_buffer=4096, patience=50) as connection:
        connection.socket.suppress_ragged_eofs = False
        connection.send(request("GET", "/open/a", host=HOST))
        wait_until(lambda: origin.requests, "the request arrives")
        proxy.signal(signal.SIGTERM)
        proxy.wait_for_record(lambda record: record["msg"] == "draining", "the drain begins")
        time.sleep(2.5)
        assert drip(connection.socket, 100_000, 0.01).endswith(body)
    assert proxy.wait_for_exit() == 0


@needs_kernel
def test_an_upgrade_cuts_no_answer_that_the_kernel_seals(serve, authority, program):
    proxy, origin = serve(program=program, server='upgrade_timeout = "1m"')
    body = content(3_000_000)
    origin.answer("/open/a", answer(body))
    with connect(proxy, authority.client(), receive_buffer=4096, patience=50) as connection:
        connection.send(request("GET", "/open/a", host=HOST))
        wait_until(lambda: origin.requests, "the request arrives")
        upgrade(proxy)
        assert is_whole(connection.read_response(), body)
    with connect(proxy, authority.client()) as connection:
        assert is_whole(connection.ask(request("GET", "/open/a", host=HOST)), body)
    proxy.expect_metric(1, "portcullis_tls_kernel_connections_total")


@needs_kernel
def test_a_client_that_asks_for_new_keys_is_served_and_then_let_go(serve, authority):
    proxy, origin = serve()
    body = content(400_000)
    origin.answer("/open/a", answer(body))
    with connect(proxy, authority.client()) as connection:
        connection.socket.suppress_ragged_eofs = False
        assert connection.ask(request("GET", "/open/a", host=HOST)).get("connection") is None
        update_keys(connection.socket)
        # The kernel has no new keys, so this is the last one.
        last = connection.ask(request("GET", "/open/a", host=HOST))
        assert is_whole(last, body) and last.get("connection") == "close"
        assert connection.socket.recv(1) == b""


@needs_kernel
def test_new_keys_in_the_middle_of_an_answer_do_not_harm_it(serve, authority):
    proxy, origin = serve()
    body = content(3_000_000)
    origin.answer("/open/a", answer(body))
    with connect(proxy, authority.client(), receive_buffer=4096, patience=50) as connection:
        connection.send(request("GET", "/open/a", host=HOST))
        wait_until(lambda: origin.requests, "the request arrives")
        update_keys(connection.socket)
        connection.send(request("GET", "/open/a", host=HOST))
        assert is_whole(connection.read_response(), body)
        assert is_whole(connection.read_response(), body)


@needs_kernel
def test_http2_with_new_keys(serve, authority):
    proxy, origin = serve('protocols = ["h2", "http/1.1"]')
    body = content(2_000_000)
    origin.answer("/open/a", answer(body))
    context = authority.client("h2")
    sock = context.wrap_socket(socket.create_connection(("127.0.0.1", proxy.port)), server_hostname=HOST)
    assert sock.selected_alpn_protocol() == "h2"
    sock.settimeout(None)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    settings = b"\0\0\0\4\0\0\0\0\0"
    ping = b"\0\0\x08\6\0\0\0\0\0abcdefgh"
    sock.sendall(preface + settings + ping)
    update_keys(sock)
    sock.sendall(ping)
    sock.settimeout(20)
    got = b""
    while data := sock.recv(4096):
        got += data
    # Both pings were answered, then GOAWAY, then close_notify.
    assert got.count(b"\0\0\x08\6\1\0\0\0\0abcdefgh") == 2 and b"\7\0\0\0\0\0" in got
    sock.close()


@needs_kernel
@pytest.mark.parametrize("rate", ["500M", "1M"])
def test_http2_streams_side_by_side(serve, authority, tmp_path, rate):
    proxy, origin = serve('protocols = ["h2", "http/1.1"]')
    body = content(2_000_000)
    origin.answer("/open/a", answer(body))
    url = f"https://{HOST}:{proxy.port}/open/a"
    command = ["curl", "-sS", "--http2", "-k", "--parallel", "--limit-rate", rate, "--resolve",
               f"{HOST}:{proxy.port}:127.0.0.1"]
    files = [tmp_path / f"out{index}" for index in range(4)]
    for file in files:
        command += ["-o", file, url]
    subprocess.run(command, capture_output=True, timeout=100, check=True)
    assert all(file.read_bytes() == body for file in files)
    assert proxy.metric("portcullis_tls_kernel_connections_total") >= 1
