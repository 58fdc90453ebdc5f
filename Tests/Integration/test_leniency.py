"""Malformed requests, seeded, through the proxy, nginx and HAProxy: what one of those refuses is refused here, too.

`LENIENCY_CASES` is how many (100,000 for the long run: `make leniency`), `LENIENCY_SEED` where they begin; `-s` lists the
differences.
"""

import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import hpack
import pytest

from conftest import start_proxy
from harness.floods import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame
from harness.listening import Server
from harness.origin import wait_until
from harness.proxy import ROUTES, free_port
from translation import LISTENER

CASES = int(os.environ.get("LENIENCY_CASES", "600"))
SEED = int(os.environ.get("LENIENCY_SEED", "1"))
PATIENCE = 1.0
MARK = b"from the origin"
ODD = [bytes([byte]) for byte in b"\0\x01\x08\t\n\x0b\x0c\r \"#%()+,-./:;<=>?@[\\]^_`{|}~\x7f\x80\xa0\xc3\xff"]
LENGTHS = [b"+5", b"-5", b"0x5", b"5,5", b"5, 5", b"05", b"5 5", b"5\x0b", b"", b"5.0", b"99999999999999999999", b"4", b"6"]
ENCODINGS = [b"chunked, identity", b"identity", b"xchunked", b"chunked\x0b", b"\x0bchunked", b"chunked;q=1", b"Chunked",
             b"gzip", b"gzip, chunked", b"chunked, chunked", b"chunked,", b"", b"\"chunked\""]
SIZES = [b"+5", b"-5", b"0x5", b"5 ", b" 5", b"5;a", b"5;a=\"b", b"5;\n", b"5\t", b"05", b"G", b"", b"FFFFFFFFFFFFFFFFFF", b"5\x0b"]
HOSTS = [b"", b"a b", b"a@b", b"a/b", b"a,b", b"a:b", b"a:80", b"a.", b"[::1]", b"[::1", b"a:99999", b"a\x80", b"a#b", b"a?b", b"%61"]
METHODS = [b"G ET", b"get", b"GET\t", b"G(T", b"", b"GET\0", b"\x80ET", b"CONNECT", b"TRACE", b"PROPFIND", b"M-SEARCH", b"PRI"]
PATHS = [b"open/x", b"/open/x#a", b"/open/x y", b"/open/\x00", b"/open/\x80", b"*", b"", b"http://a.test/open/x",
         b"http://b.test/open/x", b"/open/%", b"/open/%00", b"/open/%2e%2e/x", b"/open/../x", b"/open/\\x", b"//open/x",
         b"/open/x?a\"b", b"/open/<x>", b"/open/{x}", b"/open/x?#"]
NAMES = [b"", b"a b", b"a(b", b"a\0", b"a\x80", b"A", b":a", b"a:", b"connection", b"keep-alive", b"upgrade", b"te",
         b"transfer-encoding", b"proxy-connection", b"content-length", b"host"]
VALUES = [b"a\0b", b"a\nb", b"a\rb", b"a\r\nb: c", b" a", b"a ", b"\x7f", b"\x80", b"a\tb", b"close", b"chunked", b"trailers", b"gzip", b"5"]

NGINX = '''
worker_processes 1; daemon off; master_process off; pid {folder}/pid; error_log /dev/null;
events {{ worker_connections 1024; }}
http {{
    access_log off; client_header_timeout 1s; client_body_timeout 1s; large_client_header_buffers 4 32k;
    {paths}
    server {{ listen 127.0.0.1:{http1}; location / {{ proxy_pass http://127.0.0.1:{origin}; }} }}
    server {{ listen 127.0.0.1:{http2} http2; location / {{ proxy_pass http://127.0.0.1:{origin}; }} }}
}}
'''
HAPROXY = '''
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
    timeout http-request 1s
frontend one
    bind 127.0.0.1:{http1}
    default_backend origin
frontend two
    bind 127.0.0.1:{http2} proto h2
    default_backend origin
backend origin
    server origin 127.0.0.1:{origin}
'''


# What is sent


