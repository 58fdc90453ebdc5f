"""SIGUSR2: a new binary takes the listeners over, proves that it serves, and only then the old one drains (pitfalls O11,
R14); a broken one changes nothing."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness.client import Connection, request
from harness.origin import Gate, wait_until
from harness.proxy import BINARY, free_port, route
from test_admin import address, begin, change, served, token_file  # noqa: F401
from test_systemd import Manager, environment, listening, port_of
from test_upstream_health import listen_at, named, names  # noqa: F401

TOOK_OVER = "upgrade: this process has taken over"
FAILED = "upgrade failed; this process serves on"
STARTS = "upgrade: a new process starts"


@pytest.fixture
def program(tmp_path) -> pathlib.Path:
    """A copy of the binary that a test may replace, as a package manager does: another file takes the name."""
    path = tmp_path / "bin" / "portcullis"
    path.parent.mkdir()
    replace(path)
    return path


def replace(path: pathlib.Path, script: str | None = None):
    """Puts another file where the program is: the same one again, or a shell script."""
    new = path.with_suffix(".new")
    if script is None:
        try:
            os.link(BINARY, new)
        except OSError:
            shutil.copy(BINARY, new)
    else:
        new.write_text("#!/bin/bash\n" + script)
        new.chmod(0o755)
    # rename(2) between two links of one file does nothing.
    path.unlink(missing_ok=True)
    new.rename(path)


def message(record: dict, text: str) -> bool:
    return record.get("msg") == text


def count(proxy, text: str) -> int:
    with proxy.changed:
        return sum(message(record, text) for record in proxy.records)


def upgrade(proxy) -> int:
    """One upgrade that must succeed; the new process's number."""
    before, failed, starts = count(proxy, TOOK_OVER), count(proxy, FAILED), count(proxy, STARTS)
    os.kill(proxy.pid, signal.SIGUSR2)
    # Two processes write to the log: the older line may come later.
    wait_until(lambda: count(proxy, TOOK_OVER) > before and count(proxy, STARTS) > starts or count(proxy, FAILED) > failed, "an upgrade")
    assert count(proxy, FAILED) == failed, proxy.output()
    with proxy.changed:
        started = [record for record in proxy.records if message(record, "upgrade: a new process starts")]
    proxy.adopt(int(started[-1]["pid"]))
    return proxy.pid


