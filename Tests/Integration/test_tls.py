"""TLS on listeners and towards upstreams: certificates, sessions, clients with certificates, reloads, faults."""

import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from harness import client, http2, proxy as proxies
from harness.certificates import Authority
from harness.client import Closed, Connection, request
from harness.origin import Gate, Origin, wait_until

HOST = "api.example.test"


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def api(authority):
    return authority.issue(HOST, file="api")


def listener(*identities, extra: str = "") -> str:
    """What a [[listener]] with these certificates has besides its address."""
    return f"tls.certificates = [{', '.join(identity.toml for identity in identities)}]\n{extra}"


def connect(proxy, context, name=HOST, **options) -> Connection:
    return Connection(proxy.port, tls=context, name=name, **options)


def shown(proxy, context, name) -> int:
    """The serial number of the certificate that a client gets who asks for a name."""
    with connect(proxy, context, name) as connection:
        return int(connection.socket.getpeercert()["serialNumber"], 16)


def lenient(authority) -> ssl.SSLContext:
    """A client that trusts the authority and does not care for the name."""
    context = authority.client()
    context.check_hostname = False
    return context


# Requests


def test_requests_over_tls(start, new_origin, authority, api, mint):
    origin = new_origin()
    proxy = start(origin, listener=listener(api))
    with connect(proxy, authority.client("http/1.1")) as connection:
        assert connection.socket.selected_alpn_protocol() == "http/1.1"
        for _ in range(3):
            assert connection.ask(request("GET", "/enforced/a", host=HOST, token=mint())).status == 200
        assert connection.ask(request("GET", "/enforced/a", host=HOST)).code == "token_missing"
    assert origin.last().all("x-forwarded-proto") == ["https"]
    record = proxy.access_of("/enforced/a")
    assert (record["tls_version"], record["sni"]) == ("TLSv1.3", HOST)
    assert "client_subject" not in record


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_large_bodies_both_ways(start, new_origin, authority, api, version):
    origin = new_origin()
    size = 5_000_000
    origin.answer("/open/down", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"d" * size)
    proxy = start(origin, listener=listener(api))
    context = authority.client()
    context.maximum_version = version
    with connect(proxy, context, receive_buffer=64 << 10) as connection:
        answer = connection.ask(request("POST", "/open/up", host=HOST, body=b"u" * size))
        assert answer.status == 200
        assert origin.last().body_read.length == size
        answer = connection.ask(request("GET", "/open/down", host=HOST))
        assert answer.body_read.length == size
        # Whatever lay between OpenSSL's buffers and the socket, the next request is found.
        assert connection.ask(request("GET", "/open/a", host=HOST)).status == 200


def test_pipelined_requests_in_one_record(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api))
    with connect(proxy, authority.client()) as connection:
        connection.send(request("GET", "/open/a", host=HOST) * 40)
        assert [connection.read_response().status for _ in range(40)] == [200] * 40


def test_a_request_that_comes_byte_by_byte(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api))
    with connect(proxy, authority.client()) as connection:
        for byte in request("GET", "/open/a", host=HOST):
            connection.send(bytes([byte]))
        assert connection.read_response().status == 200


def test_ends_with_close_notify(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api))
    context = authority.client()
    with connect(proxy, context) as connection:
        connection.socket.suppress_ragged_eofs = False
        connection.send(request("GET", "/open/a", "Connection: close", host=HOST))
        assert connection.read_response().status == 200
        assert connection.socket.recv(1) == b""


def test_an_answer_that_was_cut_off_does_not(start, new_origin, authority, api):
    origin, gate = new_origin(), Gate()

    def cut(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
        gate.wait()
        exchange.close()

    origin.on("/open/cut", cut)
    proxy = start(origin, listener=listener(api))
    with connect(proxy, authority.client()) as connection:
        connection.socket.suppress_ragged_eofs = False
        connection.send(request("GET", "/open/cut", host=HOST))
        connection.read_head()
        gate.open()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            while connection.socket.recv(1000):
                pass


def test_curl_speaks_both_protocols(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api, extra='protocols = ["h2", "http/1.1"]'))
    for option, version in (("--http1.1", "1.1"), ("--http2", "2")):
        done = subprocess.run(
            ["curl", "-sS", option, "--cacert", authority.path, "--resolve",
             f"{HOST}:{proxy.port}:127.0.0.1", f"https://{HOST}:{proxy.port}/open/a",
             "-o", "/dev/null", "-w", "%{http_version} %{http_code} %{ssl_verify_result}"],
            capture_output=True, text=True, timeout=20, check=False)
        assert done.stdout == f"{version} 200 0", done.stderr


