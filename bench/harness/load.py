"""Load over HTTP/1.1: wrk."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .processes import LOAD_CORE, PROXY_CORE, Broken

_SCRIPT = Path(__file__).parent.parent / "wrk" / "requests.lua"


@dataclass(frozen=True)
class Load:
    """What the load generator saw."""

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
    connections: int,
    *,
    tls: bool = False,
) -> Load:
    """Repeats the requests of the file (see requests.lua) for whole `seconds` over keep-alive."""
    before = children_seconds()
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
                cpu_seconds=children_seconds() - before,
            )
    raise Broken(f"wrk says nothing: {finished.stdout[-500:]}{finished.stderr[-500:]}")


def raw_verification_us(bits: int) -> float:
    """What `openssl speed` needs for one RSA verification on the proxy's core, in µs."""
    command = ["taskset", "-c", str(PROXY_CORE), "openssl", "speed", "-seconds", "2", f"rsa{bits}"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    # The last column of "rsa 2048 bits 0.000205s 0.000012s 4883.3 81524.3" has the most digits.
    return 1e6 / float(finished.stdout.split()[-1])


def children_seconds() -> float:
    """CPU seconds of all processes that this one has waited for."""
    times = os.times()
    return times.children_user + times.children_system
