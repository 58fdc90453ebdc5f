"""Who may connect to a `unix:` address: whom the umask lets in, from the first moment on, and nobody else."""

import os
import pathlib
import shutil
import socket
import stat
import subprocess
import tempfile

import pytest

from harness.client import Connection, request
from test_operations import reload
from test_upgrade import program, replace, upgrade  # noqa: F401

NOBODY = 65534


@pytest.fixture
def folder():
    """Where everybody may look, unlike in a test's own folder."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="portcullis-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def mode(path: pathlib.Path) -> str:
    status = path.stat()
    assert stat.S_ISSOCK(status.st_mode)
    return oct(stat.S_IMODE(status.st_mode))


def listener(path: pathlib.Path) -> str:
    return f'\n[[listener]]\nlisten = "unix:{path}"\n'


def serves(path: pathlib.Path) -> bool:
    with Connection(str(path)) as connection:
        return connection.ask(request("GET", "/open/x")).status == 200


def may_connect(path: pathlib.Path, group: int) -> bool:
    """Whether a process of another user, which is in this group, may."""
    code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    result = subprocess.run(["python3", "-c", code, path], user=NOBODY, group=group, extra_groups=[],
                            capture_output=True, text=True, cwd="/")
    assert result.returncode == 0 or "PermissionError" in result.stderr, result.stderr
    return result.returncode == 0


@pytest.mark.parametrize("umask, expected, admits_group, admits_others", [
    ("022", "0o755", False, False), ("077", "0o700", False, False), ("007", "0o770", True, False),
    ("000", "0o777", True, True)])
def test_the_umask_says_who_may_connect(
        start, origin, program, folder, umask, expected, admits_group, admits_others):  # noqa: F811
    first, added, admin = paths = [folder / name for name in ("first.sock", "added.sock", "admin.sock")]
    proxy = start(origin, program=program, prelude=f"umask {umask}", extra=listener(first))
    # What a reload opens is no different, nor what the process of an upgrade does.
    text = proxy.config_path.read_text() + listener(added)
    reload(proxy, text, added.exists)
    proxy.config_path.write_text(text.replace(f'"127.0.0.1:{proxy.admin_port}"', f'"unix:{admin}"'))
    upgrade(proxy)
    proxy.wait_for_exit_of_earlier()
    proxy.admin_port = str(admin)
    assert proxy.admin("/readyz").status == 200
    assert serves(first) and serves(added)
    for path in paths:
        assert mode(path) == expected
        if os.getuid() == 0:
            assert may_connect(path, group=path.stat().st_gid) == admits_group
            assert may_connect(path, group=NOBODY) == admits_others


def test_a_changed_mode_lasts_until_the_file_is_another_one(start, origin, program, folder):  # noqa: F811
    path = folder / "listen.sock"
    proxy = start(origin, program=program, prelude="umask 077", extra=listener(path))
    path.chmod(0o660)
    reload(proxy, proxy.config_path.read_text(), lambda: serves(path))
    assert mode(path) == "0o660"
    replace(program)
    upgrade(proxy)
    proxy.wait_for_exit_of_earlier()
    assert serves(path) and mode(path) == "0o660"
    # Nor is a file taken for a wish that a dead process left behind.
    left = folder / "left.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    left.chmod(0o666)
    reload(proxy, proxy.config_path.read_text() + listener(left), lambda: mode(left) != "0o666")
    assert serves(left) and mode(left) == "0o700"