# Certificates


def test_the_name_picks_the_certificate(start, new_origin, authority):
    first = authority.issue("default.example", "*.b.example.com", file="first")
    exact = authority.issue("a.example.com", file="exact")
    wildcard = authority.issue("*.example.com", file="wildcard")
    proxy = start(new_origin(), listener=listener(first, exact, wildcard))
    context = lenient(authority)
    for name, identity in {
        "a.example.com": exact, "A.EXAMPLE.COM": exact, "b.example.com": wildcard,
        "x.b.example.com": first, "x.y.example.com": first, "other.example": first, None: first,
    }.items():
        assert shown(proxy, context, name) == identity.serial, name


def test_421_where_name_and_host_have_different_certificates(start, new_origin, authority):
    """_P7_: what the client checked says nothing about another certificate's host."""
    one = authority.issue("one.example", "also.example", file="one")
    two = authority.issue("two.example", file="two")
    origin = new_origin()
    proxy = start(origin, listener=listener(one, two))
    with connect(proxy, authority.client(), "one.example") as connection:
        for host, status in {"one.example": 200, "ONE.example:443": 200, "also.example": 200,
                             "two.example": 421, "unknown.example": 200}.items():
            response = connection.ask(request("GET", "/open/a", host=host))
            assert response.status == status, host
            if status == 421:
                assert response.code == "misdirected_request"
    assert "two.example" not in [request.get("host") for request in origin.requests]
    with connect(proxy, lenient(authority), "two.example") as connection:
        assert connection.ask(request("GET", "/open/a", host="unknown.example")).status == 421
    # Without a name nothing was promised.
    with connect(proxy, lenient(authority), None) as connection:
        assert connection.ask(request("GET", "/open/a", host="two.example")).status == 200
    assert proxy.access_of("/open/a", 3)["failure"] == "misdirected"


def test_staples_what_the_authority_said(start, new_origin, authority, api):
    path = authority.say(api, "api.ocsp")
    tls = f'tls.certificates = [{{ certificate = "{api.certificate}", key = "{api.key}", ocsp = "{path}" }}]'
    proxy = start(new_origin(), listener=tls)
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{proxy.port}", "-servername", HOST, "-status",
         "-CAfile", authority.path],
        input="", capture_output=True, text=True, timeout=20, check=False)
    assert "OCSP Response Status: successful" in done.stdout
    assert "Cert Status: good" in done.stdout
    assert "Verify return code: 0 (ok)" in done.stdout


AES_128, AES_256 = "AES_128_GCM_SHA256", "AES_256_GCM_SHA384"
CHACHA = "CHACHA20_POLY1305_SHA256"


@pytest.mark.parametrize(
    "offered, chosen",
    [([AES_256, CHACHA, AES_128], AES_128), ([AES_256, CHACHA], AES_256),
     # A client without instructions for AES says so by what it wants first.
     ([CHACHA, AES_128, AES_256], CHACHA)],
    ids=["the-cheapest", "what-there-is", "without-aes"])
def test_the_cipher_and_one_ticket(start, new_origin, authority, api, offered, chosen):
    proxy = start(new_origin(), listener=listener(api))
    names = ":".join(f"TLS_{name}" for name in offered)
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{proxy.port}", "-servername", HOST, "-ciphersuites",
         names, "-CAfile", authority.path, "-ign_eof"],
        input=request("GET", "/open/a", "Connection: close", host=HOST).decode(), capture_output=True, text=True,
        timeout=20, check=False)
    assert "HTTP/1.1 200" in done.stdout
    assert f"New, TLSv1.3, Cipher is TLS_{chosen}" in done.stdout
    assert done.stdout.count("Post-Handshake New Session Ticket arrived") == 1


