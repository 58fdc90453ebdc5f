"""What a service manager sees and gives: notices (sd_notify), sockets (sd_listen_fds), and the units (pitfall O10)."""

import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness.client import request
from harness.origin import Gate, wait_until
from harness.proxy import BINARY, ROOT, free_port

UNITS = ROOT / "deploy/systemd"
ANOTHER_ROUTE = '[[route]]\nname = "another"\npath = "/another/*"\nupstream = "api"\napp_check = "off"\n'


class Manager:
    """The socket that a service manager listens on for notices; `messages` are the fields of each."""

    def __init__(self, name: str):
        self.variable = name
        self.messages: list[dict[str, str]] = []
        self.changed = threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name[0] == "@" else name)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def close(self):
        # A datagram of our own: closing a socket does not wake who reads it.
        self.socket.sendto(b"end", self.socket.getsockname())
        self.reader.join()
        self.socket.close()

    def _read(self):
        while data := self.socket.recv(65536):
            if data == b"end":
                return
            lines = data.decode().rstrip("\n").split("\n")
            with self.changed:
                self.messages.append(dict(line.split("=", 1) for line in lines))
                self.changed.notify_all()

    def wait(self, count: int = 1, within: float = 15, **fields: str) -> dict[str, str]:
        """The message number `count` in which these fields match these patterns."""

        def found():
            return [message for message in self.messages if all(
                re.search(pattern, message.get(name, "\n")) for name, pattern in fields.items())]

        with self.changed:
            assert self.changed.wait_for(lambda: len(found()) >= count, within), (fields, self.messages)
            return found()[count - 1]

    def count(self, name: str) -> int:
        with self.changed:
            return sum(name in message for message in self.messages)


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    name = str(tmp_path / "notify") if request.param == "path" else f"@portcullis-test-{os.getpid()}-{tmp_path.name}"
    manager = Manager(name)
    yield manager
    manager.close()


def environment(manager: Manager, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.variable, **more}


# Notices

def test_O10_ready_is_said_when_requests_are_served(start, origin, manager):
    proxy = start(origin, ready=None, environment=environment(manager))
    message = manager.wait(READY="^1$")
    # Said once, and not a moment too soon.
    assert proxy.ask("GET", "/open/x").status == 200
    assert message["STATUS"].startswith("serving 7 routes on ") and f"127.0.0.1:{proxy.port}" in message["STATUS"]
    assert manager.count("READY") == 1 and manager.count("WATCHDOG") == 0


def test_O10_a_reload_is_said_from_its_beginning_to_its_end(start, origin, manager):
    proxy = start(origin, environment=environment(manager))
    manager.wait(READY="1")
    before = time.monotonic_ns() // 1000
    proxy.config_path.write_text(proxy.config_path.read_text() + ANOTHER_ROUTE)
    proxy.signal(signal.SIGHUP)
    manager.wait(READY="1", STATUS="^serving 8 routes")
    begun = manager.wait(RELOADING="1")
    assert before <= int(begun["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert proxy.ask("GET", "/another/x").status == 200
    # A broken file: ready again, by what was there before, and the operator reads why.
    proxy.config_path.write_text("nonsense")
    proxy.signal(signal.SIGHUP)
    manager.wait(READY="1", STATUS="last reload failed.*serving 8 routes")
    assert manager.count("RELOADING") == 2
    kinds = [name for message in manager.messages for name in ("READY", "RELOADING") if name in message]
    assert kinds == ["READY", "RELOADING", "READY", "RELOADING", "READY"]


def test_O3_a_drain_is_said_and_asks_for_time(start, origin, manager):
    proxy = start(origin, environment=environment(manager))
    gate = Gate()
    origin.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond()))
    with proxy.connect() as busy:
        busy.send(request("GET", "/open/slow"))
        origin.wait(lambda: origin.requests, "the request arrives")
        proxy.signal(signal.SIGTERM)
        message = manager.wait(STOPPING="1")
        assert re.match(r"draining 1 connection, (29|30) s left", message["STATUS"])
        assert int(message["EXTEND_TIMEOUT_USEC"]) >= 5_000_000
        # As long as it takes: each notice extends the time only from then on.
        manager.wait(3, STOPPING="1", EXTEND_TIMEOUT_USEC=r"^\d{7,}$")
        gate.open()
        assert busy.read_response().status == 200
    assert proxy.wait_for_exit() == 0


