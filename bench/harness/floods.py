"""Thousands of clients that keep connections busy with next to nothing, beside one that behaves."""

import json
import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import probes
from .contestants import PORT, Contestant, Setting, nginx, portcullis
from .processes import LOAD_CORE, Broken, cpu_time, resident_bytes
from .stage import folder_in_memory, running_backend, running_proxy

# The clients are those of the integration tests.
_SLOW = Path(__file__).resolve().parents[2] / "Tests" / "Integration" / "harness" / "slow.py"
_PROCESSES = 4
# Each connection does its little something so often; with 20,000 of them more often is a load, and no slow client.
_BEAT_SECONDS = 4
# Descriptors that a process needs besides the connections.
_SPARE = 600
# From one request of the client that behaves to the next.
_PAUSE = 0.002


@dataclass(frozen=True)
class Kind:
    """One way to be slow."""

    path: str
    is_alone: bool
    """Nothing of it reaches the backend."""


KINDS = {
    "silent": Kind("/", True),
    "slow_headers": Kind("/", True),
    "slow_bodies": Kind("/upload", False),
    "slow_readers": Kind("/10mib", False),
}


@dataclass(frozen=True)
class Latencies:
    """Of one client's requests, milliseconds."""

    p50: float
    p99: float
    requests: int
    failed: int


@dataclass(frozen=True)
class Flood:
    """One flood of one contestant."""

    kind: str
    label: str
    connections: int
    calm: Latencies
    busy: Latencies
    cpu_share: float
    """Of the proxy's core, while the flood was on."""
    before_mib: float
    most_mib: float
    ended: int
    """Connections that the server ended, some of them many times."""

    def __str__(self) -> str:
        return (
            f"{self.connections:,} connections, p50 {self.calm.p50:.2f} → {self.busy.p50:.2f} ms, "
            f"p99 {self.calm.p99:.2f} → {self.busy.p99:.2f} ms, {self.busy.failed} of "
            f"{self.busy.requests} failed, core {self.cpu_share:.0%}, memory {self.before_mib:.1f} → "
            f"{self.most_mib:.1f} MiB, {self.ended:,} ended"
        )


def possible(wanted: int, kind: Kind) -> int:
    """How many connections the limit of open files allows the proxy; raises it where that may be done."""
    needed = (wanted if kind.is_alone else 2 * wanted) * 4 // 3 + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, needed), max(hard, needed)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE
    return min(wanted, limit * 3 // 4 if kind.is_alone else limit // 2)


def contestants(count: int) -> list[Contestant]:
    """Both with their own time-outs and limits, and with room for all connections."""
    room = 2 * count + _SPARE
    return [
        portcullis("Portcullis", app_check="off", limits=f"connections = {room}"),
        nginx("nginx", connections=room),
    ]


def flood(kind: str, contestant: Contestant, count: int, seconds: float, setting: Setting) -> Flood:
    """Starts everything afresh, measures without the flood, and then with it."""
    with (
        folder_in_memory() as folder,
        running_backend(folder, 2 * count + _SPARE),
        running_proxy(folder, contestant, setting) as proxy,
    ):
        probes.await_answer(PORT, "/", "", 200)
        _behave(1)
        calm = _behave(min(seconds, 5))
        before = most = resident_bytes(proxy)
        with _attackers(kind, count, seconds) as finish:
            cpu, begun = cpu_time(proxy), time.monotonic()
            parts = []
            while time.monotonic() < begun + seconds:
                parts.append(_sample(min(1, seconds)))
                most = max(most, resident_bytes(proxy))
            share = (cpu_time(proxy) - cpu).total / (time.monotonic() - begun)
            told = finish()
    return Flood(
        kind,
        contestant.label,
        count,
        calm,
        _summed(parts),
        share,
        before / 2**20,
        most / 2**20,
        sum(one["ended"] for one in told),
    )


@contextmanager
def _attackers(kind: str, count: int, seconds: float):
    """Processes of slow clients, once all have connected; yields what ends them and says what they did."""
    share = -(-count // _PROCESSES)
    command = ["taskset", "-c", str(LOAD_CORE), "nice", "-n", "10", sys.executable, str(_SLOW)]
    # They begin one after the other, and all must outlast the measurement.
    command += [kind, str(PORT), str(share), str(seconds + 60), KINDS[kind].path]
    environment = os.environ | {"SLOW_BEAT": str(_BEAT_SECONDS)}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(_PROCESSES)
    ]
    try:
        for process in processes:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise Broken("the attackers did not start")

        def finish() -> list[dict]:
            for process in processes:
                process.terminate()
            return [json.loads(process.communicate(timeout=60)[0]) for process in processes]

        yield finish
    finally:
        for process in processes:
            process.kill()
            process.wait()


class _Client:
    """Sends one request after the other, every second one on a new connection."""

    def __init__(self):
        self.kept: socket.socket | None = None
        self.times: list[float] = []
        self.failed = 0

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            begun = time.perf_counter()
            try:
                self._ask(is_new=number % 2 == 0)
            except OSError:
                self.failed += 1
                self._drop()
            self.times.append((time.perf_counter() - begun) * 1000)
            time.sleep(_PAUSE)
        self._drop()

    def _drop(self) -> None:
        if self.kept:
            self.kept.close()
        self.kept = None

    def _ask(self, is_new: bool) -> None:
        if is_new:
            with socket.create_connection(("127.0.0.1", PORT), 10) as connection:
                _exchange(connection, b"Connection: close\r\n")
            return
        if self.kept is None:
            self.kept = socket.create_connection(("127.0.0.1", PORT), 10)
            self.kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _exchange(self.kept, b"")


def _exchange(connection: socket.socket, field: bytes) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + field + b"\r\n")
    answer = b""
    # 200 bytes of x behind the head.
    while not answer.endswith(b"x" * 200):
        data = connection.recv(65536)
        if not data:
            raise ConnectionError("no answer")
        answer += data
    if not answer.startswith(b"HTTP/1.1 200"):
        raise ConnectionError("refused")


def _sample(seconds: float) -> _Client:
    client = _Client()
    client.run(seconds)
    return client


def _behave(seconds: float) -> Latencies:
    return _summed([_sample(seconds)])


def _summed(clients: list[_Client]) -> Latencies:
    times = sorted(time for client in clients for time in client.times)
    return Latencies(
        times[len(times) // 2],
        times[len(times) * 99 // 100],
        len(times),
        sum(client.failed for client in clients),
    )


def table(floods: list[Flood]) -> str:
    """The results as Markdown."""
    lines = [
        "| flood | proxy | connections | p50 ms | p99 ms | with it: p50 | p99 | failed | core | memory MiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in floods:
        lines.append(
            f"| {one.kind} | {one.label} | {one.connections:,} | {one.calm.p50:.2f} | {one.calm.p99:.2f} "
            f"| {one.busy.p50:.2f} | {one.busy.p99:.2f} | {one.busy.failed} of {one.busy.requests:,} "
            f"| {one.cpu_share:.0%} | {one.before_mib:.1f} → {one.most_mib:.1f} |"
        )
    return "\n".join(lines) + "\n"
