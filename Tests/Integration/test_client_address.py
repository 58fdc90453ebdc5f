"""Who the client is: PROXY headers, forwarding fields, and one address for policy, log and backend (pitfalls O4, H6)."""

import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess

import httpx
import pytest

from conftest import running_proxy
from harness.certificates import Authority
from harness.client import HOST, Connection, request
from harness.http2 import Client
from harness.origin import wait_until
from harness.proxy import ROUTES, free_port, route

CLIENT, CLIENT6, STRANGER = "203.0.113.7", "2001:db8::7", "6.6.6.6"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
TRUSTING = 'trusted_proxies = ["127.0.0.0/8"]\nprotocols = ["h2", "http/1.1"]'


def text(client: str = CLIENT) -> bytes:
    family, own = ("TCP6", "2001:db8::1") if ":" in client else ("TCP4", "192.0.2.1")
    return f"PROXY {family} {client} {own} 56324 443\r\n".encode()


def binary(client: str = CLIENT, attributes: bytes = b"", *, command: int = 0x21, family: int | None = None) -> bytes:
    kind = socket.AF_INET6 if ":" in client else socket.AF_INET
    address = socket.inet_pton(kind, client)
    block = address + address + struct.pack("!HH", 56324, 443) + attributes
    family = family if family is not None else (0x21 if ":" in client else 0x11)
    return SIGNATURE + struct.pack("!BBH", command, family, len(block)) + block


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("!BH", kind, len(value)) + value


TLS_IN_FRONT = attribute(0x20, b"\x01\0\0\0\0" + attribute(0x21, b"TLSv1.3"))


@pytest.fixture(scope="module")
def module_proxy(module_origin, key_file):
    with running_proxy([module_origin], key_file, listener=TRUSTING + "\nproxy_protocol = true") as proxy:
        yield proxy


@pytest.fixture
def identity(tmp_path):
    """An authority and a certificate of the host."""
    issuer = Authority(tmp_path)
    return issuer, issuer.issue(HOST, file="host")


def ask(proxy, header: bytes, *fields: str, target: str = "/open/x"):
    with proxy.connect() as connection:
        return connection.ask(header + request("GET", target, *fields))


def served_as(origin, *, client: str, proto: str = "http"):
    sent = origin.last()
    assert sent.get("x-forwarded-for") == client
    assert sent.get("x-forwarded-proto") == proto
    assert sent.get("x-forwarded-host") == HOST


# PROXY headers

@pytest.mark.parametrize("header, client, proto", [
    (text(), CLIENT, "http"), (text(CLIENT6), CLIENT6, "http"), (binary(), CLIENT, "http"),
    (binary(CLIENT6), CLIENT6, "http"), (binary(family=0x12), CLIENT, "http"),
    (binary(attributes=attribute(0x01, b"h2") + attribute(0x02, b"evil.test") + attribute(0xEA, b"vpce-1")),
     CLIENT, "http"),
    (binary(attributes=TLS_IN_FRONT), CLIENT, "https"),
    (binary(attributes=attribute(0x04, bytes(3000))), CLIENT, "http"),
    (b"PROXY UNKNOWN\r\n", "127.0.0.1", "http"), (SIGNATURE + b"\x20\0\0\0", "127.0.0.1", "http"),
    (SIGNATURE + b"\x21\0\0\0", "127.0.0.1", "http")],
    ids=["text", "text-v6", "binary", "binary-v6", "udp", "attributes", "tls", "padding", "unknown", "local", "unspec"])
def test_O4_the_client_is_whom_the_balancer_names(proxy, origin, header, client, proto):
    seen = len(proxy.access())
    assert ask(proxy, header, f"X-Forwarded-For: {STRANGER}" if client != "127.0.0.1" else "X-A: b").status == 200
    served_as(origin, client=client, proto=proto)
    line = proxy.access_of("/open/x", seen)
    assert line["client"] == client
    assert line.get("peer") == (None if header.startswith(SIGNATURE + b"\x20") else "127.0.0.1")


@pytest.mark.parametrize("header", [text(), binary(CLIENT6, TLS_IN_FRONT)], ids=["text", "binary"])
def test_O4_a_header_arrives_in_any_pieces(proxy, origin, header):
    data = header + request("GET", "/open/x")
    for cut in range(1, len(header) + 1):
        with proxy.connect() as connection:
            connection.send(data[:cut])
            connection.send(data[cut:])
            assert connection.read_response().status == 200, cut
    with proxy.connect() as connection:
        for byte in data:
            connection.send(bytes([byte]))
        assert connection.read_response().status == 200
    assert {sent.get("x-forwarded-for") for sent in origin.requests} == {CLIENT6 if b"QUIT" in header else CLIENT}