def test_a_start_that_fails_leaves_its_reason(start, origin, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        proxy = start(origin, ready=None, port=taken.getsockname()[1], environment=environment(manager))
        proxy.expect_failure()
    manager.wait(STATUS="cannot start: .*in use")
    assert manager.count("READY") == 0


def test_a_manager_that_does_not_answer_keeps_nothing_from_being_served(start, origin, tmp_path):
    proxy = start(origin, environment={"NOTIFY_SOCKET": str(tmp_path / "nowhere")})
    assert proxy.ask("GET", "/open/x").status == 200
    proxy.wait_for_record(lambda record: record.get("msg") == "the service manager was not told", "a warning")


class StoppedThread:
    """One thread of a process, stopped as a debugger does it (ptrace(2)): a loop that hangs."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, process: int, name: str):
        tasks = pathlib.Path(f"/proc/{process}/task").iterdir()
        self.thread = next(int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)
        self.ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __enter__(self):
        if self.ptrace(self.SEIZE, self.thread, None, None) != 0:
            pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
        assert self.ptrace(self.INTERRUPT, self.thread, None, None) == 0
        os.waitpid(self.thread, self.WALL)

    def __exit__(self, *_):
        self.ptrace(self.DETACH, self.thread, None, None)


def test_O10_the_watchdog_is_fed_until_a_loop_hangs(start, origin, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    proxy = start(origin, environment=environment(manager, WATCHDOG_USEC="400000"))
    before = time.monotonic()
    manager.wait(6, WATCHDOG="1")
    # Each 200 ms, half of the limit; a machine that is busy is slower, never faster.
    assert time.monotonic() - before > 0.5
    with StoppedThread(proxy.process.pid, "worker 1"):
        fed = manager.count("WATCHDOG")
        with manager.changed:
            manager.changed.wait_for(lambda: False, timeout=1.5)
        # One may have been on its way.
        assert manager.count("WATCHDOG") <= fed + 1
        assert proxy.admin("/healthz").status == 200
    manager.wait(manager.count("WATCHDOG") + 2, WATCHDOG="1")


def test_a_watchdog_of_another_process_is_left_alone(start, origin, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    proxy = start(origin, environment=environment(manager, WATCHDOG_USEC="20000", WATCHDOG_PID="1"))
    for _ in range(5):
        assert proxy.ask("GET", "/open/x").status == 200
    assert manager.count("WATCHDOG") == 0


# Sockets

def listening(address: str | pathlib.Path = "127.0.0.1", port: int | None = None) -> socket.socket:
    """A socket as a socket unit opens it; without port, one of the tests' own."""
    if isinstance(address, pathlib.Path):
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(address))
        sock.listen(64)
        return sock
    return socket.create_server((address, port or free_port()), backlog=64)


def port_of(sock: socket.socket) -> int:
    return sock.getsockname()[1]


def test_O10_a_passed_socket_serves_who_connected_before_the_start_and_after(start, origin):
    with listening() as sock:
        early = socket.create_connection(sock.getsockname(), timeout=20)
        early.sendall(request("GET", "/open/early", "Connection: close"))
        proxy = start(origin, port=port_of(sock), sockets=[("portcullis.socket", sock)])
        assert early.recv(100).startswith(b"HTTP/1.1 200")
        assert proxy.ask("GET", "/open/x").status == 200
        # A restart: nobody is refused in between, and who came then is served by the next process.
        proxy.stop()
        between = socket.create_connection(sock.getsockname(), timeout=20)
        between.sendall(request("GET", "/open/between", "Connection: close"))
        start(origin, port=port_of(sock), sockets=[("portcullis.socket", sock)])
        assert between.recv(100).startswith(b"HTTP/1.1 200")