# Sessions


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_go_on_in_any_loop(start, new_origin, authority, api, version):
    proxy = start(new_origin(), listener=listener(api), workers=2)
    context = authority.client()
    context.maximum_version = version
    session = None
    # The kernel spreads connections over the loops.
    for index in range(12):
        with connect(proxy, context, session=session) as connection:
            assert connection.ask(request("GET", "/open/a", host=HOST)).status == 200
            assert connection.socket.session_reused == (index > 0)
            session = connection.socket.session
    proxy.expect_metric(11, "portcullis_tls_handshakes_total", kind="resumed")


def test_sessions_outlive_a_reload(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api))
    context = authority.client()
    with connect(proxy, context) as connection:
        connection.ask(request("GET", "/open/a", host=HOST))
        session = connection.socket.session
    reload(proxy)
    with connect(proxy, context, session=session) as connection:
        assert connection.socket.session_reused


def test_nobody_renegotiates(start, new_origin, api):
    proxy = start(new_origin(), listener=listener(api))
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{proxy.port}", "-servername", HOST, "-tls1_2"],
        input="R\n", capture_output=True, text=True, timeout=20, check=False)
    assert "no renegotiation" in done.stderr


def test_the_oldest_version(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api, extra='tls.min_version = "1.3"'))
    context = authority.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="alert protocol version"):
        connect(proxy, context)
    assert connect(proxy, authority.client()).socket.version() == "TLSv1.3"


# Clients with certificates


@pytest.fixture
def clients(tmp_path) -> Authority:
    return Authority(tmp_path, "Client authority")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_the_client_is_reaches_the_backend_and_the_log(
        start, new_origin, authority, api, clients, version):
    origin = new_origin()
    proxy = start(origin, listener=listener(api, extra=f'tls.client_ca = "{clients.path}"'))
    someone = clients.issue(file="someone", subject="someone, ünd\r\nX-Evil: 1", usage="client")
    context = authority.client(identity=someone)
    context.maximum_version = version
    session = None
    for resumed in (False, True):
        with connect(proxy, context, session=session) as connection:
            response = connection.ask(request(
                "GET", "/open/a", "X-Client-Cert-Subject: CN=forged", "x_client_cert_subject: CN=forged",
                "X-Client-Cert-Serial: 1", "Client-Cert: :Zm9yZ2Vk:", host=HOST))
            assert response.status == 200
            assert connection.socket.session_reused == resumed
            session = connection.socket.session
        seen = origin.last()
        subject = r"CN=someone\, \C3\BCnd\0D\0AX-Evil: 1,O=Tests"
        assert seen.all("x-client-cert-subject") == [subject]
        fingerprint = seen.get("x-client-cert-fingerprint")
        assert len(fingerprint) == 64
        assert b"forged" not in seen.head and b"serial" not in seen.head.lower()
    record = proxy.access_of("/open/a")
    assert (record["client_subject"], record["client_fingerprint"]) == (subject, fingerprint)


def test_clients_without_a_good_certificate_are_refused(start, new_origin, authority, api, clients):
    origin = new_origin()
    proxy = start(origin, listener=listener(api, extra=f'tls.client_ca = "{clients.path}"'))
    # With TLS 1.3 a client learns of it when it reads, and the reason is not lost on the way.
    with connect(proxy, authority.client()) as connection:
        connection.send(request("POST", "/open/a", host=HOST, body=b"b" * 100_000))
        with pytest.raises(ssl.SSLError, match="alert certificate required"):
            connection.socket.recv(1)
    for identity in (authority.issue(file="stranger", usage="client"),
                     clients.issue(file="old", usage="client", days=(-2, -1)),
                     clients.issue(HOST, file="server")):
        with pytest.raises((ssl.SSLError, ConnectionError, Closed)):
            with connect(proxy, authority.client(identity=identity)) as connection:
                connection.ask(request("GET", "/open/a", host=HOST))
    assert origin.requests == []
    wait_until(lambda: proxy.metric("portcullis_tls_handshake_failures_total") == 4, "four failures")


def test_nobody_forges_a_client_certificate_on_plain_listeners(proxy, origin):
    proxy.ask("GET", "/open/a", "X-Client-Cert-Subject: CN=forged", "X_Client-Cert_Subject: CN=forged",
              "Client-Cert: :Zm9yZ2Vk:", "Client-Cert-Chain: :Zm9yZ2Vk:")
    assert b"forged" not in origin.last().head and b"Zm9y" not in origin.last().head


# Reloads


