"""Portcullis as a process: its configuration, its life, its logs and its metrics."""

import ctypes
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading

from prometheus_client.parser import text_string_to_metric_families

from . import client, tokens
from .origin import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = pathlib.Path(os.environ.get("PORTCULLIS", ROOT / ".build/debug/portcullis")).absolute()

# Free ports outside the range that the kernel gives to outgoing connections, one holder each: every port has a
# lock file that its process keeps open, so that test runs side by side never hand out the same one.
_FIRST_PORT, _LAST_PORT = 12000, 30000
_held_locks = []
_next_port = _FIRST_PORT + os.getpid() % 1000 * 17


def free_port() -> int:
    """A port on loopback that nobody listens on and no other test gets."""
    global _next_port
    folder = pathlib.Path(tempfile.gettempdir()) / f"portcullis-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    while True:
        port = _next_port
        _next_port = _FIRST_PORT if port >= _LAST_PORT else port + 1
        lock = open(folder / str(port), "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            socket.create_server(("127.0.0.1", port), reuse_port=False).close()
        except OSError:
            lock.close()
            continue
        _held_locks.append(lock)
        return port


PROJECT = f'''
[project.production]
number = "{tokens.NUMBER}"
id = "{tokens.PROJECT_ID}"
jwks = "@JWKS@"
apps = {{ ios = "{tokens.IOS}", android = "{tokens.ANDROID}" }}
'''

PROJECTS = PROJECT + f'''
[project.other]
number = "{tokens.OTHER_NUMBER}"
id = "{tokens.OTHER_PROJECT_ID}"
jwks = "@JWKS@"
apps = {{ other_ios = "{tokens.OTHER_IOS}" }}
'''


def route(name: str, *, path: str | None = None, upstream: str = "api", **settings) -> str:
    """One [[route]]; everything under its own name unless it has a `path`. A mapping becomes an inline table."""

    def written(value) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {json.dumps(item)}" for key, item in value.items()) + " }"
        return json.dumps(value)

    lines = {"name": name, "path": path or f"/{name}/*", "upstream": upstream} | settings
    return "\n[[route]]\n" + "".join(f"{key} = {written(value)}\n" for key, value in lines.items())


ROUTES = "".join((
    route("enforced", projects=["production"], app_check="enforce"),
    route("monitored", projects=["production"], app_check="monitor"),
    route("open", app_check="off"),
    route("forwarding", app_check="enforce", forward_token=True),
    route("ios-only", path="/ios/*", projects=["production"], apps=["ios"], app_check="enforce"),
    route("ios-monitored", projects=["production"], apps=["ios"], app_check="monitor"),
    route("browser", projects=["production"], app_check="enforce",
          cors={"allow_origins": ["https://app.example.com"]})))


def configuration(*, port: int, admin_port: int, servers: list[int], state: pathlib.Path,
                  jwks: str, projects: str = PROJECTS, routes: str = ROUTES, upstream: str = "",
                  listener: str = "", server: str = "", log: str = "", admin: str = "", extra: str = "",
                  workers: int = 2) -> str:
    """A whole `proxy.conf`. Each text goes into the table of its name; `extra` stands at the end."""
    addresses = ", ".join(f'"127.0.0.1:{number}"' for number in servers)
    return f'''
[server]
workers = {workers}
state_directory = "{state}"
{server}

[log]
level = "debug"
{log}

[admin]
listen = "127.0.0.1:{admin_port}"
{admin}

[[listener]]
listen = "127.0.0.1:{port}"
{listener}

{projects.replace("@JWKS@", jwks)}

[upstream.api]
servers = [{addresses}]
{upstream}

{routes}
{extra}
'''