def test_O10_sockets_of_systemd_itself_are_taken(start, origin):
    """Its own little program for this, that waits for the first connection and then becomes the proxy."""
    if not shutil.which("systemd-socket-activate"):
        pytest.skip("systemd is not installed")
    proxy = start(origin)
    proxy.stop()
    with subprocess.Popen(
            ["systemd-socket-activate", f"--listen=127.0.0.1:{proxy.port}", f"--listen=127.0.0.1:{proxy.admin_port}",
             "--fdname=listener-1:admin", BINARY, "run", "-c", proxy.config_path],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_answered(proxy), "a request is answered")
            assert proxy.admin("/readyz").status in (200, 503)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


def is_answered(proxy) -> bool:
    try:
        return proxy.ask("GET", "/open/x").status == 200
    except OSError:
        return False


def test_O2_a_reload_keeps_passed_sockets_also_without_their_listener(start, origin):
    with listening() as sock, listening() as other:
        extra = f'[[listener]]\nlisten = "127.0.0.1:{port_of(other)}"\n'
        proxy = start(origin, port=port_of(sock), extra=extra, sockets=[("", sock), ("", other)])
        whole = proxy.config_path.read_text()
        proxy.config_path.write_text(whole.replace(extra, ""))
        proxy.signal(signal.SIGHUP)
        proxy.wait_for_record(lambda record: f"127.0.0.1:{port_of(other)}" in record.get("socket", ""), "a warning")
        waiting = socket.create_connection(other.getsockname(), timeout=20)
        waiting.sendall(request("GET", "/open/waiting", "Connection: close"))
        assert proxy.ask("GET", "/open/x").status == 200
        proxy.config_path.write_text(whole)
        proxy.signal(signal.SIGHUP)
        assert waiting.recv(100).startswith(b"HTTP/1.1 200")


def test_loops_share_one_passed_socket(start, origin):
    with listening() as sock:
        proxy = start(origin, port=port_of(sock), workers=3, sockets=[("", sock)])
        connections = [proxy.connect() for _ in range(60)]
        for connection in connections:
            assert connection.ask(request("GET", "/open/x")).status == 200
        for connection in connections:
            connection.close()


def test_sockets_are_matched_by_name_where_addresses_differ(start, origin):
    with listening() as first, listening() as second, listening() as admin:
        proxy = start(
            origin, ready=None, port=1, extra='[[listener]]\nlisten = "127.0.0.2:1"\n',
            sockets=[("admin", admin), ("listener-2", second), ("listener-1", first)])
        proxy.admin_port = port_of(admin)
        proxy.wait_until_ready()
        for sock in (first, second):
            proxy.port = port_of(sock)
            assert proxy.ask("GET", "/open/x").status == 200


def test_a_passed_socket_file_is_left_in_place(start, origin, tmp_path):
    path = tmp_path / "passed.sock"
    with listening(path) as sock, listening() as admin:
        proxy = start(origin, extra=f'[[listener]]\nlisten = "unix:{path}"\n', admin_port=port_of(admin),
                      sockets=[("a", sock), ("b", admin)])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(path))
            connection.sendall(request("GET", "/open/x"))
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        proxy.stop()
        assert path.is_socket()


def test_a_passed_socket_without_a_listener_is_an_error(start, origin):
    with listening() as sock, listening() as stray:
        proxy = start(origin, ready=None, port=port_of(sock), sockets=[("", sock), ("web", stray)])
        proxy.expect_failure(
            f"127.0.0.1:{port_of(stray)} (web)", "listener-1", "admin", f"127.0.0.1:{port_of(sock)}")


def test_a_passed_descriptor_that_does_not_listen_is_an_error(start, origin):
    with socket.socket() as sock:
        proxy = start(origin, ready=None, sockets=[("web", sock)])
        proxy.expect_failure("descriptor 3 (web)", "ListenStream=")


def test_sockets_that_were_passed_to_another_process_are_left_alone(start, origin):
    with listening() as stray:
        proxy = start(origin, sockets=[("web", stray)], environment={"PASSED_TO": "1"})
        assert proxy.ask("GET", "/open/x").status == 200