def reload(proxy):
    """SIGHUP, and until every loop has it."""
    before = proxy.metric("portcullis_config_reloads_total")
    proxy.signal(proxies.signal.SIGHUP)
    proxy.expect_metric(before + 1, "portcullis_config_reloads_total")


def test_changed_files_are_taken_over_without_dropping_connections(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api))
    context = authority.client()
    with connect(proxy, context) as old:
        assert old.ask(request("GET", "/open/a", host=HOST)).status == 200
        renewed = authority.issue(HOST, file="api", replace=True)
        wait_until(lambda: shown(proxy, context, HOST) == renewed.serial, "the new certificate is shown")
        assert old.ask(request("GET", "/open/a", host=HOST)).status == 200
        assert int(old.socket.getpeercert()["serialNumber"], 16) == api.serial
    assert proxy.metric("portcullis_tls_certificate_reloads_total", result="success") == 1
    expiry = proxy.metric("portcullis_tls_certificate_expiry_timestamp_seconds", certificate=str(api.certificate))
    assert expiry == int(renewed.x509.not_valid_after_utc.timestamp())


def test_a_certificate_of_two_listeners_is_one_sample(start, new_origin, authority, api):
    stapled = api.toml.replace(" }", f', ocsp = "{authority.say(api, "api.ocsp")}" }}')
    assert "ocsp" in stapled
    second = f'[[listener]]\nlisten = "127.0.0.1:{proxies.free_port()}"\ntls.certificates = [{stapled}]\n'
    proxy = start(new_origin(), listener=listener(api, extra=second))
    page = proxy.admin("/metrics").body.decode()
    assert page.count("portcullis_tls_certificate_expiry_timestamp_seconds{") == 1


def test_broken_files_change_nothing_and_are_reported_once(start, new_origin, authority, api):
    proxy = start(new_origin(), listener=listener(api))
    context = authority.client()
    shutil.copy(authority.issue("other.example", file="other").key, api.key)
    record = proxy.wait_for_record(
        lambda record: record["msg"].startswith("changed certificate not loaded"), "the complaint")
    assert record["level"] == "error"
    assert f"{api.key}: does not belong to the certificate in {api.certificate}" in record["error"]
    assert shown(proxy, context, HOST) == api.serial
    reload_fails(proxy)
    assert shown(proxy, context, HOST) == api.serial
    renewed = authority.issue(HOST, file="api", replace=True)
    wait_until(lambda: shown(proxy, context, HOST) == renewed.serial, "the new certificate is shown")
    assert proxy.metric("portcullis_tls_certificate_reloads_total", result="failure") == 1


def reload_fails(proxy):
    proxy.signal(proxies.signal.SIGHUP)
    proxy.expect_metric(1, "portcullis_config_reloads_total", result="failure")


def test_sighup_changes_a_listener_over_to_tls(start, new_origin, authority, api):
    proxy = start(new_origin())
    assert proxy.ask("GET", "/open/a").status == 200
    text = proxy.config_path.read_text()
    address = f'listen = "127.0.0.1:{proxy.port}"'
    proxy.config_path.write_text(text.replace(address, f"{address}\n{listener(api)}"))
    reload(proxy)
    assert client.ask(proxy.port, "GET", "/open/a", tls=authority.client(), name=HOST, host=HOST).status == 200


# Handshakes that go wrong


@pytest.mark.parametrize("data", [
    pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", id="plain"),
    pytest.param(b"\x16\x03\x01\x00\x05hello", id="no-hello"),
    pytest.param(b"\x00" * 600, id="zeros"),
    pytest.param(b"", id="nothing"),
])
def test_what_is_no_handshake_ends_the_connection(start, new_origin, authority, api, data):
    proxy = start(new_origin(), listener=listener(api))
    with Connection(proxy.port) as connection:
        connection.send(data)
        connection.half_close()
        # An alert may come, but never HTTP.
        assert b"HTTP" not in connection.stream.take_rest()
    proxy.expect_metric(1, "portcullis_tls_handshake_failures_total")
    assert connect(proxy, authority.client()).ask(request("GET", "/open/a", host=HOST)).status == 200


