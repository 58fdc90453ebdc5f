"""The seam through which tests answer for the kernel is in debug builds alone (docs/decisions/0070-simulation.md)."""

import os
import pathlib
import subprocess

import pytest

from harness import proxy as proxies

ROOT = pathlib.Path(__file__).parents[2]
RELEASE = ROOT / ".build" / "release" / "portcullis"


def look_at(binary) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "scripts" / "seam.sh", binary], capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(b"PORTCULLIS_FAULTS" not in proxies.BINARY.read_bytes(), reason="not a debug build")
def test_the_check_finds_the_seam_of_a_debug_build():
    found = look_at(proxies.BINARY)
    assert found.returncode == 1, found
    for found_so in ["part  $s7Reactor", "use   <$s7Reactor8Syscalls", "name  PORTCULLIS_FAULTS"]:
        assert found_so in found.stderr, found


def optimised_builds():
    return [path for path in {RELEASE, pathlib.Path(os.environ.get("PORTCULLIS", RELEASE))}
            if path.exists() and path.absolute().parent.name == "release"]


@pytest.mark.skipif(not optimised_builds(), reason="no optimised build")
def test_an_optimised_build_has_none():
    for binary in optimised_builds():
        found = look_at(binary)
        assert found.returncode == 0, found


def test_a_stripped_program_is_not_taken_for_a_clean_one(tmp_path):
    stripped = tmp_path / "portcullis"
    subprocess.run(["strip", "-o", stripped, proxies.BINARY], check=True)
    found = look_at(stripped)
    assert found.returncode == 2 and "stripped" in found.stderr, found
