"""Load by h2load, whose log has the time of every request: HTTP/2, and HTTP/1.1 at a steady rate."""

import re
import subprocess
from pathlib import Path

from .load import Load, children_seconds
from .processes import LOAD_CORE, Broken

CONNECTIONS = 16
STREAMS = 10
# HTTP/1.1: as many connections as wrk has, one request at a time on each.
HTTP1_CONNECTIONS = 64


def h2load(
    port: int,
    path: str,
    token: str,
    seconds: float,
    folder: Path,
    *,
    call: Path | None = None,
    http1: bool = False,
    tls: bool = True,
    rate: int | None = None,
) -> Load:
    """
    Repeats one request for whole `seconds`; with `call`, a gRPC call with that file as its body; with a
    `rate`, so many of them a second.
    """
    log = folder / "h2load.txt"
    log.unlink(missing_ok=True)
    before = children_seconds()
    connections, streams = (HTTP1_CONNECTIONS, 1) if http1 else (CONNECTIONS, STREAMS)
    command = ["taskset", "-c", str(LOAD_CORE), "h2load", "-t1", f"-c{connections}", f"-m{streams}"]
    command += [f"-D{round(seconds)}s", f"--log-file={log}"]
    if http1:
        command.append("--h1")
    if rate:
        command.append(f"--rps={rate / connections}")
    if token:
        command += ["-H", f"x-firebase-appcheck: {token}"]
    if call:
        command += ["-d", str(call), "-H", "content-type: application/grpc", "-H", "te: trailers"]
    command.append(f"http{'s' if tls else ''}://127.0.0.1:{port}{path}")
    finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    cpu_seconds = children_seconds() - before
    told = finished.stdout
    if f"Application protocol: {'http/1.1' if http1 else 'h2'}\n" not in told:
        raise Broken(f"h2load spoke another protocol: {told[-500:]}{finished.stderr[-500:]}")
    requests = _number(r"requests: \d+ total, \d+ started, (\d+) done", told)
    statuses = [_number(rf"(\d+) {digit}xx", told) for digit in (2, 3, 4, 5)]
    times = sorted(int(line.rsplit("\t", 1)[1]) for line in log.read_text().splitlines())
    if not times:
        raise Broken(f"h2load has no answer: {told[-500:]}")
    return Load(
        requests=requests,
        seconds=seconds,
        bytes=_number(r"traffic: .*?\((\d+)\) total", told),
        error_statuses=statuses[2] + statuses[3],
        socket_errors=requests - sum(statuses),
        p50_ms=times[len(times) // 2] / 1000,
        p99_ms=times[len(times) * 99 // 100] / 1000,
        cpu_seconds=cpu_seconds,
    )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if not found:
        raise Broken(f"h2load says no {pattern!r}: {text[-500:]}")
    return int(found[1])