def is_alive(process: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def fails(proxy, *words: str):
    """One upgrade that must change nothing, and say these words."""
    before, old = proxy.metric("portcullis_upgrades_total", result="failure"), proxy.pid
    failed = count(proxy, FAILED)
    os.kill(old, signal.SIGUSR2)
    wait_until(lambda: count(proxy, FAILED) > failed, "the upgrade fails", within=15)
    proxy.expect_metric(before + 1, "portcullis_upgrades_total", result="failure")
    record = [record for record in list(proxy.records) if message(record, FAILED)][-1]
    for word in words:
        assert word in record["error"], record
    assert proxy.ask("GET", "/open/x").status == 200
    assert children(old) == [], "the new process is not gone, or not reaped"


def children(process: int) -> list[int]:
    return [int(word) for task in pathlib.Path(f"/proc/{process}/task").iterdir()
            for word in (task / "children").read_text().split()]


def ask_once(proxy, target: str = "/open/x"):
    return proxy.ask("GET", target, "Connection: close")


def test_O11_the_new_process_takes_over_and_the_old_one_ends_with_0(start, origin, program):
    proxy = start(origin, program=program)
    old = proxy.pid
    assert ask_once(proxy).status == 200
    replace(program)
    new = upgrade(proxy)
    assert new != old
    assert ask_once(proxy).status == 200
    assert proxy.admin("/readyz").status == 200
    proxy.wait_for_exit_of_earlier()
    assert proxy.metric("portcullis_upgrades_total", result="success") == 1
    # Its file is the new one, though the old process's name for it is "… (deleted)".
    assert os.path.samefile(f"/proc/{new}/exe", program)


def test_O11_several_upgrades_in_a_row_each_with_requests_on_the_way(start, origin, program):
    proxy = start(origin, program=program)
    origin.on("/open/slow", lambda exchange: (time.sleep(0.2), exchange.respond()))
    for number in range(4):
        replace(program)
        with proxy.connect() as busy, proxy.connect() as idle:
            assert idle.ask(request("GET", "/open/x")).status == 200
            busy.send(request("GET", "/open/slow"))
            origin.wait(lambda: sum(r.target == "/open/slow" for r in origin.requests) > number, "it arrives")
            upgrade(proxy)
            answer = busy.read_response()
            assert answer.status == 200 and answer.get("connection") == "close"
            # A connection that was used a moment ago may have the next request on its way.
            assert idle.ask(request("GET", "/open/x")).status == 200
    assert proxy.metric("portcullis_upgrades_total", result="success") == 4


def test_O11_who_waits_in_the_queue_is_served_whatever_the_number_of_loops(start, origin, program):
    proxy = start(origin, program=program, workers=3)
    text = proxy.config_path.read_text()
    for workers in (1, 4, 2):
        proxy.config_path.write_text(text.replace("workers = 3", f"workers = {workers}"))
        replace(program)
        connections = [socket.create_connection(("127.0.0.1", proxy.port), timeout=20) for _ in range(40)]
        upgrade(proxy)
        connections += [socket.create_connection(("127.0.0.1", proxy.port), timeout=20) for _ in range(40)]
        for connection in connections[20:]:
            connection.sendall(request("GET", "/open/x", "Connection: close"))
        for connection in connections[20:]:
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        for connection in connections:
            connection.close()


def test_socket_files_outlive_the_old_process_and_go_with_the_last(start, origin, program, tmp_path):
    path, admin = tmp_path / "listen.sock", tmp_path / "admin.sock"
    proxy = start(origin, program=program, ready=None, extra=f'[[listener]]\nlisten = "unix:{path}"\n')
    proxy.wait_until_ready()
    text = proxy.config_path.read_text()

    def ask(place: pathlib.Path, target: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(place))
            connection.sendall(request("GET", target, "Connection: close"))
            return connection.recv(100)

    for _ in range(2):
        replace(program)
        upgrade(proxy)
        proxy.wait_for_exit_of_earlier()
        assert ask(path, "/open/x").startswith(b"HTTP/1.1 200")
    # The admin listener moves to a file, and the listener that goes takes its file along.
    proxy.config_path.write_text(text.replace(f'listen = "127.0.0.1:{proxy.admin_port}"', f'listen = "unix:{admin}"')
                                 .replace(f'[[listener]]\nlisten = "unix:{path}"\n', ""))
    replace(program)
    upgrade(proxy)
    wait_until(lambda: not path.exists(), "the file of the listener that is gone")
    assert ask(admin, "/readyz").startswith(b"HTTP/1.1 200")
    replace(program)
    upgrade(proxy)
    assert ask(admin, "/readyz").startswith(b"HTTP/1.1 200")
    proxy.stop()
    assert not admin.exists()


BROKEN = {
    "no program": (None, ("cannot start", "No such file")),
    "not executable": ("chmod", ("cannot start", "Permission denied")),
    "no known format": ("garbage", ("cannot start", "Exec format error")),
    "exits": ("exit 3\n", ("exited 3",)),
    "crashes": ("kill -SEGV $$\n", ("was killed by signal 11",)),
    "hangs": ("exec sleep 100\n", ("not prepared in time",)),
    "knows no upgrades": ('exec {channel}>&-; eval "exec ${C}>&-"; exec sleep 100\n', ("closed its channel",)),
    "talks nonsense": ('echo hello >&"$C"; exec sleep 100\n', ("nonsense",)),
    "never serves": ('echo prepared >&"$C"; exec sleep 100\n', ("not serving in time",)),
    "dies at the last step": ('echo prepared >&"$C"; read <&"$C"; exit 4\n', ("exited 4",)),
    "does not answer": ('echo prepared >&"$C"; read <&"$C"; echo serving {3..40} >&"$C"; exec sleep 100\n',
                        ("does not answer /healthz",)),
}
FIND_CHANNEL = 'C=$(sed -n "s/^channel //p" <<<"$PORTCULLIS_HANDOVER")\n'


@pytest.mark.parametrize("kind", BROKEN)
def test_O11_a_broken_binary_changes_nothing(start, origin, program, kind):
    script, words = BROKEN[kind]
    proxy = start(origin, program=program, server='upgrade_timeout = "2s"')
    if script is None:
        program.unlink()
    elif script == "chmod":
        replace(program, "exit 0\n")
        program.chmod(0o644)
    elif script == "garbage":
        program.unlink()
        program.write_bytes(b"\x7fELF garbage")
        program.chmod(0o755)
    else:
        replace(program, FIND_CHANNEL + script)
    with proxy.connect() as kept:
        assert kept.ask(request("GET", "/open/x")).status == 200
        fails(proxy, *words)
        # Nothing was drained for it.
        assert kept.ask(request("GET", "/open/x")).get("connection") is None
    # And the next one, which is whole, is taken.
    replace(program)
    upgrade(proxy)


def test_a_broken_configuration_changes_nothing(start, origin, program):
    proxy = start(origin, program=program)
    text = proxy.config_path.read_text()
    proxy.config_path.write_text("nonsense")
    fails(proxy, "exited 1")
    taken = socket.create_server(("127.0.0.1", 0))
    proxy.config_path.write_text(
        text + f'[[listener]]\nlisten = "127.0.0.1:{taken.getsockname()[1]}"\n')
    fails(proxy, "cannot serve", "in use by another process")
    proxy.config_path.write_text(text)
    upgrade(proxy)


def test_the_new_process_must_have_the_keys_that_the_old_one_has(start, origin, program, key_server):
    proxy = start(origin, program=program, jwks=key_server.url, server='upgrade_timeout = "3s"')
    # The saved key set is enough: the key server need not be there.
    key_server.stop()
    upgrade(proxy)
    assert proxy.admin("/readyz").status == 200
    for saved in (proxy.folder / "state").glob("jwks-*"):
        saved.unlink()
    fails(proxy, "the keys of project")


def test_R14_claims_in_memory_are_not_left_behind(start, origin, program, once):
    routes = route("once", app_check="enforce", replay="enforce") + route("open", app_check="off")
    proxy = start(origin, program=program, routes=routes, extra='[replay]\nstore = "memory"\n')
    fails(proxy, 'store = "memory"')
    proxy.stop()


def test_R14_a_token_passes_once_over_any_number_of_upgrades(start, origin, program, once):
    routes = route("once", app_check="enforce", replay="enforce") + route("open", app_check="off")
    proxy = start(origin, program=program, routes=routes)
    token = once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    for _ in range(2):
        upgrade(proxy)
        assert proxy.ask("GET", "/once/x", token=token).status == 401
        fresh = once()
        assert proxy.ask("GET", "/once/x", token=fresh).status == 200
    # Another store would not know what this one has seen.
    proxy.config_path.write_text(proxy.config_path.read_text() + '[replay]\nstore = "memory"\n')
    fails(proxy, "claims tokens in another store")


def test_unhealthy_servers_stay_so(start, new_origin, origin, program):
    healthy, sick = new_origin(), new_origin()
    sick.on("/health", lambda exchange: exchange.respond(500))
    proxy = start(healthy, sick, program=program, upstream='''
balance = "round_robin"
health = { path = "/health", interval = "100ms", unhealthy_after = 2, healthy_after = 2 }
''')
    label = f"127.0.0.1:{sick.port}"
    proxy.expect_metric(0, "portcullis_upstream_server_healthy", server=label)
    proxy.config_path.write_text(proxy.config_path.read_text().replace('"100ms"', '"1h"'))
    upgrade(proxy)
    for _ in range(6):
        assert ask_once(proxy).status == 200
    assert not any(target.startswith("/open") for target in sick.targets())


def test_O7_what_an_operator_took_out_of_service_stays_so(begin, new_origin, program):  # noqa: F811
    first, second = new_origin(), new_origin()
    proxy = begin(first, second, program=program)
    assert change(proxy, address(first), "drain").status == 200
    for _ in range(2):
        upgrade(proxy)
        assert served(proxy, [first, second]) == [0, 20]
    assert change(proxy, address(first), "undrain").json()["changed"] is True
    assert all(served(proxy, [first, second]))


def test_addresses_of_names_stay_known_while_the_resolver_fails(start, origin, names, program):  # noqa: F811
    port = free_port()
    listener = listen_at("127.0.0.2", port)
    names.say(backend="127.0.0.2")
    try:
        proxy = start(origin, program=program, environment=names.environment, **named(port))
        assert proxy.ask("GET", "/named/x").body == b"127.0.0.2"
        names.say(backend="fail")
        for _ in range(2):
            upgrade(proxy)
            assert proxy.ask("GET", "/named/x").body == b"127.0.0.2"
    finally:
        listener.close()


# Signals on the way

def hanging(proxy, program):
    """An upgrade that waits for a process which says nothing; the process's number."""
    replace(program, "exec sleep 100\n")
    os.kill(proxy.pid, signal.SIGUSR2)
    return int(proxy.wait_for_record(
        lambda record: message(record, "upgrade: a new process starts"), "the new process starts")["pid"])


def test_SIGTERM_gives_the_upgrade_up(start, origin, program):
    proxy = start(origin, program=program)
    new = hanging(proxy, program)
    proxy.signal(signal.SIGTERM)
    assert proxy.wait_for_exit() == 0
    assert not is_alive(new)


def test_SIGHUP_waits_for_the_end_of_the_upgrade(start, origin, program):
    proxy = start(origin, program=program, server='upgrade_timeout = "2s"')
    hanging(proxy, program)
    proxy.config_path.write_text(proxy.config_path.read_text() + route("another", app_check="off"))
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: count(proxy, FAILED), "the upgrade fails")
    wait_until(lambda: count(proxy, "configuration reloaded"), "then it reloads")
    assert proxy.ask("GET", "/another/x").status == 200


