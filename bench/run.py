"""The benchmark's command line. Run it through run.sh, which sees to what it needs."""

import argparse
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from harness import certificate, load, tokens
from harness.contestants import Setting, executables
from harness.lock import alone
from harness.measurement import Effort, measure, measure_idle
from harness.processes import Broken
from harness.report import Results, report
from harness.workloads import IDLE_CONNECTIONS, IDLE_WORKLOADS, NAMES, WORKLOADS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    options = _options()
    # Ends like Ctrl-C: what runs is stopped, and what was measured is reported.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = ROOT / ".build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    if (os.cpu_count() or 1) < 2:
        print("The benchmark needs two cores: one for the proxy, one for the load.")
        return 1
    with alone(options.wait):
        setting = Setting(
            options.portcullis.resolve(),
            tokens.prepared(folder / "tokens"),
            certificate.prepared(folder / "tls"),
        )
        results = Results()
        _note_absent(setting, results)
        with open(folder / "runs.jsonl", "w") as raw:
            try:
                _run(options, setting, results, raw)
            except KeyboardInterrupt:
                print("\nInterrupted: reporting what there is.\n", file=sys.stderr)
    effort = options.effort
    text = report(
        results,
        setting,
        f"{effort.warm_up:.0f} s of warm-up and {effort.seconds:.0f} s measured, "
        f"{effort.repetitions} times.",
    )
    (folder / "results.md").write_text(text)
    print(text)
    print(f"Saved as {folder / 'results.md'}; every single run is in runs.jsonl beside it.")
    return 1 if options.check and "**missed**" in text else 0


def _run(options: argparse.Namespace, setting: Setting, results: Results, raw) -> None:
    taking_part = {
        program
        for program, path in executables(setting).items()
        if path is not None and (not options.only or program in options.only)
    }
    failed: set[tuple[str, str]] = set()
    for workload in WORKLOADS:
        if workload.name not in options.workloads:
            continue
        for repetition in range(1, options.effort.repetitions + 1):
            if workload.raw_verification:
                measured = load.raw_verification_us(workload.bits)
                results.raw_verification_us.setdefault(workload.bits, []).append(measured)
            for index, contestant in enumerate(workload.contestants):
                key = (workload.name, contestant.label)
                if key in failed or contestant.program not in taking_part:
                    continue
                try:
                    run = measure(workload, index, repetition, setting, options.effort)
                except Broken as why:
                    failed.add(key)
                    results.absent.append(f"{contestant.label} in {workload.name}: {why}")
                    print(f"{workload.name:20} {contestant.label:36} {why}", file=sys.stderr)
                    continue
                results.runs.append(run)
                raw.write(json.dumps(asdict(run)) + "\n")
                raw.flush()
                print(
                    f"{workload.name:20} {contestant.label:36} {run.cpu_us:8.1f} µs "
                    f"{run.requests_per_second:9,.0f}/s  p99 {run.p99_ms:.2f} ms  cores "
                    f"{run.proxy_core:.0%} {run.load_core:.0%}  foreign {run.foreign:.0%}",
                    file=sys.stderr,
                )
    for workload in IDLE_WORKLOADS:
        if workload.name not in options.workloads:
            continue
        for contestant in workload.contestants:
            if contestant.program not in taking_part:
                continue
            try:
                idle = measure_idle(workload, contestant, IDLE_CONNECTIONS, setting)
            except (Broken, OSError) as why:
                results.absent.append(f"{contestant.label} in {workload.name}: {why}")
                continue
            results.idle.append(idle)
            raw.write(json.dumps(asdict(idle)) + "\n")
            print(
                f"{workload.name:20} {contestant.label:36} {idle.with_connections_mib:8.1f} MiB "
                f"with {idle.connections:,} connections, {idle.before_mib:.1f} before",
                file=sys.stderr,
            )


def _note_absent(setting: Setting, results: Results) -> None:
    for program, path in executables(setting).items():
        if path is None:
            where = f" at {setting.portcullis}: run `make build`" if program == "portcullis" else ""
            results.absent.append(f"{program}: not found{where}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run.sh",
        description="Measures Portcullis against nginx, HAProxy and Envoy on one core.",
        epilog="workloads: " + ", ".join(NAMES),
    )
    parser.add_argument(
        "workloads", nargs="?", default=",".join(NAMES), help="names with commas (default: all)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="2 × 4 s, 1 s of warm-up, no waiting for a quiet machine",
    )
    parser.add_argument("--repetitions", type=int, help="runs of each contestant (default: 3)")
    parser.add_argument("--seconds", type=int, help="length of a run (default: 10)")
    parser.add_argument("--warm-up", type=int, help="seconds before it (default: 3)")
    parser.add_argument("--only", default="", help="programs with commas: portcullis,nginx,…")
    parser.add_argument(
        "--portcullis",
        type=Path,
        default=ROOT / ".build" / "release" / "portcullis",
        help="the binary to measure",
    )
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--wait", action="store_true", help="wait for a benchmark that is running")
    options = parser.parse_args()
    options.workloads = [name for name in options.workloads.split(",") if name]
    options.only = [name for name in options.only.split(",") if name]
    if unknown := set(options.workloads) - set(NAMES):
        parser.error(f"no such workload: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    usual = (2, 4, 1, 1, 0.0) if options.quick else (3, 10, 3, 4, 60.0)
    asked = (options.repetitions, options.seconds, options.warm_up, None, None)
    options.effort = Effort(*(own if own is not None else u for own, u in zip(asked, usual)))
    return options


if __name__ == "__main__":
    sys.exit(main())