def test_O4_every_request_of_the_connection_is_the_clients(proxy, origin):
    with proxy.connect() as connection:
        connection.send(binary() + request("GET", "/open/1") + request("GET", "/open/2"))
        assert [connection.read_response().status for _ in range(2)] == [200, 200]
        # A second header is no request.
        assert connection.ask(text(CLIENT6) + request("GET", "/open/3")).status == 400
    assert [sent.get("x-forwarded-for") for sent in origin.requests] == [CLIENT, CLIENT]


HOSTILE = {
    "request": (request("GET", "/open/smuggled"), "signature"), "tls": (b"\x16\x03\x01\x02\x00", "signature"),
    "h2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "signature"), "lower": (b"proxy UNKNOWN\r\n", "signature"),
    "octal": (b"PROXY TCP4 203.0.113.07 192.0.2.1 1 2\r\n", "address"),
    "lf": (text().replace(b"\r", b""), "address"), "udp": (text().replace(b"TCP4", b"UDP4"), "family"),
    "endless": (b"PROXY UNKNOWN " + b"x" * 200, "too_long"),
    "version": (SIGNATURE + b"\x11", "version"), "command": (binary(command=0x2F), "version"),
    "binary-family": (binary(family=0x51), "family"), "short": (SIGNATURE + b"\x21\x11\0\4abcd", "address"),
    "huge": (SIGNATURE + b"\x21\x11\xff\xff", "too_long"),
    "attribute": (binary(attributes=b"\x04\0\x09ab"), "attribute"),
    "checksum": (binary(attributes=attribute(0x03, b"abcd")), "checksum")}


@pytest.mark.parametrize("data, result", HOSTILE.values(), ids=HOSTILE)
def test_O4_what_is_no_header_closes_the_connection(proxy, origin, data, result):
    before = proxy.metric("portcullis_proxy_headers_total", result=result)
    with proxy.connect() as connection:
        connection.send(data)
        closed_without_a_word(connection)
    proxy.expect_metric(before + 1, "portcullis_proxy_headers_total", result=result)
    assert origin.requests == []


def closed_without_a_word(connection):
    try:
        assert connection.is_closed()
    except ConnectionResetError:
        pass


def test_O4_a_connection_that_ends_early_is_counted(proxy):
    for data, result in ((b"", "closed"), (b"PROXY TCP4 203.", "closed"), (binary()[:20], "closed")):
        before = proxy.metric("portcullis_proxy_headers_total", result=result)
        with proxy.connect() as connection:
            connection.send(data)
            connection.half_close()
            closed_without_a_word(connection)
        proxy.expect_metric(before + 1, "portcullis_proxy_headers_total", result=result)
    proxy.expect_metric(0, "portcullis_connections", state="idle")


def test_O4_a_header_has_the_time_of_a_head(start, origin):
    proxy = start(origin, listener=TRUSTING + '\nproxy_protocol = true\nlimits = { header_timeout = "300ms" }')
    with proxy.connect() as connection, proxy.connect() as trickling:
        trickling.socket.settimeout(5)
        connection.send(text()[:10])
        closed_without_a_word(connection)
        closed_without_a_word(trickling)
    proxy.expect_metric(2, "portcullis_proxy_headers_total", result="timed_out")


@pytest.mark.parametrize("tls", [False, True])
def test_O4_nobody_else_is_believed(start, origin, identity, tls):
    listener = 'trusted_proxies = ["192.0.2.0/24"]\nproxy_protocol = true'
    if tls:
        listener += f"\ntls.certificates = [ {identity[1].toml} ]"
    proxy = start(origin, listener=listener)
    for _ in range(10):
        with proxy.connect() as connection:
            connection.send(text("192.0.2.9") + request("GET", "/open/smuggled"))
            closed_without_a_word(connection)
    proxy.expect_metric(10, "portcullis_proxy_headers_total", result="untrusted")
    assert origin.requests == [] and proxy.access() == []
    line = proxy.wait_for_record(lambda record: record.get("result") == "untrusted", "a warning")
    assert line["level"] == "warning" and line["peer"] == "127.0.0.1" and "trusted_proxies" in line["hint"]
    # A line of each of the two loops, not one for each connection.
    assert len([record for record in proxy.records if record.get("result") == "untrusted"]) <= 2


