"""Tables and the list of goals, in Markdown."""

import os
import platform
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from . import h2load, handshakes
from .contestants import Setting, executables
from .measurement import FOREIGN_LIMIT, IdleRun, Run
from .workloads import (
    CLAIMS_IN_FILE,
    CLAIMS_IN_MEMORY,
    IDLE_WORKLOADS,
    PLAIN_NGINX,
    PORTCULLIS,
    WITHOUT_CLAIMS,
    WORKLOADS,
    Workload,
)

# Above this share of the load core, a rate is a floor: the proxy could have answered more.
_SATURATED = 0.97


@dataclass
class Results:
    """Everything that was measured."""

    runs: list[Run] = field(default_factory=list)
    raw_verification_us: dict[int, list[float]] = field(default_factory=dict)
    idle: list[IdleRun] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Sentences about contestants that could not take part, and why."""

    def of(self, workload: str, contestant: str) -> list[Run]:
        return [
            run
            for run in self.runs
            if run.workload == workload and run.contestant == contestant
        ]

    def middle(self, workload: str, contestant: str, figure: str) -> float | None:
        """The median of a figure over the repetitions."""
        figures = [getattr(run, figure) for run in self.of(workload, contestant)]
        known = [each for each in figures if each is not None]
        return median(known) if known else None

    def raw(self, bits: int | None) -> float | None:
        measured = self.raw_verification_us.get(bits or 0)
        return median(measured) if measured else None


def report(results: Results, setting: Setting, effort: str) -> str:
    """The whole report."""
    parts = ["# Benchmark", "", *_machine(setting, effort), ""]
    if goals := _goals(results):
        parts += ["## Goals", "", *goals, ""]
    for workload in WORKLOADS:
        if rows := _table(workload, results):
            parts += [f"## {workload.name}: {workload.title}", "", *rows, ""]
    for idle in IDLE_WORKLOADS:
        if runs := [run for run in results.idle if run.workload == idle.name]:
            parts += [f"## {idle.name}: {idle.title}", "", *_idle(runs), ""]
    if results.absent:
        parts += ["## Did not take part", "", *(f"- {line}" for line in results.absent), ""]
    return "\n".join(parts)


def _machine(setting: Setting, effort: str) -> list[str]:
    processor = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    programs = executables(setting)
    versions = [
        _first_line([programs["nginx"], "-v"], r"nginx/\S+"),
        _first_line([programs["haproxy"], "-v"], r"HAProxy version \S+"),
        "Envoy " + _first_line([programs["envoy"], "--version"], r"(?<=/)\d+\.\d+\.\d+(?=/)"),
        _first_line(["openssl", "version"], r"OpenSSL \S+"),
        _first_line([programs["portcullis"], "--version"], r".+"),
        "commit " + _first_line(["git", "rev-parse", "--short", "HEAD"], r"\w+"),
    ]
    return [
        f"{os.cpu_count()} × {processor[1] if processor else platform.machine()}, Linux "
        f"{platform.release()}; {', '.join(versions)}.",
        "",
        "The proxy has core 0 to itself (one worker), load generator and backend (nginx) share "
        f"core 1. wrk has 64 keep-alive connections, h2load {h2load.CONNECTIONS} "
        f"of {h2load.STREAMS} streams each, and {handshakes.THREADS} connections at a time are "
        "new where handshakes are measured. "
        f"{effort} Contestants take turns; figures are medians.",
        "",
        "CPU µs is user + system time of the proxy process per answered request. ×ref is that "
        "figure divided by the one of the row marked *ref*. "
        "A rate marked ≥ was limited by core 1: compare CPU µs there, and the p99 at a steady rate, "
        "as the other one tells who waited for the load generator. "
        f"† foreign work took more than {FOREIGN_LIMIT:.0%} of a core during a run.",
    ]


def _first_line(command: list[str | None], pattern: str) -> str:
    if command[0] is None:
        return "(absent)"
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "(unknown)"
    found = re.search(pattern, told.stdout + told.stderr)
    return found[0].strip() if found else "(unknown)"


def _table(workload: Workload, results: Results) -> list[str]:
    if not any(results.of(workload.name, who.label) for who in workload.contestants):
        return []
    lines = [
        "| | CPU µs | of that user | spread | ×ref | requests/s | p50 ms | p99 ms | steady p99 ms | RSS MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    reference = results.middle(workload.name, workload.reference, "cpu_us")
    for contestant in workload.contestants:
        runs = results.of(workload.name, contestant.label)
        if not runs:
            continue

        def middle(figure: str, label: str = contestant.label) -> float:
            return results.middle(workload.name, label, figure) or 0

        cpu = middle("cpu_us")
        costs = [run.cpu_us for run in runs]
        ratio = "–" if reference is None else f"{cpu / reference:.2f}"
        if contestant.label == workload.reference:
            ratio = "*ref*"
        floor = "≥ " if middle("load_core") > _SATURATED else ""
        steady = f"{middle('steady_p99_ms'):.2f}" if workload.rate else "–"
        foreign = " †" if any(run.foreign > FOREIGN_LIMIT for run in runs) else ""
        lines.append(
            f"| {contestant.label}{foreign} | {cpu:.1f} | {middle('user_us'):.1f} "
            f"| {(max(costs) - min(costs)) / cpu:.0%} | {ratio} | {floor}{middle('requests_per_second'):,.0f} | {middle('p50_ms'):.2f} "
            f"| {middle('p99_ms'):.2f} | {steady} | {middle('resident_mib'):.0f} |"
        )
    if (raw := results.raw(workload.bits)) and workload.raw_verification:
        lines += ["", f"One raw `openssl speed` verification, RSA-{workload.bits}: {raw:.1f} µs."]
        if reference is not None:
            lines[-1] += f" Plain nginx + 1.2 × that: {reference + 1.2 * raw:.1f} µs."
    return lines


def _idle(runs: list[IdleRun]) -> list[str]:
    lines = [
        "| | connections | still open | RSS before, MiB | RSS with them, MiB | KiB/connection |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for run in runs:
        lines.append(
            f"| {run.contestant} | {run.connections:,} | {run.still_open:,} | {run.before_mib:.1f} "
            f"| {run.with_connections_mib:.1f} | {run.kib_per_connection:.2f} |"
        )
    return lines


def _goals(results: Results) -> list[str]:
    """What the project promises, each with the figure reached and the limit that it has to keep."""
    lines = []

    def goal(text: str, reached: float | None, limit: float | None, unit: str) -> None:
        if reached is None or limit is None:
            return
        word = "met" if reached <= limit else "**missed**"
        lines.append(f"| {text} | {reached:.2f} {unit} | {limit:.2f} {unit} | {word} |")

    middle: Callable[[str, str, str], float | None] = results.middle
    goal(
        "plain forwarding costs no more than nginx's",
        middle("plain", PORTCULLIS, "cpu_us"),
        middle("plain", PLAIN_NGINX, "cpu_us"),
        "µs",
    )
    goal(
        "a repeated token, verified, costs no more than plain nginx",
        middle("token-same", PORTCULLIS, "cpu_us"),
        middle("token-same", PLAIN_NGINX, "cpu_us"),
        "µs",
    )
    for bits in (2048, 3072):
        name = f"token-distinct-{bits}"
        plain, raw = middle(name, PLAIN_NGINX, "cpu_us"), results.raw(bits)
        goal(
            f"distinct RSA-{bits} tokens: plain nginx + 1.2 × raw verification",
            middle(name, PORTCULLIS, "cpu_us"),
            plain + 1.2 * raw if plain is not None and raw is not None else None,
            "µs",
        )
    goal(
        "a refusal costs no more than nginx `return 401`",
        middle("refused", PORTCULLIS, "cpu_us"),
        middle("refused", "nginx, return 401", "cpu_us"),
        "µs",
    )
    for what, label, limit in (("memory", CLAIMS_IN_MEMORY, 1), ("a file", CLAIMS_IN_FILE, 3)):
        with_claims = middle("token-once", label, "cpu_us")
        without = middle("token-once", WITHOUT_CLAIMS, "cpu_us")
        goal(
            f"a claim in {what} costs at most {limit} µs",
            with_claims - without if with_claims is not None and without is not None else None,
            limit,
            "µs",
        )
        without = middle("token-once", WITHOUT_CLAIMS, "p99_ms")
        goal(
            f"p99 with claims in {what} is at most 1.2 × that without",
            middle("token-once", label, "p99_ms"),
            1.2 * without if without is not None else None,
            "ms",
        )
    few = middle("routes", "Portcullis, 10 routes", "cpu_us")
    goal(
        "10,000 routes cost what 10 cost, within 5 % of noise",
        middle("routes", "Portcullis, 10,000 routes", "cpu_us"),
        few * 1.05 if few is not None else None,
        "µs",
    )
    for workload in WORKLOADS:
        figures = [("steady_p99_ms", f"p99 at {workload.rate:,}/s", "ms")] if workload.rate else []
        if workload.beats_peers:
            figures.append(("cpu_us", "CPU", "µs"))
            if not workload.rate:
                figures.append(("p99_ms", "p99", "ms"))
        for figure, name, unit in figures:
            others = (middle(workload.name, who.label, figure) for who in workload.contestants[1:])
            goal(
                f"{workload.name}: {name} is not above the best peer's",
                middle(workload.name, PORTCULLIS, figure),
                min((each for each in others if each is not None), default=None),
                unit,
            )
    for idle in IDLE_WORKLOADS:
        held = {
            run.contestant: run.with_connections_mib
            for run in results.idle
            if run.workload == idle.name
        }
        nginx = held.get(PLAIN_NGINX)
        goal(
            f"{idle.name}: at most {idle.limit} × nginx's memory",
            held.get(PORTCULLIS),
            nginx * idle.limit if nginx is not None else None,
            "MiB",
        )
    if not lines:
        return []
    return ["| goal | reached | limit | |", "|---|--:|--:|---|", *lines]