def test_SIGHUP_reaches_the_new_process_when_the_upgrade_succeeds(start, origin, program):
    proxy = start(origin, program=program)
    # It reads the configuration before the signal, and is slow to begin.
    replace(program, f'cp "$3" "$3.before"; while [ ! -e "{program}.go" ]; do sleep 0.01; done; '
                     f'exec {BINARY} run -c "$3"\n')
    os.kill(proxy.pid, signal.SIGUSR2)
    proxy.wait_for_record(lambda record: message(record, "upgrade: a new process starts"), "it starts")
    proxy.signal(signal.SIGHUP)
    pathlib.Path(f"{program}.go").touch()
    wait_until(lambda: count(proxy, TOOK_OVER), "the upgrade succeeds")
    wait_until(lambda: count(proxy, "configuration reloaded"), "the new process reloads")
    proxy.adopt(int(next(record["pid"] for record in proxy.records
                         if message(record, "upgrade: a new process starts"))))


def test_SIGUSR2_during_an_upgrade_changes_nothing(start, origin, program):
    proxy = start(origin, program=program, server='upgrade_timeout = "2s"')
    hanging(proxy, program)
    proxy.signal(signal.SIGUSR2)
    wait_until(lambda: count(proxy, "an upgrade is under way; the signal changes nothing"), "a warning")
    wait_until(lambda: count(proxy, FAILED), "the upgrade fails")
    assert count(proxy, "upgrade: a new process starts") == 1