def test_a_slow_handshake_has_as_long_as_a_head(start, new_origin, api):
    """_W9_: bytes that trickle in move no deadline."""
    proxy = start(new_origin(), listener=listener(api, extra='limits.header_timeout = "500ms"'))
    hello = client_hello(HOST)
    begun = time.monotonic()
    with Connection(proxy.port) as connection:
        def trickle():
            try:
                for byte in hello[:-1]:
                    connection.send(bytes([byte]))
                    time.sleep(0.05)
            except OSError:
                pass

        threading.Thread(target=trickle, daemon=True).start()
        assert connection.is_closed()
    assert 0.4 < time.monotonic() - begun < 5
    proxy.expect_metric(1, "portcullis_tls_handshake_failures_total", reason="timed_out")


def client_hello(name: str) -> bytes:
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    half = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    return outgoing.read()


def test_many_handshakes_at_once_all_come_through(start, new_origin, authority, api):
    """Each of them waits for its turn, and none is forgotten."""
    proxy = start(new_origin(), listener=listener(api), workers=1)
    hellos = [Connection(proxy.port) for _ in range(60)]
    hello = client_hello(HOST)
    for connection in hellos:
        connection.send(hello)
    with connect(proxy, authority.client()) as connection:
        assert connection.ask(request("GET", "/open/a", host=HOST)).status == 200
    for connection in hellos:
        assert connection.stream.take(1) == b"\x16"
        connection.close()


# Upstreams


UPSTREAM = 'tls = {{ ca = "{ca}", name = "{name}" }}'


@pytest.fixture
def encrypted(authority):
    """An origin behind TLS."""
    origin = Origin(authority.server(authority.issue("api.internal", file="internal")))
    yield origin
    origin.stop()


def test_upstreams_over_tls(start, authority, encrypted):
    size = 3_000_000
    encrypted.answer("/open/down", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"d" * size)
    proxy = start(encrypted, upstream=UPSTREAM.format(ca=authority.path, name="api.internal"), workers=1)
    with proxy.connect() as connection:
        for _ in range(3):
            assert connection.ask(request("GET", "/open/a")).status == 200
        answer = connection.ask(request("POST", "/open/up", body=b"u" * size))
        assert answer.status == 200 and encrypted.last().body_read.length == size
        assert connection.ask(request("GET", "/open/down")).body_read.length == size
    assert encrypted.connections == 1, "the connection is used again"
    assert encrypted.last().all("x-forwarded-proto") == ["http"]


class Sessions:
    """An origin over TLS that says of each connection whether it went on with an earlier session."""

    def __init__(self, context: ssl.SSLContext):
        self.resumed = []
        self.origin = Origin(context)
        self.origin.on("/open/a", self._answer)

    def _answer(self, exchange):
        self.resumed.append(exchange.stream.socket.session_reused)
        exchange.respond()


@pytest.fixture
def sessions(authority):
    made = []

    def make(version: ssl.TLSVersion, clients: Authority | None = None) -> Sessions:
        identity = authority.issue("api.internal", file=f"sessions-{len(made)}")
        context = authority.server(identity, clients=clients)
        context.maximum_version = version
        made.append(Sessions(context))
        return made[-1]

    yield make
    for one in made:
        one.origin.stop()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_reconnects_go_on_with_a_session(start, authority, sessions, version):
    behind = sessions(version)
    proxy = start(behind.origin, workers=1,
                  upstream=UPSTREAM.format(ca=authority.path, name="api.internal") + "\nidle_connections = 0")
    for _ in range(5):
        assert proxy.ask("GET", "/open/a").status == 200
    assert behind.origin.connections == 5
    assert behind.resumed == [False, True, True, True, True]
    proxy.expect_metric(1, "portcullis_upstream_tls_handshakes_total", upstream="api", kind="full")
    proxy.expect_metric(4, "portcullis_upstream_tls_handshakes_total", upstream="api", kind="resumed")


def test_a_server_that_forgot_its_sessions_is_met_in_full(start, authority, sessions):
    behind = sessions(ssl.TLSVersion.TLSv1_3)
    proxy = start(behind.origin, workers=1,
                  upstream=UPSTREAM.format(ca=authority.path, name="api.internal") + "\nidle_connections = 0")
    assert [proxy.ask("GET", "/open/a").status for _ in range(2)] == [200, 200]
    # Another context has other ticket keys, as after a restart.
    behind.origin.tls = authority.server(authority.issue("api.internal", file="restarted"))
    assert [proxy.ask("GET", "/open/a").status for _ in range(2)] == [200, 200]
    assert behind.resumed == [False, True, False, True]


