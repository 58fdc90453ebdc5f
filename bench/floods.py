"""The command line of the floods. Run it through bench/floods, which sees to what it needs."""

import argparse
import os
import signal
import sys
from pathlib import Path

from harness import certificate, tokens
from harness.contestants import Setting, executables
from harness.floods import KINDS, Flood, contestants, flood, possible, table
from harness.lock import alone
from harness.processes import Broken

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if (os.cpu_count() or 1) < 2:
        print("The floods need two cores: one for the proxy, one for everybody else.")
        return 1
    folder = ROOT / ".build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    results: list[Flood] = []
    with alone(options.wait):
        setting = Setting(
            options.portcullis.resolve(),
            tokens.prepared(folder / "tokens"),
            certificate.prepared(folder / "tls"),
        )
        try:
            _run(options, setting, results)
        except KeyboardInterrupt:
            print("\nInterrupted: reporting what there is.\n", file=sys.stderr)
    text = table(results)
    (folder / "floods.md").write_text(text)
    print(text)
    print(f"Saved as {folder / 'floods.md'}.")
    return 0


def _run(options: argparse.Namespace, setting: Setting, results: list[Flood]) -> None:
    programs = executables(setting)
    for kind in options.kinds:
        wanted = options.connections // (4 if KINDS[kind].reaches_backend else 1)
        count = possible(wanted, KINDS[kind])
        if count < wanted and not KINDS[kind].is_judged:
            print(f"{kind}: {count:,} connections, as open files are limited", file=sys.stderr)
        for contestant in contestants(KINDS[kind], count):
            if programs[contestant.program] is None:
                print(f"{contestant.program}: not found", file=sys.stderr)
                continue
            try:
                result = flood(kind, contestant, count, options.seconds, setting)
            except Broken as why:
                print(f"{kind:14} {contestant.label:12} {why}", file=sys.stderr)
                continue
            results.append(result)
            print(f"{kind:14} {contestant.label:12} {result}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/floods",
        description="How long a client that behaves waits beside thousands that do not, and what those "
        "cost; for Portcullis and nginx.",
    )
    parser.add_argument(
        "kinds", nargs="?", default=",".join(KINDS), help=f"with commas, of {', '.join(KINDS)}"
    )
    parser.add_argument(
        "--connections",
        type=int,
        default=20_000,
        help="how many (default: 20000); a quarter where each has one to the backend, too",
    )
    parser.add_argument(
        "--seconds", type=float, default=20, help="length of each flood (default: 20)"
    )
    parser.add_argument(
        "--portcullis",
        type=Path,
        default=ROOT / ".build" / "release" / "portcullis",
        help="the binary to flood",
    )
    parser.add_argument("--wait", action="store_true", help="wait for a benchmark that is running")
    options = parser.parse_args()
    options.kinds = [kind for kind in options.kinds.split(",") if kind]
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"no such flood: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
