"""Requests: single probes that check the work, and wrk that repeats it."""

import http.client
import json
import os
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .processes import LOAD_CORE, PROXY_CORE, Broken

CONNECTIONS = 64
_SCRIPT = Path(__file__).parent.parent / "wrk" / "requests.lua"


@dataclass(frozen=True)
class Load:
    """What wrk saw."""

    requests: int
    seconds: float
    bytes: int
    error_statuses: int
    socket_errors: int
    p50_ms: float
    p99_ms: float
    cpu_seconds: float


def wrk(
    port: int,
    requests: Path,
    seconds: float,
    connections: int = CONNECTIONS,
    *,
    tls: bool = False,
) -> Load:
    """Repeats the requests of the file (see requests.lua) for whole `seconds` over keep-alive."""
    before = _children_seconds()
    command = ["taskset", "-c", str(LOAD_CORE), "wrk", "-t1", f"-c{connections}"]
    command += [f"-d{round(seconds)}s", "--timeout", "10s", "-s", str(_SCRIPT)]
    command += [f"http{'s' if tls else ''}://127.0.0.1:{port}", "--", str(requests)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    for line in finished.stdout.splitlines():
        if line.startswith("RESULT "):
            told = json.loads(line.removeprefix("RESULT "))
            return Load(
                requests=told["requests"],
                seconds=told["microseconds"] / 1e6,
                bytes=told["bytes"],
                error_statuses=told["error_statuses"],
                socket_errors=told["socket_errors"],
                p50_ms=told["p50_us"] / 1000,
                p99_ms=told["p99_us"] / 1000,
                cpu_seconds=_children_seconds() - before,
            )
    raise Broken(f"wrk says nothing: {finished.stdout[-500:]}{finished.stderr[-500:]}")


def probe(port: int, path: str, token: str = "", *, tls: bool = False) -> tuple[int, bytes]:
    """Status and body of one request on a connection of its own."""
    connection: http.client.HTTPConnection
    if tls:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=10, context=any_certificate()
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"X-Firebase-AppCheck": token} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def any_certificate() -> ssl.SSLContext:
    """A client that believes everybody: what is measured is the other side."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def await_answer(
    port: int, path: str, token: str, status: int, *, tls: bool = False
) -> bytes:
    """The body of the first answer with `status`: a proxy may need a moment to read its key set."""
    deadline = time.monotonic() + 10
    while True:
        seen, body = probe(port, path, token, tls=tls)
        if seen == status:
            return body
        if time.monotonic() > deadline:
            raise Broken(f"{path} answered {seen} instead of {status}: {body[:200]!r}")
        time.sleep(0.1)


def raw_verification_us(bits: int) -> float:
    """What `openssl speed` needs for one RSA verification on the proxy's core, in µs."""
    command = ["taskset", "-c", str(PROXY_CORE), "openssl", "speed", "-seconds", "2", f"rsa{bits}"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    # The last column of "rsa 2048 bits 0.000205s 0.000012s 4883.3 81524.3" has the most digits.
    return 1e6 / float(finished.stdout.split()[-1])


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system