def passing(sockets: list[tuple[str, socket.socket]], command: list) -> tuple[list, list[int]]:
    """A command line with these sockets as its descriptors from 3 on (sd_listen_fds(3)), and the descriptors that it
    needs for that. The shell is there to know the process's own number."""
    # High numbers, so that none of them is a place of another one.
    descriptors = [fcntl.fcntl(sock, fcntl.F_DUPFD_CLOEXEC, 200) for _, sock in sockets]
    moves = " ".join(f"{3 + place}<&{number} {number}<&-" for place, number in enumerate(descriptors))
    names = ":".join(name for name, _ in sockets)
    script = (f'export LISTEN_PID=${{PASSED_TO:-$$}} LISTEN_FDS={len(sockets)} LISTEN_FDNAMES={names}; '
              f'exec "$0" "$@" {moves}')
    return ["bash", "-c", script, *command], descriptors


class Portcullis:
    """One running proxy. `lines` is everything that it wrote, on either stream."""

    def __init__(self, folder: pathlib.Path, config: str, *, port: int, admin_port: int,
                 environment: dict[str, str] | None = None, sockets: list[tuple[str, socket.socket]] = (),
                 program: pathlib.Path = BINARY, prelude: str | None = None):
        """`sockets` are passed as a service manager does it, under these names. `prelude` is a line of shell that runs
        in the same process first."""
        self.folder, self.port, self.admin_port = folder, port, admin_port
        self.config_path = folder / "proxy.conf"
        self.config_path.write_text(config)
        # Reentrant: what waits on it reads through methods that take it too.
        self.changed = threading.Condition(threading.RLock())
        self.lines: list[str] = []
        self.records: list[dict] = []
        command, passed = [program, "run", "-c", self.config_path], []
        if sockets:
            command, passed = passing(sockets, command)
        if prelude:
            command = ["bash", "-c", prelude + '; exec "$0" "$@"', *command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | (environment or {}), pass_fds=passed)
        if program != BINARY:
            self.adopt_orphans()
        # The process that serves: another one after an upgrade.
        self.pid = self.process.pid
        # Those that served before it, and how they ended.
        self.earlier: list[int] = []
        self._ended: dict[int, int] = {}
        for descriptor in passed:
            os.close(descriptor)
        self._readers = [threading.Thread(target=self._read, args=(pipe,), daemon=True)
                         for pipe in (self.process.stdout, self.process.stderr)]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe):
        for raw in pipe:
            line = raw.decode("utf-8", "backslashreplace").rstrip("\n")
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            with self.changed:
                self.lines.append(line)
                if isinstance(record, dict):
                    self.records.append(record)
                self.changed.notify_all()

    # Life

    def wait_until_ready(self, path: str = "/readyz"):
        """Waits for 200 from the admin listener; a process that ended instead fails with what it wrote."""

        def is_ready():
            assert self.process.poll() is None, f"exited {self.process.returncode}:\n" + self.output()
            try:
                return self.admin(path).status == 200
            except (OSError, client.Closed):
                return False

        wait_until(is_ready, f"{path} answers 200; output so far:\n{self.output()}")
        return self

    def signal(self, number: signal.Signals):
        if self.pid == self.process.pid:
            self.process.send_signal(number)
        else:
            os.kill(self.pid, number)

    @staticmethod
    def adopt_orphans():
        """A process that takes over is a child of this one when the one that started it has ended."""
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)

    def adopt(self, process: int):
        """Another process has taken over."""
        self.earlier.append(self.pid)
        self.pid = process

    def wait_for_exit_of_earlier(self, within: float = 20):
        """Every process before the one that serves must end with 0."""
        for process in self.earlier:
            assert self._exit_of(process, within) == 0, f"{process} exited {self._exit_of(process, 0)}"

    def _exit_of(self, process: int, within: float) -> int:
        if process == self.process.pid:
            return self.process.wait(within)

        def has_ended() -> bool:
            try:
                number, status = os.waitpid(process, os.WNOHANG)
            except ChildProcessError:
                # Its parent, which has not ended yet, may have reaped it: then it never served.
                return False
            if number:
                self._ended[process] = os.waitstatus_to_exitcode(status)
            return bool(number)

        if process not in self._ended:
            try:
                wait_until(has_ended, f"the end of process {process}", within)
            except AssertionError:
                raise subprocess.TimeoutExpired("portcullis", within) from None
        return self._ended[process]

    def wait_for_exit(self, within: float = 20) -> int:
        code = self._exit_of(self.pid, within)
        for reader in self._readers:
            reader.join(within)
        return code

    def expect_failure(self, *words: str):
        """It must end by itself with 1, and say these words."""
        assert self.wait_for_exit(15) == 1, self.output()
        for word in words:
            assert word in self.output(), self.output()
        # So that `stop` takes this end for a good one; what it looks for in the output still counts.
        self.process.returncode = 0

    def stop(self):
        """SIGTERM must end it with 0, and nothing that it ever wrote may hold a token."""
        metrics = ""
        if self.is_alive():
            try:
                metrics = self.admin("/metrics").body.decode()
            except (OSError, client.Closed):
                pass
            self.signal(signal.SIGTERM)
        try:
            self.wait_for_exit_of_earlier()
            code = self.wait_for_exit()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("SIGTERM did not end the proxy:\n" + self.output()) from None
        output = self.output()
        assert code == 0, f"exited {code}:\n{output}"
        for text, name in ((output, "output"), (metrics, "metrics")):
            for token in tokens.minted:
                for secret in tokens.secrets_of(token):
                    assert secret not in text, f"a token is in the {name} (pitfall O5): {secret}"

    def kill(self):
        """Ends it without any check, when its test has already failed or ended it."""
        if self.pid != self.process.pid and self.pid not in self._ended:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def is_alive(self) -> bool:
        """Whether the process that serves runs."""
        return self.process.poll() is None if self.pid == self.process.pid else self.pid not in self._ended

    # What it says

    def output(self) -> str:
        with self.changed:
            return "\n".join(self.lines)

    def access(self) -> list[dict]:
        """The access log so far: one record a request."""
        with self.changed:
            return [record for record in self.records if record.get("msg") == "request"]

    def wait_for_record(self, condition, what: str, within: float = 10) -> dict:
        """The first record, access or not, for which `condition` holds."""
        found = []

        def look():
            found[:] = [record for record in self.records if condition(record)]
            return found

        with self.changed:
            assert self.changed.wait_for(look, within), (
                f"no log line: {what}; output:\n" + "\n".join(self.lines[-20:]))
        return found[0]

    def access_of(self, path: str, index: int = 0) -> dict:
        """The access record number `index` of those for a path."""

        def matches():
            return [record for record in self.access() if record["target"].split("?")[0] == path]

        with self.changed:
            assert self.changed.wait_for(lambda: len(matches()) > index, 10), (
                f"no access line for {path}; output:\n" + "\n".join(self.lines[-20:]))
            return matches()[index]

    def admin(self, path: str, method: str = "GET") -> client.Response:
        return client.ask(self.admin_port, method, path, host="localhost")

    def metrics(self) -> dict[tuple, float]:
        """Every sample: (name, ((label, value), …)) to its value."""
        text = self.admin("/metrics").body.decode()
        return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in text_string_to_metric_families(text) for sample in family.samples}

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of one name that carry these labels."""
        return sum(value for (sample, pairs), value in self.metrics().items()
                   if sample == name and labels.items() <= dict(pairs).items())

    def expect_metric(self, value: float, name: str, **labels: str):
        """Waits for a sum of samples: a request is counted when it has ended, which its client may see sooner."""
        latest = []

        def look() -> bool:
            latest.append(self.metric(name, **labels))
            return latest[-1] == value

        try:
            wait_until(look, name, within=5)
        except AssertionError:
            raise AssertionError(f"{name}{labels} is {latest[-1]}, not {value}") from None

    # What it holds

    def resident_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    # Talking to it

    def connect(self, **options) -> client.Connection:
        return client.Connection(self.port, **options)

    def ask(self, method: str = "GET", target: str = "/", *fields: str, **options) -> client.Response:
        return client.ask(self.port, method, target, *fields, **options)