def test_SIGHUP_to_the_old_process_does_not_end_it_while_it_drains(start, origin, program):
    proxy = start(origin, program=program)
    old, gate = proxy.pid, Gate()
    origin.on("/open/slow", lambda exchange: (gate.wait(), exchange.respond()))
    with proxy.connect() as busy:
        busy.send(request("GET", "/open/slow"))
        origin.wait(lambda: origin.requests, "the request arrives")
        upgrade(proxy)
        for number in (signal.SIGHUP, signal.SIGUSR2):
            os.kill(old, number)
        wait_until(lambda: count(proxy, "a signal changes nothing any more") == 2, "both are noted")
        gate.open()
        assert busy.read_response().status == 200
    proxy.wait_for_exit_of_earlier()


# The service manager

def test_O10_the_manager_hears_of_the_new_main_process_from_the_old_one(start, origin, program, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    # Meant for the first process: the manager watches whoever is the main one.
    proxy = start(origin, program=program, environment=environment(
        manager, WATCHDOG_USEC="200000"), prelude="export WATCHDOG_PID=$$")
    manager.wait(WATCHDOG="1")
    new = upgrade(proxy)
    manager.wait(MAINPID=f"^{new}$")
    manager.wait(2, READY="1", STATUS="^serving 7 routes")
    kinds = [name for entry in manager.messages for name in ("READY", "MAINPID", "STOPPING") if name in entry]
    # The old one says nothing of its end: it would be taken for the service's.
    assert kinds == ["READY", "MAINPID", "READY"]
    proxy.wait_for_exit_of_earlier()
    fed = manager.count("WATCHDOG")
    manager.wait(fed + 2, WATCHDOG="1")
    manager.close()


def test_O10_passed_sockets_are_passed_on(start, origin, program, tmp_path):
    path = tmp_path / "passed.sock"
    with listening() as sock, listening(path) as file, listening() as admin:
        proxy = start(origin, program=program, port=port_of(sock), admin_port=port_of(admin),
                      extra=f'[[listener]]\nlisten = "unix:{path}"\n',
                      sockets=[("", sock), ("", file), ("admin", admin)])
        for _ in range(2):
            upgrade(proxy)
            assert ask_once(proxy).status == 200
        proxy.stop()
        assert path.is_socket()


def test_a_stray_handover_is_an_error(start, origin):
    for text in ("nonsense", "process 1\nchannel 9\ndeadline 1"):
        proxy = start(origin, ready=None, environment={"PORTCULLIS_HANDOVER": text})
        proxy.expect_failure("PORTCULLIS_HANDOVER")


def test_nothing_but_what_is_meant_is_inherited(start, origin, program):
    proxy = start(origin, program=program)
    with proxy.connect() as kept:
        assert kept.ask(request("GET", "/open/x")).status == 200
        new = upgrade(proxy)

        def sockets() -> int:
            found = 0
            for name in pathlib.Path(f"/proc/{new}/fd").iterdir():
                try:
                    found += os.readlink(name).startswith("socket:")
                except OSError:
                    pass
            return found

        # Two loops' listeners and the admin listener; the channel is closed, and so is what the old process asked.
        wait_until(lambda: sockets() == 3, "three sockets, and no other")
