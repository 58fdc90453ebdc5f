"""The Debian package: what is in it, and what installing and removing it does. All in folders, not on this machine."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness.proxy import BINARY, ROOT

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "strip"))), reason="dpkg-dev is not installed")


def run(*command, **options) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def make(folder: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(run(ROOT / "scripts/deb.sh", "--development", BINARY, folder).strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> pathlib.Path:
    return make(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def tree(package, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("tree")
    run("dpkg-deb", "-x", package, folder)
    return folder


def test_the_version_is_that_of_the_program(package):
    version = run(BINARY, "--version").split()[-1]
    assert run("dpkg-deb", "-f", package, "Version").strip() == version
    assert package.name == f"portcullis_{version}_{run('dpkg', '--print-architecture').strip()}.deb"


def test_it_depends_on_the_libraries_of_the_program(package):
    dependencies = run("dpkg-deb", "-f", package, "Depends")
    for name in ("libc6", "libssl3", "libnghttp2-14", "liblmdb0", "libhiredis0.14", "libstdc++6"):
        assert re.search(rf"(^|, ){re.escape(name)} \(>= ", dependencies), dependencies
    assert "ca-certificates" in dependencies


def test_O9_the_image_has_the_libraries_too_and_nothing_else(package):
    needed = {word.split()[0] for word in run("dpkg-deb", "-f", package, "Depends").split(", ")}
    image = (ROOT / "Dockerfile").read_text().split("FROM debian")[1]
    installed = set(re.search(r"--no-install-recommends ([^\\]*)", image)[1].split())
    # Debian's base image has these two, and no need of systemd.
    assert installed == needed - {"libc6", "libgcc-s1", "systemd"}


def test_every_file_is_where_debian_has_it(tree):
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    assert files == {
        "etc/portcullis/proxy.conf", "lib/systemd/system/portcullis.service", "lib/systemd/system/portcullis.socket",
        "usr/bin/portcullis", "usr/lib/sysusers.d/portcullis.conf", "usr/lib/tmpfiles.d/portcullis.conf",
        "usr/share/man/man1/portcullis.1.gz", "usr/share/lintian/overrides/portcullis",
        *(f"usr/share/doc/portcullis/{name}" for name in (
            "README.md", "changelog.gz", "copyright", "examples/notify-reload.conf", "examples/proxy.conf.example"))}


def test_the_program_and_the_configuration_of_the_package_work(tree):
    program = tree / "usr/bin/portcullis"
    assert run(program, "--version") == run(BINARY, "--version")
    assert "everything-else" in run(program, "check", "-c", tree / "etc/portcullis/proxy.conf")


def test_the_manual_page_has_every_command(tree):
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    page = run("man", "--warnings", "-E", "UTF-8", "-l", tree / "usr/share/man/man1/portcullis.1.gz")
    commands = re.findall(r"^  (\w+) ", run(BINARY, "--help"), re.MULTILINE)
    assert {"run", "check", "explain"} <= set(commands)
    for command in commands:
        assert re.search(rf"^ +{command}\b", page, re.MULTILINE), command


def test_the_same_source_gives_the_same_package(package, tmp_path):
    assert make(tmp_path).read_bytes() == package.read_bytes()


def test_lintian_finds_nothing(package):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    # A program that was built for tests is linked against the toolchain's folder.
    found = run("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", "custom-library-search-path",
                package)
    assert found.strip() == ""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can install, even into a folder")
def test_it_is_installed_and_purged(package, tmp_path):
    if not shutil.which("systemd-sysusers"):
        pytest.skip("systemd is not installed")
    (tmp_path / "etc").mkdir()
    for name in ("info", "updates", "triggers"):
        (tmp_path / "var/lib/dpkg" / name).mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").touch()
    # The scripts run outside of the folder, which has no shell, and know it as DPKG_ROOT.
    dpkg = ("dpkg", f"--root={tmp_path}", "--force-script-chrootless", "--force-depends")
    run(*dpkg, "-i", package)
    assert "install ok installed" in run(*dpkg, "-s", "portcullis")
    assert "/etc/portcullis/proxy.conf" in run("dpkg-query", f"--root={tmp_path}", "-W", "-f=${Conffiles}", "portcullis")
    assert run(*dpkg, "--verify", "portcullis") == ""
    entry = next(line for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("portcullis:"))
    user, group = map(int, entry.split(":")[2:4])
    folder, state = (tmp_path / "etc/portcullis").stat(), (tmp_path / "var/lib/portcullis").stat()
    # The service may read its secrets, and nobody else.
    assert (folder.st_uid, folder.st_gid, folder.st_mode & 0o777) == (0, group, 0o750)
    assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (user, group, 0o700)
    # Not enabled: it would serve an example.
    assert not list((tmp_path / "etc").rglob("*.wants"))

    # What an operator changed outlives an upgrade and a removal, and goes with a purge.
    configuration = tmp_path / "etc/portcullis/proxy.conf"
    configuration.write_text("# ours\n")
    run(*dpkg, "--force-confold", "-i", package)
    run(*dpkg, "--remove", "portcullis")
    assert configuration.read_text() == "# ours\n" and not (tmp_path / "usr/bin/portcullis").exists()
    run(*dpkg, "--purge", "portcullis")
    assert not configuration.exists() and not (tmp_path / "var/lib/portcullis").exists()
