"""W7: every case of the Autobahn suite ends through the proxy as it ends without it.

The cases are the suite's own files; `kosoku` runs them on Python 3. Those about limits (9) and compression (12, 13) move
hundreds of MiB: `AUTOBAHN=1` adds them.
"""

import asyncio
import os

import kosoku
import pytest

from harness.http2backend import Backend
from harness.websocket import Echo

LONG = ["9.*", "12.*", "13.*"]
IS_WHOLE = os.environ.get("AUTOBAHN") == "1"


def verdicts(port: int) -> dict[str, tuple[str, str]]:
    """What the suite says of each case: of its messages and of its end."""

    async def run():
        try:
            return await kosoku.run_fuzzingclient(
                f"ws://127.0.0.1:{port}/open/autobahn", exclude_cases=None if IS_WHOLE else LONG, concurrency=4)
        except kosoku.FailureError as failure:
            return failure.results

    return {result.case_id: (result.behavior.value, result.behavior_close.value) for result in asyncio.run(run())}


@pytest.fixture(scope="module")
def echo():
    server = Echo()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def direct(echo) -> dict:
    return verdicts(echo.port)


@pytest.mark.timeout(1800)
def test_every_case_ends_as_without_the_proxy(start, echo, direct):
    assert len(direct) > (500 if IS_WHOLE else 240)
    # The echo of the harness is not perfect, and need not be.
    assert sum(not is_good(told) for told in direct.values()) <= 2
    through = verdicts(start(echo, log='access = "off"').port)
    different = {case: (told, through.get(case)) for case, told in direct.items() if through.get(case) != told}
    print(f"{len(direct)} cases, {len(different)} with another verdict through the proxy")
    assert different == {}


def is_good(told: tuple[str, str]) -> bool:
    return told[0] in ("OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED")


@pytest.mark.timeout(1800)
def test_what_goes_well_goes_well_before_a_backend_of_http2(start, direct):
    behind = Backend()
    try:
        through = verdicts(start(behind, upstream='protocol = "h2c"', log='access = "off"').port)
        assert {case: told for case, told in through.items() if is_good(direct[case]) and not is_good(told)} == {}
    finally:
        behind.stop()
