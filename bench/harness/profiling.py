"""Where the time of one contestant goes, in views that each run the workload once."""

import re
import shutil
import signal
import struct
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from . import load
from .contestants import PORT, Setting
from .processes import LOAD_CORE, Broken, cpu_time
from .stage import Stage, Wrapping, staged
from .workloads import Workload

VIEWS = ("functions", "syscalls", "allocations", "instructions")
_ALLOCATION_COUNTER = (
    Path(__file__).parents[2] / "Tests" / "Integration" / "allocations" / "count.c"
)
_FREQUENCY = 4999
_WARM_UP = 2


def profile(
    view: str,
    workload: Workload,
    index: int,
    setting: Setting,
    seconds: int,
    top: int,
    folder: Path,
) -> str:
    """One view as Markdown; its raw data stay in `folder`. Raises `Broken` when a tool is missing."""
    match view:
        case "functions":
            return _functions(workload, index, setting, seconds, top, folder)
        case "syscalls":
            return _system_calls(workload, index, setting, seconds)
        case "allocations":
            return _allocations(workload, index, setting, seconds, folder)
        case _:
            return _instructions(workload, index, setting, seconds, top, folder)


def _functions(
    workload: Workload, index: int, setting: Setting, seconds: int, top: int, folder: Path
) -> str:
    """Samples by the clock, so that it works where the hardware's counters are hidden."""
    _need("perf", "linux-perf")
    data = folder / "perf.data"
    with staged(workload, index, setting) as stage:
        load.wrk(PORT, stage.warm_up, _WARM_UP)
        command = ["perf", "record", "-q", "-F", str(_FREQUENCY), "-e", "cpu-clock", "-g"]
        command += ["-o", str(data), "-p", str(stage.proxy)]
        recorder = _on_load_core(command)
        before = cpu_time(stage.proxy)
        seen = load.wrk(PORT, stage.requests, seconds)
        used = cpu_time(stage.proxy) - before
        _interrupt(recorder)
    report = ["perf", "report", "-i", str(data), "--stdio", "--no-children", "-g", "none"]
    report += ["--percent-limit", "0.01", "-F", "overhead,dso,symbol"]
    told = subprocess.run(report, capture_output=True, text=True).stdout
    (folder / "functions.txt").write_text(_demangled(told))
    microseconds = used.total / seen.requests * 1e6
    lines = [
        f"## functions: {workload.contestants[index].label} on {workload.name}",
        "",
        f"{seen.requests:,} requests, {microseconds:.2f} µs each, "
        f"{used.user / seen.requests * 1e6:.2f} of that outside the kernel (slower than without perf).",
        "",
        "| ns/request | share | where | function |",
        "|--:|--:|---|---|",
    ]
    rows = re.findall(r"^\s+([\d.]+)%\s+(\S+)\s+\[([.k])\]\s+(.+?)\s*$", _demangled(told), re.M)
    objects: Counter[str] = Counter()
    functions: Counter[tuple[str, str]] = Counter()
    for share, where, kind, symbol in rows:
        objects["kernel" if kind == "k" else where] += float(share)
        # Addresses instead of names: the library is stripped.
        if kind == "." and not symbol.startswith("0x"):
            functions[(where, symbol[:140])] += float(share)

    def row(share: float, where: str, name: str) -> str:
        return f"| {share * microseconds * 10:.0f} | {share:.1f} % | {where} | {name} |"

    lines += [row(share, where, "(all of it)") for where, share in objects.most_common()]
    for (where, symbol), share in functions.most_common(top):
        lines.append(row(share, where, f"`{symbol}`"))
    return "\n".join(lines) + "\n"


def _system_calls(workload: Workload, index: int, setting: Setting, seconds: int) -> str:
    _need("strace", "strace")
    with staged(workload, index, setting) as stage:
        load.wrk(PORT, stage.warm_up, 1)
        summary = stage.requests.with_name("strace.txt")
        tracer = _on_load_core(
            ["strace", "-c", "-f", "-U", "name,calls,errors", "-o", summary, "-p", str(stage.proxy)]
        )
        seen = load.wrk(PORT, stage.requests, seconds)
        _interrupt(tracer)
        told = summary.read_text()
    lines = [
        f"## syscalls: {workload.contestants[index].label} on {workload.name}",
        "",
        "| call | per request | failed (mostly: would block) |",
        "|---|--:|--:|",
    ]
    for name, calls, errors in re.findall(r"^(\w+)\s+(\d+)\s*(\d*)\s*$", told, re.M):
        failed = f"{int(errors) / seen.requests:.3f}" if errors else ""
        lines.append(f"| {name} | {int(calls) / seen.requests:.3f} | {failed} |")
    return "\n".join(lines) + "\n"


