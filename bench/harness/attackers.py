"""Those who do not behave: slow clients by the thousand, and junk tokens as fast as they come."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .contestants import PORT
from .processes import LOAD_CORE, Broken
from .tokens import tampered

# The slow clients are those of the integration tests.
_SLOW = Path(__file__).resolve().parents[2] / "Tests" / "Integration" / "harness" / "slow.py"
_SCRIPT = Path(__file__).parent.parent / "wrk" / "requests.lua"
_PROCESSES = 4
# Each connection does its little something so often; with 20,000 of them more often is a load, and no slow client.
_BEAT_SECONDS = 4
# An attacker has machines of its own: here it gets what the client and the backend leave of their core.
_LAST = ["taskset", "-c", str(LOAD_CORE), "chrt", "--idle", "0"]
JUNK_CONNECTIONS = 64
# The mean pause of a connection between two requests: 64 of them are about 15,000 requests a second.
_JUNK_PAUSE_MILLISECONDS = 4

Finish = Callable[[], str]
"""Ends the attack; says what it did."""


@contextmanager
def slow(kind: str, count: int, seconds: float, path: str) -> Iterator[Finish]:
    """So many connections, once all of them have been tried."""
    share = -(-count // _PROCESSES)
    command = [*_LAST, sys.executable, str(_SLOW), kind, str(PORT), str(share)]
    # They begin one after the other, and all must outlast the measurement.
    command += [str(seconds + 60), path]
    environment = os.environ | {"SLOW_BEAT": str(_BEAT_SECONDS)}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(_PROCESSES)
    ]
    try:
        for process in processes:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise Broken("the attackers did not start")

        def finish() -> str:
            for process in processes:
                process.terminate()
            told = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
            return f"{sum(one['ended'] for one in told):,} ended"

        yield finish
    finally:
        _end(processes)


@contextmanager
def junk_tokens(genuine: list[str], folder: Path, seconds: float) -> Iterator[Finish]:
    """Requests with well-formed tokens that nobody signed, all different, from one address."""
    file = folder / "junk.txt"
    file.write_text("".join(f"/\t{tampered(token)}\n" for token in genuine))
    command = [*_LAST, "wrk", "-t1", f"-c{JUNK_CONNECTIONS}", f"-d{round(seconds) + 2}s"]
    command += ["--timeout", "10s", "-s", str(_SCRIPT), f"http://127.0.0.1:{PORT}", "--", str(file)]
    environment = os.environ | {"MEAN_PAUSE_MILLISECONDS": str(_JUNK_PAUSE_MILLISECONDS)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def finish() -> str:
        told = process.communicate(timeout=60)[0]
        results = [line for line in told.splitlines() if line.startswith("RESULT ")]
        if not results:
            raise Broken(f"wrk says nothing: {told[-500:]}")
        result = json.loads(results[0].removeprefix("RESULT "))
        rate = result["requests"] / result["microseconds"] * 1e6
        return f"{rate:,.0f} junk tokens a second"

    try:
        yield finish
    finally:
        _end([process])


def _end(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.kill()
        process.wait()