def test_whom_the_proxy_does_not_trust_any_more_is_not_met_with_a_session(start, tmp_path, authority, sessions):
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority.path.read_bytes())
    behind = sessions(ssl.TLSVersion.TLSv1_3)
    proxy = start(behind.origin, workers=1,
                  upstream=UPSTREAM.format(ca=trusted, name="api.internal") + "\nidle_connections = 0")
    assert [proxy.ask("GET", "/open/a").status for _ in range(2)] == [200, 200]
    # Nothing changed: a reload forgets nothing.
    proxy.signal(signal.SIGHUP)
    proxy.expect_metric(1, "portcullis_config_reloads_total", result="success")
    assert proxy.ask("GET", "/open/a").status == 200
    trusted.write_bytes(Authority(tmp_path, "Somebody else").path.read_bytes())
    proxy.signal(signal.SIGHUP)
    proxy.expect_metric(2, "portcullis_config_reloads_total", result="success")
    assert proxy.ask("GET", "/open/a").code == "upstream_unreachable"
    trusted.write_bytes(authority.path.read_bytes())
    proxy.signal(signal.SIGHUP)
    proxy.expect_metric(3, "portcullis_config_reloads_total", result="success")
    assert proxy.ask("GET", "/open/a").status == 200
    assert behind.resumed == [False, True, True, False]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_with_another_certificate_of_ours_no_session_goes_on(start, tmp_path, authority, sessions, version):
    """The server would go on believing that we are who we were."""
    ours = Authority(tmp_path, "Proxies")
    identity = ours.issue(file="proxy", usage="client")
    behind = sessions(version, clients=ours)
    seen = []
    behind.origin.on("/open/who", lambda exchange: (
        seen.append((exchange.stream.socket.session_reused,
                     int(exchange.stream.socket.getpeercert()["serialNumber"], 16))), exchange.respond()))
    tls = (f'tls = {{ ca = "{authority.path}", name = "api.internal", '
           f'certificate = "{identity.certificate}", key = "{identity.key}" }}')
    proxy = start(behind.origin, workers=1, upstream=tls + "\nidle_connections = 0")
    assert [proxy.ask("GET", "/open/who").status for _ in range(2)] == [200, 200]
    renewed = ours.issue(file="proxy", usage="client", replace=True)
    proxy.signal(signal.SIGHUP)
    proxy.expect_metric(1, "portcullis_config_reloads_total", result="success")
    assert [proxy.ask("GET", "/open/who").status for _ in range(2)] == [200, 200]
    assert seen == [(False, identity.serial), (True, identity.serial),
                    (False, renewed.serial), (True, renewed.serial)]


@pytest.mark.parametrize("fault", ["authority", "name", "expired"])
def test_upstreams_that_are_not_who_they_should_be(start, tmp_path, authority, new_origin, fault):
    days = (-3, -1) if fault == "expired" else (-2, 5)
    identity = authority.issue("api.internal", file="upstream", days=days)
    origin = new_origin(tls=authority.server(identity))
    trusted = Authority(tmp_path, "Somebody else") if fault == "authority" else authority
    name = "other.internal" if fault == "name" else "api.internal"
    proxy = start(origin, upstream=UPSTREAM.format(ca=trusted.path, name=name))
    response = proxy.ask("POST", "/open/a", body=b"secret")
    assert (response.status, response.code) == (502, "upstream_unreachable")
    assert proxy.access_of("/open/a")["failure"] == "upstream_tls"
    words = {"authority": f"issuer /CN=Test authority is not in {trusted.path}",
             "name": "hostname mismatch: certificate is for api.internal",
             "expired": "certificate has expired (on "}[fault]
    record = proxy.wait_for_record(lambda record: record["msg"] == "upstream server fails", "why")
    assert words in record["error"]
    assert origin.requests == []