def _allocations(
    workload: Workload, index: int, setting: Setting, seconds: int, folder: Path
) -> str:
    _need("gcc", "gcc")
    library, counts = folder / "count.so", folder / "counts"
    command = ["gcc", "-O2", "-shared", "-fPIC", "-o", library, _ALLOCATION_COUNTER]
    subprocess.run(command, check=True)
    counts.write_bytes(bytes(16))
    wrapping = Wrapping(
        environment=(("LD_PRELOAD", str(library)), ("ALLOCATION_COUNTS", str(counts)))
    )
    with staged(workload, index, setting, wrapping) as stage:
        load.wrk(PORT, stage.warm_up, _WARM_UP)
        before = struct.unpack("QQ", counts.read_bytes())
        seen = load.wrk(PORT, stage.requests, seconds)
        after = struct.unpack("QQ", counts.read_bytes())
    allocations, size = ((b - a) / seen.requests for a, b in zip(before, after))
    return (
        f"## allocations: {workload.contestants[index].label} on {workload.name}\n\n"
        f"{allocations:.3f} a request, {size:.0f} bytes.\n"
    )


def _instructions(
    workload: Workload, index: int, setting: Setting, seconds: int, top: int, folder: Path
) -> str:
    """Exact user-space instruction counts, free of noise: the view to compare two builds by."""
    _need("valgrind", "valgrind")
    for old in folder.glob("callgrind.out*"):
        old.unlink()
    prefix = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet")
    wrapping = Wrapping(prefix=(*prefix, f"--callgrind-out-file={folder}/callgrind.out.%p"))
    # valgrind gives up at DWARF 5 as Swift writes it; the names of functions are all that is needed.
    binary = folder / "portcullis"
    subprocess.run(["objcopy", "--strip-debug", setting.portcullis, binary], check=True)
    setting = replace(setting, portcullis=binary)
    with staged(workload, index, setting, wrapping) as stage:
        load.wrk(PORT, stage.warm_up, 1)
        _callgrind(stage, "on")
        seen = load.wrk(PORT, stage.requests, seconds)
        _callgrind(stage, "off")
    files = sorted(folder.glob("callgrind.out*"), key=lambda file: file.stat().st_size)
    if not files:
        raise Broken("callgrind left no file")
    annotate = ["callgrind_annotate", "--threshold=99", "--show-percs=no", "--auto=no", files[-1]]
    told = _demangled(subprocess.run(annotate, capture_output=True, text=True).stdout)
    (folder / "instructions.txt").write_text(told)
    total = int(re.search(r"^\s*([\d,]+).*PROGRAM TOTALS", told, re.M)[1].replace(",", ""))
    costs: Counter[str] = Counter()
    for number, symbol in re.findall(r"^\s*([\d,]+)\s+(?:\?\?\?|\S+?):(.+?)\s*$", told, re.M):
        costs[re.sub(r" \[[^\[]*\]$", "", symbol)] += int(number.replace(",", ""))
    lines = [
        f"## instructions: {workload.contestants[index].label} on {workload.name}",
        "",
        f"{seen.requests:,} requests, {total / seen.requests:,.0f} instructions each outside the "
        "kernel.",
        "",
        "| instructions/request | function |",
        "|--:|---|",
    ]
    for symbol, cost in costs.most_common(top):
        lines.append(f"| {cost / seen.requests:,.1f} | `{symbol[:140]}` |")
    return "\n".join(lines) + "\n"


def _callgrind(stage: Stage, switch: str) -> None:
    subprocess.run(
        ["callgrind_control", "-i", switch, str(stage.proxy)], check=True, capture_output=True
    )


def _need(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        raise Broken(f"needs {tool}: apt install {package}")


def _on_load_core(command: list) -> subprocess.Popen:
    """Starts a tool that attaches to the proxy, and gives it the moment that this takes."""
    pinned = ["taskset", "-c", str(LOAD_CORE), *command]
    tool = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(1)
    if tool.poll() is not None:
        raise Broken(tool.stderr.read().decode()[-500:])
    return tool


def _interrupt(tool: subprocess.Popen) -> None:
    tool.send_signal(signal.SIGINT)
    tool.communicate(timeout=120)


def _demangled(text: str) -> str:
    """Swift's names as its programmers wrote them, where the toolchain is at hand."""
    if shutil.which("swift") is None:
        return text
    command = ["swift", "demangle", "--simplified"]
    return subprocess.run(command, input=text, capture_output=True, text=True).stdout or text