# Units

def analyze(*arguments) -> str:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def unit(tmp_path) -> pathlib.Path:
    """The units with a program that exists here: verify looks for it."""
    for name in ("portcullis.service", "portcullis.socket"):
        text = (UNITS / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/bin/portcullis", "/usr/bin/env portcullis"))
    return tmp_path / "portcullis.service"


def test_O10_systemd_finds_nothing_wrong_with_the_units(unit):
    # It warns about what it ignores, and still ends with 0.
    output = analyze("verify", "--man=no", unit, unit.with_suffix(".socket"))
    assert "portcullis" not in output, output


def test_O9_systemd_finds_the_service_hardly_exposed(unit):
    output = analyze("security", "--offline=true", "--threshold=20", unit)
    assert float(re.search(r"exposure level for portcullis.service: ([\d.]+)", output)[1]) < 2


def test_the_user_and_the_folders_are_what_systemd_makes(tmp_path):
    if not (shutil.which("systemd-sysusers") and shutil.which("systemd-tmpfiles")):
        pytest.skip("systemd is not installed")
    (tmp_path / "etc").mkdir()
    for program, name in (("systemd-sysusers", "sysusers"), ("systemd-tmpfiles", "tmpfiles")):
        arguments = ["--create"] if name == "tmpfiles" else []
        done = subprocess.run([program, f"--root={tmp_path}", *arguments, UNITS / f"portcullis.{name}"],
                              capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
    entry = next(line for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("portcullis:"))
    assert entry.endswith(":/var/lib/portcullis:/usr/sbin/nologin")
    assert (tmp_path / "var/lib/portcullis").stat().st_mode & 0o777 == 0o700


def allowed_calls() -> set[str]:
    """What the unit's SystemCallFilter= leaves."""
    groups: dict[str, list[str]] = {}
    for line in analyze("syscall-filter", "--no-pager").splitlines():
        if re.match("@", line):
            members = groups[line.strip()] = []
        elif line.strip() and not line.strip().startswith("#"):
            members.append(line.strip())

    def expand(name: str) -> set[str]:
        return set().union(*map(expand, groups[name])) if name in groups else {name}

    allowed: set[str] = set()
    for line in (UNITS / "portcullis.service").read_text().splitlines():
        if line.startswith("SystemCallFilter="):
            words = line.split("=", 1)[1]
            calls = set().union(*map(expand, words.lstrip("~").split()))
            allowed = allowed - calls if words.startswith("~") else allowed | calls
    return allowed


def test_O9_the_proxy_calls_nothing_that_the_unit_forbids(start, origin, key_server, mint, tmp_path):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    allowed = allowed_calls()
    assert "read" in allowed and "ptrace" not in allowed
    proxy = start(origin, jwks=key_server.url, ready=None, extra='[replay]\nstore = "file"\n', routes='''
[[route]]
name = "once"
path = "/*"
upstream = "api"
app_check = "monitor"
replay = "monitor"
''')
    trace = tmp_path / "trace"
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", trace, "-p", str(proxy.process.pid)],
                              stderr=subprocess.PIPE, text=True)
    try:
        proxy.wait_until_ready()
        assert proxy.ask("GET", "/x", token=mint()).status == 200
        proxy.signal(signal.SIGHUP)
        proxy.wait_for_record(lambda record: record.get("msg") == "configuration reloaded", "the reload")
        proxy.stop()
    finally:
        error = tracer.communicate(timeout=20)[1]
    if "ptrace" in error:
        pytest.skip(f"strace is not allowed here: {error}")
    lines = trace.read_text().splitlines()
    called = {match[1] for line in lines if (match := re.match(r"\d+ +(?:<\.\.\. )?(\w+)[( ]", line))}
    assert "epoll_wait" in called and len(called) > 15, called
    assert called - allowed == set()
    # MemoryDenyWriteExecute.
    assert not [line for line in lines if "PROT_WRITE|PROT_EXEC" in line]
