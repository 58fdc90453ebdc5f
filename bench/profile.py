"""The profiler's command line. Run it through bench/profile, which sees to what it needs."""

import argparse
import sys
from pathlib import Path

from harness import certificate, tokens
from harness.contestants import Setting, executables
from harness.lock import alone
from harness.processes import Broken
from harness.profiling import VIEWS, profile
from harness.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    workloads = {workload.name: workload for workload in WORKLOADS}
    parser = argparse.ArgumentParser(
        prog="bench/profile",
        description="Profiles a contestant on one workload: functions, system calls, allocations.",
    )
    parser.add_argument("workload", choices=workloads)
    parser.add_argument(
        "--row", default="Portcullis", help="how the row's label begins (default: Portcullis)"
    )
    parser.add_argument(
        "--views", default=",".join(VIEWS), help=f"with commas, of {', '.join(VIEWS)} (default: all)"
    )
    parser.add_argument("--seconds", type=int, default=5, help="length of each view (default: 5)")
    parser.add_argument("--top", type=int, default=40, help="functions to list (default: 40)")
    parser.add_argument(
        "--portcullis",
        type=Path,
        default=ROOT / ".build" / "release" / "portcullis",
        help="the binary to profile",
    )
    parser.add_argument("--wait", action="store_true", help="wait for a benchmark that is running")
    options = parser.parse_args()
    workload = workloads[options.workload]
    rows = [
        index
        for index, contestant in enumerate(workload.contestants)
        if contestant.label.lower().startswith(options.row.lower())
    ]
    if not rows:
        parser.error(f"no row of {workload.name} begins with {options.row!r}")
    if unknown := set(options.views.split(",")) - set(VIEWS):
        parser.error(f"no such view: {', '.join(unknown)}")
    folder = ROOT / ".build" / "bench"
    setting = Setting(
        options.portcullis.resolve(),
        tokens.prepared(folder / "tokens"),
        certificate.prepared(folder / "tls"),
    )
    if executables(setting)[workload.contestants[rows[0]].program] is None:
        parser.error("the program is not there: run `make build`")
    kept = folder / f"profile-{workload.name}"
    kept.mkdir(parents=True, exist_ok=True)
    with alone(options.wait):
        for view in options.views.split(","):
            try:
                print(profile(view, workload, rows[0], setting, options.seconds, options.top, kept))
            except Broken as why:
                print(f"## {view}\n\n{why}\n", file=sys.stderr)
    print(f"Raw data: {kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