def test_upstreams_that_speak_no_tls(start, authority):
    plain = socket.create_server(("127.0.0.1", 0))

    def answer():
        sock, _ = plain.accept()
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        sock.recv(1 << 16)
        sock.close()

    threading.Thread(target=answer, daemon=True).start()
    try:
        proxy = start(plain.getsockname()[1], upstream=UPSTREAM.format(ca=authority.path, name="a.internal"))
        assert proxy.ask("GET", "/open/a").code == "upstream_unreachable"
        record = proxy.wait_for_record(lambda record: record["msg"] == "upstream server fails", "why")
        assert "does not speak TLS on this port" in record["error"]
    finally:
        plain.close()


def test_our_own_certificate_is_shown_to_upstreams(start, tmp_path, authority, new_origin):
    ours = Authority(tmp_path, "Proxies")
    identity = ours.issue(file="proxy", usage="client")
    server = authority.issue("api.internal", file="upstream")
    origin = new_origin(tls=authority.server(server, clients=ours))
    both = f'certificate = "{identity.certificate}", key = "{identity.key}"'
    proxy = start(origin, upstream=f'tls = {{ ca = "{authority.path}", name = "api.internal", {both} }}')
    assert proxy.ask("GET", "/open/a").status == 200


def test_h2_to_an_upstream_over_tls(start, new_origin, authority, api):
    """One proxy behind another."""
    origin = new_origin()
    inner = start(origin, listener=listener(api, extra='protocols = ["h2"]'), workers=1)
    outer = start(inner.port, upstream='protocol = "h2"\n'
                  + UPSTREAM.format(ca=authority.path, name=HOST), workers=1)
    with outer.connect() as connection:
        for size in (0, 10, 1_000_000):
            response = connection.ask(request("POST", "/open/a", host=HOST, body=b"u" * size))
            assert response.status == 200
            assert origin.last().body_read.length == size
    assert inner.access_of("/open/a")["protocol"] == "http/2"
    assert inner.metric("portcullis_tls_handshakes_total") == 1


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_scheme_of_a_request_is_that_of_the_connection(start, authority, api, is_secure):
    """Whatever the client's was (RFC 9113, section 8.3.1): Kestrel and Tomcat refuse others."""
    context = authority.server(authority.issue("api.internal", file="upstream"))
    context.set_alpn_protocols(["h2"])
    origin = http2.Origin(tls=context if is_secure else None)
    try:
        proxy = start(origin, listener=listener(api), upstream='protocol = "h2"\n' + UPSTREAM.format(
            ca=authority.path, name="api.internal") if is_secure else 'protocol = "h2c"')
        with connect(proxy, authority.client("http/1.1")) as connection:
            assert connection.ask(request("GET", "/open/a", host=HOST)).status == 200
        assert origin.last().get(":scheme") == ("https" if is_secure else "http")
        assert origin.last().get("x-forwarded-proto") == "https"
    finally:
        origin.stop()


def test_a_server_that_does_not_agree_on_h2(start, authority, encrypted):
    proxy = start(encrypted, upstream='protocol = "h2"\n'
                  + UPSTREAM.format(ca=authority.path, name="api.internal"))
    assert proxy.ask("GET", "/open/a").code == "upstream_unreachable"
    record = proxy.wait_for_record(lambda record: record["msg"] == "upstream server fails", "why")
    assert "does not speak h2" in record["error"] or "no application protocol" in record["error"]


