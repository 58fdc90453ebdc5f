"""A client that behaves beside an attack, and how long it waits."""

import resource
import time
from dataclasses import dataclass
from pathlib import Path

from . import attackers, probes
from .behaving import Latencies, behave
from .contestants import PORT, Contestant, Setting, nginx, portcullis
from .processes import cpu_time, resident_bytes
from .stage import folder_in_memory, running_backend, running_proxy

# Descriptors that a process needs besides the connections.
_SPARE = 600
# Descriptors that Portcullis keeps for itself, at least.
_RESERVED = 128
# What an attack costs at its beginning, such as accepting it all, is another figure than what it costs to be under it.
_SETTLING_SECONDS = 3


@dataclass(frozen=True)
class Kind:
    """One attack."""

    path: str = "/"
    reaches_backend: bool = False
    """Whether each connection has one to the backend, too."""
    outlasts_time_outs: bool = False
    """No time-out is over before the measurement is, so nothing is opened anew."""
    is_judged: bool = False
    """Whether tokens are verified: the client that behaves has one."""


KINDS = {
    "silent": Kind(outlasts_time_outs=True),
    "slow_headers": Kind(),
    "slow_bodies": Kind("/upload", reaches_backend=True),
    "slow_readers": Kind("/10mib", reaches_backend=True),
    "junk_tokens": Kind(is_judged=True),
}


@dataclass(frozen=True)
class Flood:
    """One flood of one contestant."""

    kind: str
    label: str
    attack: str
    """How large it was."""
    calm: Latencies
    busy: Latencies
    cpu_share: float
    """Of the proxy's core, while the flood was on."""
    before_mib: float
    most_mib: float
    told: str
    """What the attackers say of it."""

    def __str__(self) -> str:
        return (
            f"{self.attack}, p50 {self.calm.p50:.2f} → {self.busy.p50:.2f} ms, "
            f"p99 {self.calm.p99:.2f} → {self.busy.p99:.2f} ms, {self.busy.failed} of "
            f"{self.busy.requests} failed, core {self.cpu_share:.0%}, memory {self.before_mib:.1f} → "
            f"{self.most_mib:.1f} MiB, {self.told}"
        )


def possible(wanted: int, kind: Kind) -> int:
    """How many connections the limit of open files allows the proxy; raises it where that may be done."""
    each = 2.0 if kind.reaches_backend else 1.0
    # Room for those that are opened anew before the end of the old ones is seen.
    if not kind.outlasts_time_outs:
        each *= 4 / 3
    needed = int(wanted * each) + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(hard, needed), max(hard, needed)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE
    return min(wanted, int(limit / each))


def contestants(kind: Kind, count: int) -> list[Contestant]:
    """Both with their own time-outs and limits, and with room for all connections."""
    room = 2 * count + _SPARE
    app_check = "enforce" if kind.is_judged else "off"
    return [
        portcullis(
            "Portcullis",
            app_check=app_check,
            limits=f"connections = {room}",
            max_connections=min(room, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _RESERVED),
        ),
        nginx("nginx", connections=room),
    ]


def flood(kind: str, contestant: Contestant, count: int, seconds: float, setting: Setting) -> Flood:
    """Starts everything afresh, measures without the flood, and then with it."""
    genuine = setting.tokens.tokens(2048) if KINDS[kind].is_judged else []
    token = genuine[0] if genuine else ""
    with (
        folder_in_memory() as folder,
        running_backend(folder, 2 * count + _SPARE),
        running_proxy(folder, contestant, setting) as proxy,
    ):
        probes.await_answer(PORT, "/", token, 200)
        behave(1, token)
        calm = behave(min(seconds, 5), token)
        before = resident_bytes(proxy)
        memory = [before]

        def look():
            memory.append(resident_bytes(proxy))

        with _attack(kind, count, genuine, folder, seconds + _SETTLING_SECONDS) as finish:
            behave(_SETTLING_SECONDS, token, look)
            cpu, begun = cpu_time(proxy), time.monotonic()
            busy = behave(seconds, token, look)
            share = (cpu_time(proxy) - cpu).total / (time.monotonic() - begun)
            told = finish()
    return Flood(
        kind,
        contestant.label,
        f"{attackers.JUNK_CONNECTIONS if genuine else count:,} connections",
        calm,
        busy,
        share,
        before / 2**20,
        max(memory) / 2**20,
        told,
    )


def _attack(kind: str, count: int, genuine: list[str], folder: Path, seconds: float):
    if genuine:
        return attackers.junk_tokens(genuine[1:], folder, seconds)
    return attackers.slow(kind, count, seconds, KINDS[kind].path)


def table(floods: list[Flood]) -> str:
    """The results as Markdown."""
    lines = [
        "| flood | proxy | attack | p50 ms | p99 ms | with it: p50 | p99 | × | failed | core | memory MiB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in floods:
        lines.append(
            f"| {one.kind} | {one.label} | {one.attack}, {one.told} | {one.calm.p50:.2f} | {one.calm.p99:.2f} "
            f"| {one.busy.p50:.2f} | {one.busy.p99:.2f} | {one.busy.p99 / one.calm.p99:.1f} "
            f"| {one.busy.failed} of {one.busy.requests:,} "
            f"| {one.cpu_share:.0%} | {one.before_mib:.1f} → {one.most_mib:.1f} |"
        )
    return "\n".join(lines) + "\n"
