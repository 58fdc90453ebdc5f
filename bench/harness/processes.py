"""Processes pinned to a core, and what the kernel says that they cost."""

import hashlib
import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROXY_CORE = 0
LOAD_CORE = 1
_TICKS = os.sysconf("SC_CLK_TCK")


class Broken(Exception):
    """A contestant did not start, or did not do the work that its row claims."""


@contextmanager
def running(
    command: list[str],
    core: int,
    port: int,
    run: Path,
    output: Path | None = None,
    environment: dict[str, str] | None = None,
):
    """The process id of `command`, pinned to `core`, from when it accepts on `port` until the end.

    Standard output goes to `output`, else to the log in the folder `run`; `environment` is added to ours.
    """
    if _accepts(port):
        raise Broken(f"something else listens on port {port}")
    log = run / "output.txt"
    with open(output or log, "ab") as sink, open(log, "ab") as errors:
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=errors,
            cwd=run,
            env=os.environ | (environment or {}),
        )
    try:
        _await_port(process, port, log)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_port(process: subprocess.Popen, port: int, log: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Broken(f"exited with {process.returncode}: {log.read_text()[-2000:]}")
        if _accepts(port):
            return
        time.sleep(0.02)
    raise Broken(f"nothing listens on port {port}: {log.read_text()[-2000:]}")


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


@dataclass(frozen=True)
class CPUTime:
    """Seconds that a process's threads have run."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system

    def __sub__(self, earlier: "CPUTime") -> "CPUTime":
        return CPUTime(self.user - earlier.user, self.system - earlier.system)


def cpu_time(pid: int) -> CPUTime:
    """What all threads of the process have used since it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return CPUTime(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS)


def resident_bytes(pid: int) -> int:
    """`VmRSS` of the process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise Broken(f"process {pid} has no memory")


@dataclass(frozen=True)
class CoreTimes:
    """Seconds that each of the two cores was busy since the machine started."""

    at: float
    busy: dict[int, float]

    @staticmethod
    def now() -> "CoreTimes":
        busy = {}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name in (f"cpu{PROXY_CORE}", f"cpu{LOAD_CORE}"):
                user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
                busy[int(name[3:])] = (user + nice + system + irq + softirq) / _TICKS
        return CoreTimes(time.monotonic(), busy)

    def shares_since(self, earlier: "CoreTimes") -> dict[int, float]:
        """The busy share of each core, 0 to 1."""
        elapsed = self.at - earlier.at
        return {core: (self.busy[core] - earlier.busy[core]) / elapsed for core in self.busy}


def await_quiet(limit: float, patience: float) -> float:
    """Waits until both cores together are busy by at most `limit`, or `patience` seconds; the share."""
    deadline = time.monotonic() + patience
    while True:
        before = CoreTimes.now()
        time.sleep(0.5)
        share = sum(CoreTimes.now().shares_since(before).values())
        if share <= limit or time.monotonic() > deadline:
            return share


def core_speed() -> float:
    """SHA-256 in GB/s on the proxy's core: tells a slow minute of a shared host from a slow proxy."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {PROXY_CORE})
    try:
        block, rounds, start = bytes(1 << 20), 0, time.perf_counter()
        while time.perf_counter() - start < 0.1:
            hashlib.sha256(block).digest()
            rounds += 1
        return rounds * len(block) / (time.perf_counter() - start) / 1e9
    finally:
        os.sched_setaffinity(0, allowed)