def test_a_body_that_ends_without_close_notify_is_cut_off(start, authority, encrypted):
    gate = Gate()

    def cut(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        gate.wait()
        # Below TLS: no close_notify.
        socket.socket.shutdown(exchange.stream.socket, socket.SHUT_RDWR)

    encrypted.on("/open/cut", cut)
    proxy = start(encrypted, upstream=UPSTREAM.format(ca=authority.path, name="api.internal"))
    with proxy.connect() as connection:
        connection.send(request("GET", "/open/cut"))
        response = connection.read_head()
        gate.open()
        with pytest.raises(Closed):
            connection.read_body(response)
    assert proxy.access_of("/open/cut")["failure"] == "upstream_reset"


def test_a_slow_upstream_handshake_counts_as_connecting(start, authority):
    silent = socket.create_server(("127.0.0.1", 0))
    try:
        proxy = start(silent.getsockname()[1], upstream=UPSTREAM.format(ca=authority.path, name="a.internal")
                      + '\ntimeouts = { connect = "300ms" }')
        assert proxy.ask("GET", "/open/a").status == 504
        assert proxy.access_of("/open/a")["failure"] == "upstream_connect_timeout"
    finally:
        silent.close()


# The command line


def run(folder, text: str, *arguments: str) -> subprocess.CompletedProcess:
    path = folder / "checked.conf"
    path.write_text(text)
    return subprocess.run([proxies.BINARY, arguments[0], "-c", path, *arguments[1:]],
                          capture_output=True, text=True, timeout=20, check=False)


@pytest.fixture
def text(tmp_path, key_file):
    """A configuration with certificates."""

    def make(*identities, **parts) -> str:
        return proxies.configuration(
            port=8443, admin_port=9090, servers=[9000], state=tmp_path, jwks=str(key_file),
            listener=listener(*identities), **parts)

    return make


def test_check_lists_certificates_and_explain_picks_one(tmp_path, authority, text):
    one = authority.issue("one.example", file="one")
    two = authority.issue("*.two.example", file="two")
    routes = proxies.ROUTES + '''
[[route]]
name = "second"
path = "/second"
hosts = ["a.two.example"]
upstream = "api"
app_check = "off"
'''
    configuration = text(one, two, routes=routes)
    done = run(tmp_path, configuration, "check")
    assert done.returncode == 0, done.stderr
    day = two.x509.not_valid_after_utc.date().isoformat()
    rows = [line.split() for line in done.stdout.splitlines() if str(two.certificate) in line]
    assert rows[0][:6] == ["127.0.0.1:8443", str(two.certificate), "*.two.example", day, "EC", "256"]
    assert "second" in rows[0]
    assert "second" not in next(line for line in done.stdout.splitlines() if str(one.certificate) in line)
    done = run(tmp_path, configuration, "explain", "GET", "https://a.two.example/second")
    assert f"file        {two.certificate}" in done.stdout
    assert f"expires     {day}" in done.stdout
    done = run(tmp_path, configuration, "explain", "GET", "https://unknown.example/open/a")
    assert "it is not for this host" in done.stdout


@pytest.mark.parametrize("command", ["check", "run"])
def test_every_mistake_is_named_with_its_file(tmp_path, authority, text, command):
    old = authority.issue("old.example", file="old", days=(-3, -1))
    wrong = authority.issue("wrong.example", file="wrong")
    shutil.copy(old.key, wrong.key)
    done = run(tmp_path, text(old, wrong), command)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert f"{old.certificate}: expired on" in said
    assert f"{wrong.key}: does not belong to the certificate in {wrong.certificate}" in said


def test_check_looks_at_authorities_and_at_what_upstreams_are_shown(tmp_path, authority, api, text):
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate\n")
    old = authority.issue(file="old", days=(-3, -1), usage="client")
    both = f'certificate = "{old.certificate}", key = "{old.key}"'
    configuration = text(api, upstream=f'tls = {{ ca = "{wrong}", name = "a.internal", {both} }}')
    done = run(tmp_path, configuration.replace("tls.certificates", f'tls.client_ca = "{wrong}"\ntls.certificates'),
               "check")
    assert done.returncode == 1
    assert f"listener 127.0.0.1:8443: {wrong}: there is no certificate in PEM format in it" in done.stderr
    assert f"upstream api: {wrong}: there is no certificate in PEM format in it" in done.stderr
    assert f"upstream api: {old.certificate}: expired on" in done.stderr


def test_an_open_key_is_only_warned_of(tmp_path, authority, text):
    open_key = authority.issue("open.example", file="open")
    open_key.key.chmod(0o644)
    done = run(tmp_path, text(open_key), "check")
    assert done.returncode == 0
    assert f"{open_key.key}: the private key is open to every user" in done.stderr


@pytest.mark.parametrize("kind, words", [
    ("other", "is about another certificate"), ("stale", "is stale"), ("revoked", "was revoked")])
def test_what_the_authority_said_must_be_about_the_certificate(tmp_path, authority, api, text, kind, words):
    subject = authority.issue("other.example", file="other") if kind == "other" else api
    path = authority.say(subject, "api.ocsp", hours=-1 if kind == "stale" else 24, revoked=kind == "revoked")
    configuration = text(api).replace(f'key = "{api.key}"', f'key = "{api.key}", ocsp = "{path}"')
    done = run(tmp_path, configuration, "check")
    assert done.returncode == (0 if kind == "stale" else 1)
    assert words in done.stderr
