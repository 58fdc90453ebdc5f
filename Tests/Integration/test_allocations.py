"""Heap allocations per keep-alive request: what the hot path allocates shows here before it shows in a benchmark."""

import mmap
import pathlib
import shutil
import struct
import subprocess

import pytest

from harness import client, proxy

SOURCE = pathlib.Path(__file__).parent / "allocations" / "count.c"
WARM_UP, MEASURED = 200, 1000

# A request allocates nothing. What is left is by the batch or by the second (log chunks, sweeps), so a single
# allocation that every tenth request makes is already a regression.
LIMIT = 0.1

CLAIMED = '''
[replay]
store = "memory"

[[route]]
name = "claimed"
path = "/claimed/*"
upstream = "api"
app_check = "enforce"
replay = "monitor"
'''


class Counter:
    """The counts of one preloaded process."""

    def __init__(self, library: pathlib.Path, file: pathlib.Path):
        file.write_bytes(bytes(16))
        self.environment = {"LD_PRELOAD": str(library), "ALLOCATION_COUNTS": str(file)}
        with open(file, "r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 16)

    def read(self) -> tuple[int, int]:
        """Allocations and bytes since the process started."""
        return struct.unpack("QQ", self._map[:16])


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> pathlib.Path:
    # The Swift toolchain brings a clang, so that a compiler is never missing.
    compiler = shutil.which("clang") or shutil.which("cc")
    assert compiler, "no C compiler, not even that of the Swift toolchain"
    built = tmp_path_factory.mktemp("allocations") / "count.so"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return built


@pytest.fixture(scope="module")
def optimised() -> pathlib.Path:
    """The release binary: without optimisation closures and task frames are boxed that it keeps on the stack."""
    if proxy.BINARY.parent.name == "release":
        return proxy.BINARY
    command = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--product", "portcullis"]
    subprocess.run(command, cwd=proxy.ROOT, check=True, stdout=subprocess.DEVNULL)
    return proxy.ROOT / ".build" / "release" / "portcullis"


# Most of that time is the build's, once.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("access", ["all", "off"])
@pytest.mark.parametrize("path, has_token, status", [
    pytest.param("/open/item", False, 200, id="forwarded"),
    pytest.param("/enforced/item", True, 200, id="verified"),
    pytest.param("/enforced/item", False, 401, id="refused"),
    # The same token each time, so that it is the claim that is seen and not a verification.
    pytest.param("/claimed/item", True, 200, id="claimed"),
])
def test_a_keep_alive_request_allocates_nothing(
        start, new_origin, mint, library, optimised, tmp_path, access, path, has_token, status):
    counter = Counter(library, tmp_path / "counts")
    portcullis = start(new_origin(), program=optimised, environment=counter.environment, log=f'access = "{access}"',
                       extra=CLAIMED if path.startswith("/claimed") else "")
    at_start, _ = counter.read()
    assert at_start > 100, "the counter is not in the process"
    request = client.request("GET", path, "User-Agent: count/1", token=mint(lifetime=300) if has_token else None)

    with portcullis.connect() as connection:

        def repeat(times: int):
            for _ in range(times):
                connection.send(request)
                assert connection.read_response().status == status

        repeat(WARM_UP)
        allocations, size = counter.read()
        repeat(MEASURED)
        after_allocations, after_size = counter.read()

    per_request = (after_allocations - allocations) / MEASURED
    print(f"{path}, access log {access}: {per_request:.3f} allocations, "
          f"{(after_size - size) / MEASURED:.0f} bytes a request")
    assert per_request <= LIMIT
