"""What the Debian package does to a service that runs when a new version is installed: the new program takes over by
SIGUSR2, and no connection is lost (pitfall O11). Its script runs as it is, with a service manager of our own."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from harness.client import request
from harness.origin import wait_until
from harness.proxy import ROOT, route
from test_upgrade import FAILED, children, count, program, replace  # noqa: F401

SCRIPT = ROOT / "deploy/debian/postinst"
TOOLS = {
    "systemctl": r"""
        case "$*" in
        "--system daemon-reload") ;;
        "--quiet is-active portcullis.service") [ "$(cat MainPID)" != 0 ] ;;
        "show --property=MainPID --value portcullis.service") cat MainPID ;;
        "show --property=StatusText --value portcullis.service") cat StatusText ;;
        "kill --kill-whom=main --signal=SIGUSR2 portcullis.service") kill -USR2 "$(cat MainPID)" ;;
        *) exit 64 ;;
        esac""",
    "deb-systemd-invoke": "echo \"$*\" >>invoked",
    "systemd-sysusers": ":",
    "systemd-tmpfiles": ":",
    "chgrp": ":",
    "chmod": ":",
    "policy-rc.d": "[ ! -e forbidden ] || exit 101",
}


class Manager:
    """Believes what the main process says of the service, and nobody else (NotifyAccess=main), as systemd does."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.variable = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(self.variable)
        self.main = 0
        self.proxy = None
        self.set("MainPID", "0")
        self.set("StatusText", "")
        for name, text in TOOLS.items():
            path = folder / "tools" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\necho \"{name} $*\" >>'{folder}/asked'\ncd '{folder}'\n{text}\n")
            path.chmod(0o755)
        (folder / "systemd").mkdir()
        # As on a machine that systemd has booted.
        text = SCRIPT.read_text()
        assert "/run/systemd/system" in text
        self.script = folder / "postinst"
        self.script.write_text(text.replace("/run/systemd/system", str(folder / "systemd")))
        threading.Thread(target=self.read, daemon=True).start()

    def set(self, name: str, value: str):
        new = self.folder / f"{name}.new"
        new.write_text(value + "\n")
        new.rename(self.folder / name)

    def read(self):
        while True:
            data, controls, _, _ = self.socket.recvmsg(65536, 256)
            if data == b"end":
                return
            sender = struct.unpack("iii", controls[0][2])[0]
            fields = dict(line.split("=", 1) for line in data.decode().splitlines())
            if self.main and sender != self.main:
                continue
            self.main = int(fields.get("MAINPID", sender))
            self.set("MainPID", str(self.main))
            if "STATUS" in fields:
                self.set("StatusText", fields["STATUS"])

    def close(self):
        self.socket.sendto(b"end", self.variable)
        # What took over in a test that failed then is known to nobody else.
        if self.proxy and self.main != self.proxy.pid:
            with contextlib.suppress(OSError):
                os.kill(self.main, signal.SIGKILL)

    def install(self, *arguments: str, patience: int | None = None) -> str:
        """Runs the script; what it says."""
        if patience:
            self.script.write_text(self.script.read_text().replace("patience=75", f"patience={patience}"))
        done = subprocess.run(["sh", self.script, *arguments], capture_output=True, text=True, timeout=60,
                              env={"PATH": f"{self.folder}/tools:{os.environ['PATH']}"})
        assert done.returncode == 0 and done.stdout == "", done
        return done.stderr

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    @property
    def restarts(self) -> list[str]:
        return self.lines("invoked")


@pytest.fixture
def manager(tmp_path):
    (tmp_path / "manager").mkdir()
    manager = Manager(tmp_path / "manager")
    yield manager
    manager.close()


@pytest.fixture
def service(start, origin, program, manager):  # noqa: F811
    def begin(**settings):
        proxy = start(origin, program=program, environment={"NOTIFY_SOCKET": manager.variable}, **settings)
        wait_until(lambda: manager.main == proxy.pid, "the manager knows the service")
        manager.proxy = proxy
        return proxy
    return begin


