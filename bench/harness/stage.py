"""A fresh backend and a fresh proxy in front of it, proved to do the work that a row names."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import configurations, probes, tokens
from .contestants import PORT, Contestant, Setting, executables
from .h2load import h2load
from .handshakes import handshakes
from .load import Load, wrk
from .processes import LOAD_CORE, PROXY_CORE, Broken, running
from .workloads import ONCE_LENGTH, Client, Workload, request_lines


@dataclass(frozen=True)
class Stage:
    """What runs, by process id, and the files of requests for it."""

    workload: Workload

    backend: int
    proxy: int
    requests: Path
    warm_up: Path
    """The same requests, or others where none may come twice."""

    def load(self, seconds: float, *, warming: bool = False) -> Load:
        """What the workload's clients do for whole `seconds`."""
        requests = self.warm_up if warming else self.requests
        client = self.workload.client
        if client is Client.WRK:
            return wrk(
                PORT, requests, seconds, self.workload.connections, tls=self.workload.tls
            )
        # These repeat one request.
        if client in (Client.H2LOAD, Client.GRPC):
            return self._h2load(seconds)
        path, token = self._request
        return handshakes(PORT, path, token, seconds, resumed=client is Client.RESUMPTIONS)

    def steady_load(self, seconds: float) -> Load:
        """The workload's rate of its first request, which no contestant needs a whole core for."""
        return self._h2load(seconds, self.workload.rate)

    @property
    def _request(self) -> tuple[str, str]:
        """The path and the token of the first request."""
        path, _, token = self.requests.read_text().splitlines()[0].partition("\t")
        return path, token

    def _h2load(self, seconds: float, rate: int | None = None) -> Load:
        path, token = self._request
        folder = self.requests.parent
        return h2load(
            PORT,
            path,
            token,
            seconds,
            folder,
            call=_call(folder) if self.workload.client is Client.GRPC else None,
            http1=self.workload.client is Client.WRK,
            tls=self.workload.tls,
            rate=rate,
        )


@dataclass(frozen=True)
class Wrapping:
    """How a profiler wants the proxy to be started."""

    prefix: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@contextmanager
def staged(
    workload: Workload, index: int, setting: Setting, wrapping: Wrapping = Wrapping()
) -> Iterator[Stage]:
    """The contestant at `index` with its checked work; raises `Broken` when that is wrong."""
    contestant = workload.contestants[index]
    genuine = setting.tokens.tokens(workload.bits) if workload.bits else []
    with folder_in_memory() as folder:
        requests = warm_up = folder / "requests.txt"
        lines = request_lines(workload, index, setting.tokens.once() if workload.once else genuine)
        if workload.once:
            warm_up = folder / "warm-up.txt"
            share = len(lines) * ONCE_LENGTH[0] // sum(ONCE_LENGTH)
            warm_up.write_text("\n".join(lines[:share]) + "\n")
            lines = lines[share:]
        requests.write_text("\n".join(lines) + "\n")
        with (
            running_backend(folder) as backend,
            running_proxy(folder, contestant, setting, wrapping) as proxy,
        ):
            _call(folder).write_bytes(configurations.GRPC_MESSAGE)
            _check(workload, contestant, lines, genuine, folder)
            yield Stage(workload, backend, proxy, requests, warm_up)


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder for one run, where a log file costs what it costs the CPU and not the disk."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="portcullis-bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def running_backend(parent: Path, connections: int = configurations.CONNECTIONS):
    """The process id of the backend, on the load core."""
    folder = parent / "backend"
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(configurations.backend(folder, connections))
    command = ["/usr/sbin/nginx", "-c", str(file)]
    return running(command, LOAD_CORE, configurations.BACKEND_PORT, folder)


def running_proxy(
    parent: Path, contestant: Contestant, setting: Setting, wrapping: Wrapping = Wrapping()
):
    """The process id of the contestant, on the proxy core."""
    if executables(setting)[contestant.program] is None:
        raise Broken("not installed")
    folder = parent / "proxy"
    folder.mkdir()
    command = [*wrapping.prefix, *contestant.command(folder, setting)]
    output = folder / contestant.log_to if contestant.log_to else None
    return running(command, PROXY_CORE, PORT, folder, output, dict(wrapping.environment))


def _call(folder: Path) -> Path:
    """The body of every gRPC call."""
    return folder / "call"


def _check(
    workload: Workload, contestant: Contestant, lines: list[str], genuine: list[str], folder: Path
) -> None:
    """Proves with single requests that the contestant does what its row says."""
    path, _, token = lines[0].partition("\t")
    if workload.once:
        # A token that the run does not need.
        token = genuine[0]
    call = _call(folder) if workload.client is Client.GRPC else None
    h2 = workload.client in (Client.H2LOAD, Client.GRPC)

    def expect(path: str, token: str, status: int) -> bytes:
        return probes.await_answer(
            PORT, path, token, status, tls=workload.tls, h2=h2, call=call
        )

    answer = expect(path, token, workload.status)
    if call and configurations.GRPC_MESSAGE not in answer:
        raise Broken(f"a call was answered with {answer[-500:]!r}")
    if contestant.claims:
        expect(path, token, 401)
    if genuine and contestant.verifies:
        expect(path, tokens.tampered(token), 401)
        if contestant.program == "portcullis" and not contestant.claims and not call:
            verdict = expect("/verdict", token, 200)
            if verdict != b"verified":
                raise Broken(f"the backend was told {verdict!r} instead of verified")
