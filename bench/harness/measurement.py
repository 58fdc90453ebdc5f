"""One measured run: backend and proxy fresh, work checked, warmed up, timed."""

import math
import time
from dataclasses import dataclass

from . import idle, probes
from .contestants import PORT, Contestant, Setting
from .load import Load
from .processes import (
    LOAD_CORE,
    PROXY_CORE,
    Broken,
    CoreTimes,
    await_quiet,
    core_speed,
    cpu_time,
    resident_bytes,
)
from .stage import folder_in_memory, running_backend, running_proxy, staged
from .workloads import ONCE_LENGTH, IdleWorkload, Workload

# Foreign work of more than this share of a core spoils a run.
FOREIGN_LIMIT = 0.08
# How long connections have been idle when their memory is read.
IDLE_SECONDS = 5


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
    user_us: float
    """The part of it outside the kernel."""
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    steady_p99_ms: float | None
    """At the workload's steady rate; infinite where that was not reached."""
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
    warm_up, seconds = ONCE_LENGTH if workload.once else (effort.warm_up, effort.seconds)
    speed = core_speed()
    with staged(workload, index, setting) as stage:
        stage.load(warm_up, warming=True)
        cores = CoreTimes.now()
        backend_before, proxy_before = cpu_time(stage.backend), cpu_time(stage.proxy)
        seen = stage.load(seconds)
        proxy_cpu = cpu_time(stage.proxy) - proxy_before
        backend_cpu = cpu_time(stage.backend) - backend_before
        now = CoreTimes.now()
        resident = resident_bytes(stage.proxy)
        steady = stage.steady_load(seconds) if workload.rate else None
    _check_answers(workload, seen)
    if steady:
        _check_answers(workload, steady)
    shares = now.shares_since(cores)
    known = (proxy_cpu.total + backend_cpu.total + seen.cpu_seconds) / (now.at - cores.at)
    return Run(
        workload=workload.name,
        contestant=workload.contestants[index].label,
        repetition=repetition,
        cpu_us=proxy_cpu.total / seen.requests * 1e6,
        user_us=proxy_cpu.user / seen.requests * 1e6,
        requests_per_second=seen.requests / seen.seconds,
        p50_ms=seen.p50_ms,
        p99_ms=seen.p99_ms,
        steady_p99_ms=_steady_p99(workload.rate, steady) if steady else None,
        resident_mib=resident / (1 << 20),
        proxy_core=shares[PROXY_CORE],
        load_core=shares[LOAD_CORE],
        foreign=max(0.0, sum(shares.values()) - known),
        core_speed=speed,
        requests=seen.requests,
    )


def _check_answers(workload: Workload, seen: Load) -> None:
    expected = seen.requests if workload.status >= 400 else 0
    if seen.requests == 0 or seen.error_statuses != expected:
        raise Broken(f"{seen.error_statuses} of {seen.requests} answers had status 400 or more")
    if seen.socket_errors > seen.requests / 10_000:
        raise Broken(f"{seen.socket_errors} socket errors in {seen.requests} requests")


def _steady_p99(rate: int, seen: Load) -> float:
    """Without end where the rate was not reached: the queue only grew."""
    return seen.p99_ms if seen.requests >= 0.95 * rate * seen.seconds else math.inf


@dataclass(frozen=True)
class IdleRun:
    """What idle connections cost one contestant."""

    workload: str
    contestant: str
    connections: int
    before_mib: float
    with_connections_mib: float
    still_open: int

    @property
    def kib_per_connection(self) -> float:
        return (self.with_connections_mib - self.before_mib) * 1024 / self.connections


def measure_idle(
    workload: IdleWorkload, contestant: Contestant, wanted: int, setting: Setting
) -> IdleRun:
    """Resident memory before and with so many idle connections (fewer if the system allows fewer)."""
    count = idle.possible(wanted)
    with (
        folder_in_memory() as folder,
        running_backend(folder),
        running_proxy(folder, contestant, setting) as proxy,
    ):
        probes.await_answer(PORT, "/small", "", 200, tls=workload.tls)
        before = resident_bytes(proxy)
        with idle.connections(PORT, count, tls=workload.tls) as sockets:
            # Idle is what has been quiet for a while: a proxy may give back what it held for the request.
            time.sleep(IDLE_SECONDS)
            resident = resident_bytes(proxy)
            alive = idle.still_open(sockets)
    return IdleRun(
        workload.name, contestant.label, count, before / (1 << 20), resident / (1 << 20), alive
    )