def http1(generator: random.Random) -> bytes:
    """A request that something is wrong with, or nearly."""
    method, path, version, host = b"GET", b"/open/x", b"HTTP/1.1", b"a.test"
    fields, body = [b"X-A: b"], b""
    kind = generator.randrange(3)
    if kind == 1:
        method, body = b"POST", b"hello"
        fields.append(b"Content-Length: " + (generator.choice(LENGTHS) if generator.random() < 0.3 else b"5"))
    elif kind == 2:
        method = b"POST"
        fields.append(b"Transfer-Encoding: " + (generator.choice(ENCODINGS) if generator.random() < 0.3 else b"chunked"))
        size = generator.choice(SIZES) if generator.random() < 0.3 else b"5"
        body = size + b"\r\nhello\r\n0\r\n\r\n"
    match generator.randrange(12):
        case 0: method = generator.choice(METHODS)
        case 1: path = generator.choice(PATHS)
        case 2: host = generator.choice(HOSTS)
        case 3: version = generator.choice([b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 ", b"HTTP/11", b"", b"HTTP/01.1"])
        case 4: fields.append(generator.choice(NAMES) + b": " + generator.choice(VALUES))
        case 5: fields.append(b"X-B: " + generator.choice(VALUES))
        case 6: fields.append(generator.choice([b" folded", b"\tfolded", b"X-B : c", b"X-B", b": c", b"X-B\t: c"]))
        case 7: fields.append(generator.choice(fields))
        case 8: fields.append(generator.choice([b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Host: b.test", b"Host: a.test"]))
        case _: pass
    lines = [method + b" " + path + b" " + version, b"Host: " + host, *fields, b"", b""]
    data = b"\r\n".join(lines) + body
    for _ in range(generator.choice([0, 0, 1, 1, 2])):
        at = generator.randrange(len(data))
        match generator.randrange(5):
            case 0: data = data[:at] + data[at + 1:]
            case 1: data = data[:at] + generator.choice(ODD) + data[at:]
            case 2: data = data[:at] + generator.choice(ODD) + data[at + 1:]
            case 3: data = data.replace(b"\r\n", b"\n", 1)
            case 4: data = data.replace(b"\r\n", generator.choice([b"\r", b"\n\r", b"\r\r\n", b" \r\n"]), 1)
    return data


def http2(generator: random.Random) -> list[tuple[bytes, bytes]]:
    """The same over HTTP/2: the fields of one request; content follows that of a POST."""
    has_body = generator.random() < 0.4
    fields = [(b":method", b"POST" if has_body else b"GET"), (b":scheme", b"http"), (b":path", b"/open/x"),
              (b":authority", b"a.test"), (b"x-a", b"b")]
    if has_body and generator.random() < 0.6:
        fields.append((b"content-length", generator.choice(LENGTHS) if generator.random() < 0.5 else b"5"))
    for _ in range(generator.choice([1, 1, 2])):
        at = generator.randrange(len(fields))
        name, value = fields[at]
        match generator.randrange(10):
            case 0: fields[0] = (b":method", generator.choice(METHODS))
            case 1: fields[2] = (b":path", generator.choice(PATHS))
            case 2: fields[3] = (b":authority", generator.choice(HOSTS))
            case 3: fields.append((generator.choice(NAMES), generator.choice(VALUES)))
            case 4: fields.append((b"x-b", generator.choice(VALUES)))
            case 5: fields.append(fields[at])
            case 6: fields.insert(generator.randrange(len(fields)), fields.pop(at)); fields.append((b":scheme", b"http"))
            case 7: fields.append((b"host", generator.choice([b"a.test", b"b.test", b"A.TEST", b""])))
            case 8:
                where = generator.randrange(len(value) + 1)
                fields[at] = (name, value[:where] + generator.choice(ODD) + value[where:])
            case 9:
                where = generator.randrange(len(name) + 1)
                fields[at] = (name[:where] + generator.choice(ODD) + name[where:], value)
        while len(fields) < 5:
            fields.append((b"x-c", b"d"))
    return fields


def frames(fields: list[tuple[bytes, bytes]]) -> bytes:
    block = hpack.Encoder().encode(fields)
    has_body = any(value == b"POST" for _, value in fields)
    data = PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS | (0 if has_body else END_STREAM), 1, block)
    return data + (frame(DATA, END_STREAM, 1, b"hello") if has_body else b"")


# What becomes of it


def passes_http1(port: int, data: bytes) -> bool:
    """Whether the origin's answer comes back as the answer to the first request."""
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
            sock.sendall(data)
            answer = b""
            while piece := sock.recv(1 << 16):
                answer += piece
                if MARK in answer or b"\r\n\r\n" in answer and not answer.startswith(b"HTTP/1.1 2"):
                    break
            return answer.startswith(b"HTTP/1.1 200") and MARK in answer
    except OSError:
        return False


def passes_http2(port: int, fields) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
            sock.sendall(frames(fields))
            answer = b""
            while piece := sock.recv(1 << 16):
                answer += piece
                if MARK in answer or is_over(answer):
                    break
            return MARK in answer
    except OSError:
        return False


def is_over(answer: bytes) -> bool:
    """Whether stream 1 has ended, or the connection."""
    at = 0
    while at + 9 <= len(answer):
        length, kind, flags = int.from_bytes(answer[at:at + 3]), answer[at + 3], answer[at + 4]
        if at + 9 + length > len(answer):
            return False
        if kind in (3, 7) or kind in (0, 1) and flags & 1:
            return True
        at += 9 + length
    return False


class Origin(Server):
    """Answers whatever comes with its mark, and closes."""

    def _serve(self, sock):
        try:
            with sock:
                sock.settimeout(2)
                data = b""
                while b"\r\n\r\n" not in data:
                    data += sock.recv(1 << 16) or b"\r\n\r\n"
                head, _, body = data.partition(b"\r\n\r\n")
                length = re.search(rb"(?im)^content-length: *([0-9]+)\r?$", head)
                is_chunked = re.search(rb"(?im)^transfer-encoding: *chunked\r?$", head)
                while is_chunked and not body.endswith(b"0\r\n\r\n") or length and len(body) < int(length[1]):
                    piece = sock.recv(1 << 16)
                    if not piece:
                        return
                    body += piece
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(MARK), MARK))
        except OSError:
            pass


@pytest.fixture(scope="module")
def three(key_file):
    """The ports of the three by name and version."""
    if not (shutil.which("nginx") and shutil.which("haproxy")):
        pytest.skip("nginx and haproxy are not installed")
    origin = Origin()
    started = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ports = {peer: {"http1": free_port(), "http2": free_port()} for peer in ("nginx", "haproxy")}
        paths = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            NGINX.format(folder=folder, paths=paths, origin=origin.port, **ports["nginx"]))
        (folder / "haproxy.cfg").write_text(HAPROXY.format(origin=origin.port, **ports["haproxy"]))
        started.append(subprocess.Popen(["nginx", "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL))
        started.append(subprocess.Popen(["haproxy", "-f", folder / "haproxy.cfg"], stderr=subprocess.DEVNULL))
        proxy = start_proxy(folder, [origin], key_file, routes=ROUTES,
                            listener=f'{LISTENER}\nlimits = {{ header_timeout = "1s", idle_timeout = "1s" }}')
        ports["portcullis"] = {"http1": proxy.port, "http2": proxy.port}
        try:
            proxy.wait_until_ready()
            good = b"GET /open/x HTTP/1.1\r\nHost: a.test\r\n\r\n"
            for peer in ports.values():
                wait_until(lambda: passes_http1(peer["http1"], good), "a good request passes")
            yield ports
            proxy.stop()
        finally:
            proxy.kill()
            for process in started:
                process.terminate()
                process.wait()
            origin.stop()


def method_of(message) -> bytes:
    return message.split(b" ")[0] if isinstance(message, bytes) else dict(message)[b":method"]


def has_both_hosts(message) -> bool:
    return not isinstance(message, bytes) and b"host" in dict(message)


# Where we take what one of the two refuses, and why that is right.
EXPLAINED = [
    ("nginx knows methods of capital letters only; RFC 9110, section 9.1, has any token, routes compare them whole, and an "
     "unknown one follows the strictest route", lambda message: re.search(rb"[^A-Z_-]", method_of(message))),
    ("nginx takes a tab before a value for a part of it (RFC 9110, section 5.5)",
     lambda message: isinstance(message, bytes) and re.search(rb"\n[^\r\n:]+: *\t", message)),
    ("HAProxy knows PRI from the preface alone", lambda message: method_of(message) == b"PRI"),
    ("nginx 1.22 takes :authority and Host for two hosts even where they agree (RFC 9113, section 8.3.1)", has_both_hosts),
    ("Upgrade goes no further than the proxy (W7), so it does no harm", lambda message: isinstance(message, bytes)
     and re.search(rb"(?i)\nupgrade:", message)),
]


@pytest.mark.timeout(60 + CASES)
@pytest.mark.parametrize("version", ["http1", "http2"])
def test_W1_W2_W3_nothing_passes_that_nginx_or_haproxy_refuses(three, version):
    make, passes = {"http1": (http1, passes_http1), "http2": (http2, passes_http2)}[version]

    def judge(number: int):
        data = make(random.Random(f"{SEED}-{version}-{number}"))
        # Only what passes here has to be asked about elsewhere.
        if not passes(three["portcullis"][version], data):
            return number, data, None
        # Twice, as either may be slow once.
        return number, data, [peer for peer in ("nginx", "haproxy") if not passes(three[peer][version], data)
                              and not passes(three[peer][version], data)]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(judge, range(CASES // 2)))
    passed = [result for result in results if result[2] is not None]
    lenient = [result for result in passed if result[2]]
    reasons = Counter()
    open_cases = []
    for result in lenient:
        why = next((why for why, holds in EXPLAINED if holds(result[1])), None)
        reasons[why] += 1
        if why is None:
            open_cases.append(result)
    print(f"{version}: {len(results)} requests, {len(passed)} pass, of which "
          f"{Counter(peer for _, _, peers in lenient for peer in peers) or 'none'} refused elsewhere")
    for why, count in reasons.items():
        print(f"  {count}: {why}")
    for number, data, peers in open_cases:
        print(f"  {number} refused by {' and '.join(peers)}: {data!r}")
    assert open_cases == []