def test_H6_fields_behind_a_header_count_only_if_it_names_a_trusted_proxy(proxy, origin):
    assert ask(proxy, text("127.0.0.9"), f"X-Forwarded-For: {CLIENT}", target="/open/cdn").status == 200
    assert origin.last().get("x-forwarded-for") == f"{CLIENT}, 127.0.0.9"
    line = proxy.access_of("/open/cdn")
    assert (line["client"], line["peer"]) == (CLIENT, "127.0.0.1")
    assert ask(proxy, b"PROXY UNKNOWN\r\n", f"X-Forwarded-For: {STRANGER}").status == 200
    assert origin.last().get("x-forwarded-for") == "127.0.0.1"


@pytest.fixture
def encrypted(start, origin, identity):
    """A listener with TLS behind PROXY headers, and what a client trusts."""
    issuer, certificate = identity
    proxy = start(origin, listener=f"{TRUSTING}\nproxy_protocol = true\ntls.certificates = [ {certificate.toml} ]")
    return proxy, issuer.client("http/1.1")


@pytest.mark.parametrize("pieces", [1, 3])
def test_O4_a_header_comes_before_TLS(encrypted, origin, pieces):
    proxy, trust = encrypted
    raw = socket.create_connection(("127.0.0.1", proxy.port), timeout=15)
    header = binary(CLIENT6, TLS_IN_FRONT)
    for start in range(0, len(header), -(-len(header) // pieces)):
        raw.sendall(header[start:start + -(-len(header) // pieces)])
    with trust.wrap_socket(raw, server_hostname=HOST) as sock:
        sock.sendall(request("GET", "/open/x", "Connection: close"))
        assert sock.recv(12) == b"HTTP/1.1 200"
    served_as(origin, client=CLIENT6, proto="https")
    line = proxy.access_of("/open/x")
    assert (line["client"], line["peer"], line["sni"]) == (CLIENT6, "127.0.0.1", HOST)


def test_O4_a_handshake_without_a_header_is_none(encrypted):
    proxy, trust = encrypted
    with pytest.raises((OSError, ssl.SSLError)):
        proxy.connect(tls=trust, name=HOST)
    proxy.expect_metric(1, "portcullis_proxy_headers_total", result="signature")


def test_O4_streams_of_HTTP2_are_the_clients(proxy, origin):
    with Client(proxy.port, header=binary()) as client:
        first = client.ask("GET", "/open/1")
        second = client.ask("GET", "/open/2")
    assert first.status == second.status == 200
    assert [sent.get("x-forwarded-for") for sent in origin.requests] == [CLIENT, CLIENT]
    assert proxy.access_of("/open/2")["client"] == CLIENT


def test_O4_a_task_that_goes_on_with_another_clients_stream_serves_that_client(start, origin, identity):
    """One task serves stream after stream, of whichever connection (decision 93): nothing stays of the one before."""
    issuer, certificate = identity
    port = free_port()
    behind_balancer = f'[[listener]]\nlisten = "127.0.0.1:{port}"\n{TRUSTING}\nproxy_protocol = true\n'
    proxy = start(origin, workers=1, listener=f"{TRUSTING}\ntls.certificates = [ {certificate.toml} ]",
                  extra=behind_balancer)
    forged = ("x-forwarded-for", STRANGER)
    with httpx.Client(http2=True, verify=issuer.client("h2"), base_url=f"https://127.0.0.1:{proxy.port}",
                      headers={"host": HOST}) as encrypted, \
            Client(port, header=binary(attributes=TLS_IN_FRONT)) as first, \
            Client(port, header=binary(CLIENT6)) as second:

        def ask_encrypted(path: str) -> int:
            fields = {"x-forwarded-for": CLIENT}
            return encrypted.get(path, headers=fields, extensions={"sni_hostname": HOST}).status_code

        asks = [(ask_encrypted, f"{CLIENT}, 127.0.0.1", "https", proxy.port, HOST),
                (lambda path: second.ask("GET", path, forged).status, CLIENT6, "http", port, None),
                (lambda path: first.ask("GET", path, forged).status, CLIENT, "https", port, None)]
        for turn in range(3):
            for number, (ask, client, proto, listener, sni) in enumerate(asks):
                path = f"/open/{number}/{turn}"
                assert ask(path) == 200
                served_as(origin, client=client, proto=proto)
                line = proxy.access_of(path)
                assert (line["client"], line["peer"]) == (client.split(",")[0], "127.0.0.1")
                assert (line["listener"], line.get("sni")) == (f"127.0.0.1:{listener}", sni)


# Programs that were not written here

@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.parametrize("options", [[], ["--http2-prior-knowledge"]], ids=["http1", "h2"])
def test_O4_curl_speaks_the_protocol(proxy, origin, options):
    url = f"http://127.0.0.1:{proxy.port}/open/x"
    done = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--haproxy-protocol", *options,
                           "-H", f"Host: {HOST}", url], capture_output=True, text=True, timeout=20)
    assert done.stdout == "200", done.stderr
    served_as(origin, client="127.0.0.1")


@pytest.fixture
def program(tmp_path):
    """Runs a program beside the test until its port accepts connections."""
    running = []

    def begin(port: int, *command: str):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        running.append(process)

        def accepts() -> bool:
            assert process.poll() is None, process.stdout.read().decode()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(accepts, f"{command[0]} listens")

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.skipif(not shutil.which("haproxy"), reason="needs HAProxy")
@pytest.mark.parametrize("sending", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c",
                                     "send-proxy-v2-ssl-cn proxy-v2-options crc32c,authority,unique-id"])
def test_O4_HAProxy_sends_the_address_of_its_client(proxy, origin, program, tmp_path, sending):
    port = free_port()
    config = tmp_path / "haproxy.cfg"
    # Its client's address is what an earlier PROXY header said, so that it differs from its own.
    config.write_text(f"""
defaults
    mode tcp
    timeout connect 5s
    timeout client 10s
    timeout server 10s
frontend edge
    bind 127.0.0.1:{port} accept-proxy
    default_backend portcullis
backend portcullis
    server one 127.0.0.1:{proxy.port} {sending} check
""")
    program(port, "haproxy", "-db", "-f", str(config))
    with Connection(port) as connection:
        assert connection.ask(text(CLIENT6) + request("GET", "/open/x", f"X-Forwarded-For: {STRANGER}")).status == 200
    served_as(origin, client=CLIENT6)
    # Its health checks are its own connections.
    if "v2" in sending:
        wait_until(lambda: proxy.metric("portcullis_proxy_headers_total", result="balancer") > 0, "a health check")


@pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx")
def test_O4_nginx_sends_the_address_of_its_client(proxy, origin, program, tmp_path):
    module = pathlib.Path("/usr/lib/nginx/modules/ngx_stream_module.so")
    version = subprocess.run(["nginx", "-V"], capture_output=True, text=True).stderr
    if "--with-stream=dynamic" in version and not module.exists() or "--with-stream" not in version:
        pytest.skip("this nginx has no stream module")
    port = free_port()
    config = tmp_path / "nginx.conf"
    load = f"load_module {module};" if module.exists() else ""
    config.write_text(f"""
{load}
daemon off; pid {tmp_path}/nginx.pid; error_log stderr;
events {{}}
stream {{ server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:{proxy.port}; proxy_protocol on; }} }}
""")
    program(port, "nginx", "-c", str(config))
    with Connection(port) as connection:
        assert connection.ask(request("GET", "/open/x")).status == 200
    served_as(origin, client="127.0.0.1")


# Forwarding fields

ROUTE = route("open", app_check="off")


def test_H6_Forwarded_of_a_stranger_reaches_nobody(start, origin):
    proxy = start(origin, routes=ROUTE, upstream="forwarded = true", listener='forwarding_fields = "forwarded"\n'
                  'trusted_proxies = ["192.0.2.0/24"]')
    proxy.ask("GET", "/open/x", f"Forwarded: for={STRANGER};proto=gopher", f"X-Forwarded-For: {STRANGER}")
    served_as(origin, client="127.0.0.1")
    assert origin.last().all("forwarded") == [f'for=127.0.0.1;host="{HOST}";proto=http']


def test_H6_Forwarded_of_a_trusted_proxy_is_read_where_the_listener_says_so(start, origin):
    listener = TRUSTING + '\nforwarding_fields = "forwarded"'
    proxy = start(origin, routes=ROUTE, upstream="forwarded = true", listener=listener)
    value = f'for={STRANGER}, for="[{CLIENT6}]:4711";proto=https;host=public.example'
    proxy.ask("GET", "/open/x", f"Forwarded: {value}", f"X-Forwarded-For: {CLIENT}")
    sent = origin.last()
    assert sent.get("x-forwarded-for") == f"{STRANGER}, {CLIENT6}, 127.0.0.1"
    assert sent.get("x-forwarded-proto") == "https" and sent.get("x-forwarded-host") == "public.example"
    assert sent.all("forwarded") == [f'{value}, for=127.0.0.1;host="{HOST}";proto=http']
    line = proxy.access_of("/open/x")
    assert (line["client"], line["peer"]) == (CLIENT6, "127.0.0.1")
    proxy.ask("GET", "/open/y", f'Forwarded: for="{CLIENT}')
    assert origin.last().get("x-forwarded-for") == "127.0.0.1"
    assert proxy.access_of("/open/y")["forwarded_malformed"] is True
    proxy.expect_metric(1, "portcullis_forwarded_malformed_total")


def test_H6_over_HTTP2_the_same_fields_count(start, origin):
    proxy = start(origin, routes=ROUTE, listener=TRUSTING)
    with Client(proxy.port) as client:
        assert client.ask("GET", "/open/x", ("x-forwarded-for", CLIENT), ("forwarded", f"for={STRANGER}")).status == 200
    sent = origin.last()
    assert sent.get("x-forwarded-for") == f"{CLIENT}, 127.0.0.1" and sent.get("forwarded") is None
    assert proxy.access_of("/open/x")["client"] == CLIENT


def test_H6_whoever_opens_a_trusted_local_socket_is_believed(start, origin, tmp_path):
    path = tmp_path / "edge.sock"
    proxy = start(origin, routes=ROUTE, extra=f'''
[[listener]]
listen = "unix:{path}"
trusted_proxies = ["unix:"]

[[listener]]
listen = "unix:{path}.proxy"
trusted_proxies = ["unix:"]
proxy_protocol = true
''')
    with Connection(str(path)) as connection:
        assert connection.ask(request("GET", "/open/x", f"X-Forwarded-For: {CLIENT}")).status == 200
    assert origin.last().get("x-forwarded-for") == CLIENT
    line = proxy.access_of("/open/x")
    assert (line["client"], line["peer"]) == (CLIENT, "unix")
    with Connection(f"{path}.proxy") as connection:
        header = text(CLIENT6)
        for cut in header[:20], header[20:]:
            connection.send(cut)
        assert connection.ask(request("GET", "/open/y", f"X-Forwarded-For: {STRANGER}")).status == 200
    assert origin.last().get("x-forwarded-for") == CLIENT6
    assert proxy.access_of("/open/y")["client"] == CLIENT6


def test_M2_the_share_goes_by_the_address_of_the_header(start, origin):
    routes = route("half", app_check="enforce", enforce_percent=50)
    proxy = start(origin, routes=routes, listener=TRUSTING + "\nproxy_protocol = true")
    answers = {address: {ask(proxy, binary(address), target="/half/x").status for _ in range(3)}
               for address in (f"203.0.113.{number}" for number in range(40))}
    assert all(len(statuses) == 1 for statuses in answers.values()), "the share is not sticky"
    assert {200, 401} == set().union(*answers.values())


def test_connections_are_counted_for_the_network_of_the_client_that_is_named(start, origin):
    proxy = start(origin, routes=ROUTE,
                  listener=TRUSTING + "\nproxy_protocol = true\nlimits = { connections_per_network = 2 }")
    held = [proxy.connect() for _ in range(2)]
    for connection in held:
        assert connection.ask(text() + request("GET", "/open/x")).status == 200
    with proxy.connect() as third:
        third.send(text() + request("GET", "/open/smuggled"))
        closed_without_a_word(third)
    proxy.expect_metric(1, "portcullis_limit_hits_total", limit="connections_per_network")
    # Others, and the balancer itself, are not concerned.
    assert ask(proxy, text(CLIENT6)).status == ask(proxy, b"PROXY UNKNOWN\r\n").status == 200
    held.pop().close()
    proxy.expect_metric(1, "portcullis_connections")
    assert ask(proxy, text()).status == 200
    held.pop().close()


def test_O2_a_reload_turns_the_protocol_on_and_off(start, origin):
    proxy = start(origin, routes=ROUTE, listener=TRUSTING)
    old = proxy.connect()
    assert old.ask(request("GET", "/open/1")).status == 200
    config = proxy.config_path.read_text()
    proxy.config_path.write_text(config.replace(TRUSTING, TRUSTING + "\nproxy_protocol = true"))
    proxy.signal(signal.SIGHUP)
    proxy.wait_for_record(lambda record: record.get("msg") == "configuration reloaded", "a reload")
    assert ask(proxy, text()).status == 200
    served_as(origin, client=CLIENT)
    # A connection that is there keeps what it was accepted under.
    assert old.ask(request("GET", "/open/2")).status == 200
    served_as(origin, client="127.0.0.1")
    old.close()


def test_O1_trust_is_needed_for_the_protocol(start, origin):
    proxy = start(origin, ready=None, routes=ROUTE, listener="proxy_protocol = true")
    proxy.expect_failure('"proxy_protocol" in [[listener]] needs "trusted_proxies"')
