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

from .contestants import Setting
from .load import Load
from .processes import LOAD_CORE, Broken, cpu_time
from .stage import Stage, Wrapping, staged
from .workloads import Workload

VIEWS = ("functions", "syscalls", "allocations", "instructions", "caches")
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
        case "instructions":
            return _instructions(workload, index, setting, seconds, top, folder)
        case _:
            return _caches(workload, index, setting, seconds, top, folder)


def _functions(
    workload: Workload, index: int, setting: Setting, seconds: int, top: int, folder: Path
) -> str:
    """Samples by the clock, so that it works where the hardware's counters are hidden."""
    _need("perf", "linux-perf")
    data = folder / "perf.data"
    with staged(workload, index, setting) as stage:
        stage.load(_WARM_UP, warming=True)
        command = ["perf", "record", "-q", "-F", str(_FREQUENCY), "-e", "cpu-clock", "-g"]
        command += ["-o", str(data), "-p", str(stage.proxy)]
        recorder = _on_load_core(command)
        before = cpu_time(stage.proxy)
        seen = stage.load(seconds)
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
        stage.load(1, warming=True)
        summary = stage.requests.with_name("strace.txt")
        tracer = _on_load_core(
            ["strace", "-c", "-f", "-U", "name,calls,errors", "-o", summary, "-p", str(stage.proxy)]
        )
        seen = stage.load(seconds)
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
        stage.load(_WARM_UP, warming=True)
        before = struct.unpack("QQ", counts.read_bytes())
        seen = stage.load(seconds)
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
    seen, totals, functions = _simulated(workload, index, setting, seconds, folder)
    lines = [
        f"## instructions: {workload.contestants[index].label} on {workload.name}",
        "",
        f"{seen.requests:,} requests, {totals['Ir'] / seen.requests:,.0f} instructions each outside "
        "the kernel.",
    ]
    return "\n".join(lines + _dearest("instructions", functions, seen, top, decimals=1)) + "\n"


def _caches(
    workload: Workload, index: int, setting: Setting, seconds: int, top: int, folder: Path
) -> str:
    """Cache lines that one core's caches of 48 KiB and 1 MiB would have to fetch: the memory that a
    request finds cold. The kernel, which takes its share of both, is not simulated."""
    options = ("--cache-sim=yes", "--D1=49152,12,64", "--LL=1048576,16,64")
    seen, totals, functions = _simulated(
        workload, index, setting, seconds, folder, options, ("DLmr", "DLmw"), warm_up=10
    )
    each = {name: count / seen.requests for name, count in totals.items()}
    lines = [
        f"## caches: {workload.contestants[index].label} on {workload.name}",
        "",
        f"{seen.requests:,} requests; each reads {each['Dr']:,.0f} times and writes "
        f"{each['Dw']:,.0f} times, misses 48 KiB {each['D1mr'] + each['D1mw']:.1f} times and "
        f"1 MiB {each['DLmr'] + each['DLmw']:.2f} times.",
    ]
    return "\n".join(lines + _dearest("misses of 1 MiB", functions, seen, top, decimals=2)) + "\n"


def _dearest(
    unit: str, functions: Counter[str], seen: Load, top: int, decimals: int
) -> list[str]:
    """The table of the functions that cost a request most."""
    rows = [
        f"| {cost / seen.requests:,.{decimals}f} | `{symbol[:140]}` |"
        for symbol, cost in functions.most_common(top)
    ]
    return ["", f"| {unit}/request | function |", "|--:|---|", *rows]


def _simulated(
    workload: Workload,
    index: int,
    setting: Setting,
    seconds: int,
    folder: Path,
    options: tuple[str, ...] = (),
    sorting: tuple[str, ...] = ("Ir",),
    warm_up: int = 1,
) -> tuple[Load, dict[str, int], Counter[str]]:
    """What the load generator saw of a proxy under callgrind, the sum of each event, and the events that `sorting`
    names by function."""
    _need("valgrind", "valgrind")
    for old in folder.glob("callgrind.out*"):
        old.unlink()
    prefix = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet", *options)
    wrapping = Wrapping(prefix=(*prefix, f"--callgrind-out-file={folder}/callgrind.out.%p"))
    # valgrind gives up at DWARF 5 as Swift writes it; the names of functions are all that is needed.
    binary = folder / "portcullis"
    subprocess.run(["objcopy", "--strip-debug", setting.portcullis, binary], check=True)
    setting = replace(setting, portcullis=binary)
    with staged(workload, index, setting, wrapping) as stage:
        # With caches to fill, the warm-up must be simulated too; its counts are thrown away.
        if options:
            _callgrind(stage, "-i", "on")
        stage.load(warm_up, warming=True)
        _callgrind(stage, "-i", "on")
        _callgrind(stage, "-z")
        seen = stage.load(seconds)
        _callgrind(stage, "-i", "off")
    files = sorted(folder.glob("callgrind.out*"), key=lambda file: file.stat().st_size)
    if not files:
        raise Broken("callgrind left no file")
    command = ["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no"]
    told = _demangled(
        subprocess.run([*command, files[-1]], capture_output=True, text=True).stdout
    )
    (folder / "simulated.txt").write_text(told)
    names = re.search(r"^Events shown:\s+(.*)$", told, re.M)[1].split()
    # Summed up here: callgrind's own totals are wrong once its counts were thrown away.
    totals: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    row = r"^\s*((?:[\d,.]+\s+)+)(?:\?\?\?|\S+?):(.+?)\s*$"
    for numbers, symbol in re.findall(row, told, re.M):
        counts = (0 if n == "." else int(n.replace(",", "")) for n in numbers.split())
        events = dict(zip(names, counts))
        totals.update(events)
        functions[re.sub(r" \[[^\[]*\]$", "", symbol)] += sum(events[name] for name in sorting)
    return seen, totals, functions


def _callgrind(stage: Stage, *command: str) -> None:
    subprocess.run(
        ["callgrind_control", *command, str(stage.proxy)], check=True, capture_output=True
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
