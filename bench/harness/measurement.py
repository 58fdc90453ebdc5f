"""One measured run: backend and proxy fresh, work checked, warmed up, timed."""

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import configurations, idle, load, tokens
from .contestants import PORT, Contestant, Setting, executables
from .processes import (
    LOAD_CORE,
    PROXY_CORE,
    Broken,
    CoreTimes,
    await_quiet,
    core_speed,
    cpu_seconds,
    resident_bytes,
    running,
)
from .workloads import Workload, request_lines

# Foreign work of more than this share of a core spoils a run.
FOREIGN_LIMIT = 0.08
_NGINX = "/usr/sbin/nginx"


@dataclass(frozen=True)
class Effort:
    """How long and how often."""

    repetitions: int
    seconds: float
    warm_up: float
    attempts: int
    """Runs spoilt by foreign work are repeated up to so many times; the quietest counts."""
    patience: float
    """Seconds to wait for a quiet machine before a run."""


@dataclass(frozen=True)
class Run:
    """The figures of one run."""

    workload: str
    contestant: str
    repetition: int
    cpu_us: float
    """CPU microseconds of the proxy process, user and system, per answered request."""
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    resident_mib: float
    proxy_core: float
    load_core: float
    foreign: float
    """CPU that neither proxy, backend nor load generator used, in cores; above all: builds."""
    core_speed: float
    requests: int


def measure(
    workload: Workload, index: int, repetition: int, setting: Setting, effort: Effort
) -> Run:
    """Runs the contestant at `index` until a run is quiet enough; raises `Broken` when its work is wrong."""
    quietest = None
    for _ in range(effort.attempts):
        await_quiet(FOREIGN_LIMIT, effort.patience)
        run = _measure_once(workload, index, repetition, setting, effort)
        if quietest is None or run.foreign < quietest.foreign:
            quietest = run
        if run.foreign <= FOREIGN_LIMIT:
            break
    return quietest


def _measure_once(
    workload: Workload, index: int, repetition: int, setting: Setting, effort: Effort
) -> Run:
    contestant = workload.contestants[index]
    genuine = setting.tokens.tokens(workload.bits) if workload.bits else []
    with _scratch() as scratch:
        requests = scratch / "requests.txt"
        requests.write_text("\n".join(request_lines(workload, index, genuine)) + "\n")
        speed = core_speed()
        with _backend(scratch) as origin, _proxy(scratch, contestant, setting) as proxy:
            _check(workload, contestant, requests, genuine)
            load.wrk(PORT, requests, effort.warm_up)
            cores, origin_cpu, proxy_cpu = CoreTimes.now(), cpu_seconds(origin), cpu_seconds(proxy)
            seen = load.wrk(PORT, requests, effort.seconds)
            proxy_cpu = cpu_seconds(proxy) - proxy_cpu
            origin_cpu = cpu_seconds(origin) - origin_cpu
            now = CoreTimes.now()
            resident = resident_bytes(proxy)
    _check_answers(workload, seen)
    shares = now.shares_since(cores)
    known = (proxy_cpu + origin_cpu + seen.cpu_seconds) / (now.at - cores.at)
    return Run(
        workload=workload.name,
        contestant=contestant.label,
        repetition=repetition,
        cpu_us=proxy_cpu / seen.requests * 1e6,
        requests_per_second=seen.requests / seen.seconds,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        resident_mib=resident / (1 << 20),
        proxy_core=shares[PROXY_CORE],
        load_core=shares[LOAD_CORE],
        foreign=max(0.0, sum(shares.values()) - known),
        core_speed=speed,
        requests=seen.requests,
    )


def _check(
    workload: Workload, contestant: Contestant, requests: Path, genuine: list[str]
) -> None:
    """Proves with single requests that the contestant does what its row says."""
    path, _, token = requests.read_text().splitlines()[0].partition("\t")
    load.await_answer(PORT, path, token, workload.status)
    if genuine and contestant.verifies:
        load.await_answer(PORT, path, tokens.tampered(token), 401)
        if contestant.program == "portcullis":
            verdict = load.await_answer(PORT, "/verdict", token, 200)
            if verdict != b"verified":
                raise Broken(f"the backend was told {verdict!r} instead of verified")


def _check_answers(workload: Workload, seen: load.Load) -> None:
    expected = seen.requests if workload.status >= 400 else 0
    if seen.requests == 0 or seen.error_statuses != expected:
        raise Broken(f"{seen.error_statuses} of {seen.requests} answers had status 400 or more")
    if seen.socket_errors > seen.requests / 10_000:
        raise Broken(f"{seen.socket_errors} socket errors in {seen.requests} requests")


@dataclass(frozen=True)
class IdleRun:
    """What idle connections cost one contestant."""

    contestant: str
    connections: int
    before_mib: float
    with_connections_mib: float
    still_open: int

    @property
    def kib_per_connection(self) -> float:
        return (self.with_connections_mib - self.before_mib) * 1024 / self.connections


def measure_idle(contestant: Contestant, wanted: int, setting: Setting) -> IdleRun:
    """Resident memory before and with so many idle connections (fewer if the system allows fewer)."""
    count = idle.possible(wanted)
    with (
        _scratch() as scratch,
        _backend(scratch),
        _proxy(scratch, contestant, setting) as proxy,
    ):
        load.await_answer(PORT, "/small", "", 200)
        before = resident_bytes(proxy)
        with idle.connections(PORT, count) as sockets:
            resident = resident_bytes(proxy)
            alive = idle.still_open(sockets)
    return IdleRun(contestant.label, count, before / (1 << 20), resident / (1 << 20), alive)


@contextmanager
def _scratch():
    """A folder in memory, so that a log file costs what it costs the CPU and not the disk."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="portcullis-bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _backend(scratch: Path):
    folder = scratch / "backend"
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(configurations.backend(folder))
    return running([_NGINX, "-c", str(file)], LOAD_CORE, configurations.BACKEND_PORT, folder)


def _proxy(scratch: Path, contestant: Contestant, setting: Setting):
    if executables(setting)[contestant.program] is None:
        raise Broken("not installed")
    folder = scratch / "proxy"
    folder.mkdir()
    output = folder / contestant.log_to if contestant.log_to else None
    return running(contestant.command(folder, setting), PROXY_CORE, PORT, folder, output)