class Clients:
    """Ask all the time, each its own way; `failures` is what went wrong for them."""

    def __init__(self, proxy):
        self.proxy, self.failures, self.answers = proxy, [], 0
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(kept,)) for kept in (True, False) * 3]

    def run(self, kept: bool):
        connection = None
        while not self.ended.is_set():
            try:
                connection = connection or self.proxy.connect()
                answer = connection.ask(request("GET", "/open/x", *(() if kept else ("Connection: close",))))
                assert answer.status == 200
                self.answers += 1
                if answer.get("connection") == "close":
                    connection.close()
                    connection = None
            except Exception as failure:  # noqa: BLE001
                self.failures.append(repr(failure))
                connection = None

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: self.answers > 50, "clients are at it")
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def test_O11_an_upgrade_of_the_package_loses_no_connection(service, manager, program):  # noqa: F811
    proxy = service()
    old = proxy.pid
    with proxy.connect() as idle, Clients(proxy) as clients:
        assert idle.ask(request("GET", "/open/x")).status == 200
        for _ in range(3):
            replace(program)
            before = manager.main
            assert manager.install("configure", "0.0.9") == ""
            assert manager.main != before
            count_before = clients.answers
            wait_until(lambda: clients.answers > count_before + 50, "clients go on")
    assert clients.failures == []
    assert manager.restarts == [] and manager.main != old
    assert os.path.samefile(f"/proc/{manager.main}/exe", program)
    proxy.adopt(manager.main)
    assert proxy.metric("portcullis_upgrades_total", result="success") == 3


@pytest.mark.parametrize("script", ["exit 3\n", "exec sleep 100\n"], ids=["exits", "hangs"])
def test_O11_a_package_with_a_broken_program_changes_nothing(service, manager, program, script):  # noqa: F811
    proxy = service(server='upgrade_timeout = "1s"')
    with Clients(proxy) as clients:
        # Twice: what the first attempt left in the status must not be taken for the second one's end.
        for attempt in (1, 2):
            replace(program, script)
            said = manager.install("configure", "0.0.9")
            assert f"still serves: upgrade attempt {attempt} failed: " in said and "journalctl" in said
            # Ended by what was said, not by being out of patience, and once the attempt was over.
            wait_until(lambda: count(proxy, FAILED) == attempt, "the log says so, too", within=2)
            assert children(proxy.pid) == []
    assert clients.failures == []
    assert manager.main == proxy.pid and manager.restarts == []
    replace(program)
    assert manager.install("configure", "0.0.9") == ""
    assert manager.main != proxy.pid
    proxy.adopt(manager.main)


def test_O11_a_configuration_that_the_new_version_does_not_like_changes_nothing(service, manager, program):  # noqa: F811
    proxy = service()
    text = proxy.config_path.read_text()
    proxy.config_path.write_text("nonsense")
    assert "upgrade attempt 1 failed: the new process exited 1" in manager.install("configure", "0.0.9")
    assert manager.main == proxy.pid and manager.restarts == []
    assert proxy.ask("GET", "/open/x").status == 200
    proxy.config_path.write_text(text)


def test_R14_a_service_that_cannot_hand_over_is_restarted(service, manager):
    routes = route("once", app_check="enforce", replay="enforce") + route("open", app_check="off")
    service(routes=routes, extra='[replay]\nstore = "memory"\n')
    assert manager.install("configure", "0.0.9") == ""
    assert manager.restarts == ["try-restart portcullis.service"]


def test_a_process_that_says_nothing_is_not_waited_for_endlessly(service, manager):
    proxy = service()
    proxy.signal(signal.SIGSTOP)
    begin = time.monotonic()
    assert "no other has taken over within 1 s" in manager.install("configure", "0.0.9", patience=1)
    assert time.monotonic() - begin < 20
    assert manager.restarts == []
    proxy.signal(signal.SIGCONT)
    wait_until(lambda: manager.main != proxy.pid, "it takes over later")
    proxy.adopt(manager.main)


def test_a_service_that_is_not_to_be_touched_is_not(service, manager):
    proxy = service()
    # The first installation, and a machine whose policy forbids it.
    assert manager.install("configure") == ""
    (manager.folder / "forbidden").touch()
    assert manager.install("configure", "0.0.9") == ""
    assert manager.main == proxy.pid and manager.restarts == []
    assert not any("kill" in line for line in manager.lines("asked"))
    assert "policy-rc.d portcullis.service restart" in manager.lines("asked")
    # One that does not run.
    (manager.folder / "forbidden").unlink()
    manager.set("MainPID", "0")
    assert manager.install("configure", "0.0.9") == ""
    assert manager.restarts == [] and not any("kill" in line for line in manager.lines("asked"))
