"""A process that crashes says so: one line in the log, with addresses that lead to a place in the source."""

import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

import pytest

from harness.proxy import BINARY, ROOT

SYS_TGKILL = 234
CRASH = pathlib.Path(__file__).parent / "crash"


@pytest.fixture(autouse=True, scope="module")
def no_cores():
    """Every test here ends a process by a signal whose default is a core."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def crashed(proxy) -> int:
    """The signal that ended it; its test's end takes that for a good one."""
    code = proxy.wait_for_exit()
    proxy.process.returncode = 0
    return -code


def symbols(binary: pathlib.Path, addresses: list[str]) -> str:
    """What README says about looking addresses up."""
    return subprocess.run(["addr2line", "-f", "-e", binary, *addresses], capture_output=True, text=True, check=True,
                          timeout=120).stdout


def kill_thread(process: int, name: str, number: signal.Signals):
    """Sends a signal to the thread of this name."""
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            assert ctypes.CDLL(None, use_errno=True).syscall(SYS_TGKILL, process, int(task.name), int(number)) == 0
            return
    raise AssertionError(f"no thread {name}")


@pytest.mark.parametrize("number, thread", [
    (signal.SIGSEGV, "portcullis"), (signal.SIGBUS, "worker 0"), (signal.SIGILL, "worker 1"),
    (signal.SIGTRAP, "portcullis"), (signal.SIGABRT, "worker 0"), (signal.SIGFPE, "log")])
def test_a_crash_leaves_one_line_and_ends_the_process_by_the_signal(start, origin, number, thread):
    proxy = start(origin, environment={"SWIFT_BACKTRACE": "enable=no"})
    assert proxy.ask("GET", "/open/x").status == 200
    proxy.access_of("/open/x")
    kill_thread(proxy.process.pid, thread, number)
    assert crashed(proxy) == number
    crashes = [record for record in proxy.records if record["msg"] == "the process crashed"]
    assert len(crashes) == 1, proxy.output()
    crash = crashes[0]
    assert (crash["level"], crash["signal"], crash["thread"]) == ("error", number.name, thread)
    assert (crash["pid"], crash["sent_by_pid"]) == (proxy.process.pid, os.getpid())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", crash["ts"])
    version = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert crash["version"] == version
    frames = crash["frames"].split()
    assert len(frames) > 3 and all(re.fullmatch(r"(\S+\+)?0x[0-9a-f]+", frame) for frame in frames)
    # The line was the last one: everything behind it would be from a process that does not know it is dead.
    assert proxy.records[-1] == crash


def test_frames_lead_to_the_source(start, origin):
    proxy = start(origin, environment={"SWIFT_BACKTRACE": "enable=no"})
    kill_thread(proxy.process.pid, "worker 0", signal.SIGSEGV)
    crashed(proxy)
    frames = proxy.records[-1]["frames"].split()
    addresses = [frame.split("+")[1] for frame in frames if frame.startswith("portcullis+")]
    found = symbols(BINARY, addresses)
    # A loop that has nothing to do waits in epoll_wait.
    assert "epollWait" in found and "EventLoop" in found, found
    if BINARY.parent.name == "debug":
        assert re.search(r"Syscalls\.swift:\d+", found), found


def test_the_line_has_the_format_of_the_log(start, origin):
    proxy = start(origin, log='format = "text"', environment={"SWIFT_BACKTRACE": "enable=no"})
    proxy.signal(signal.SIGSEGV)
    crashed(proxy)
    assert re.fullmatch(
        r'ts=\S+ level=error msg="the process crashed" signal=SIGSEGV sent_by_pid=\d+ thread="portcullis" '
        r'thread_id=\d+ pid=\d+ version=\S+ frames="[^"]+"', proxy.output().splitlines()[-1])


@pytest.fixture(scope="module")
def crasher(tmp_path_factory):
    """Builds the program that crashes on demand; with `broken`, one whose unwinder crashes too."""
    compiler = shutil.which("clang") or shutil.which("cc")
    folder = tmp_path_factory.mktemp("crash")
    source = ROOT / "Sources/CPlatform"

    def build(*options: str) -> pathlib.Path:
        program = folder / f"crasher{len(options)}"
        if not program.exists():
            subprocess.run([compiler, "-g", "-O1", "-pthread", f"-I{source}/include", *options, CRASH / "main.c",
                            source / "CrashLine.c", "-o", program], check=True, timeout=120)
        return program

    return build


def crash(program: pathlib.Path, way: str, form: str = "json") -> tuple[int, str]:
    done = subprocess.run([program, way, form], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return -done.returncode, done.stdout


@pytest.mark.parametrize("way, number, address, place", [
    ("null", signal.SIGSEGV, "0x40", "write_to_nothing"), ("abort", signal.SIGABRT, None, "main"),
    ("divide", signal.SIGFPE, ..., "main"), ("trap", signal.SIGILL, ..., "main"),
    ("nowhere", signal.SIGSEGV, "0x1234", None), ("stack", signal.SIGSEGV, ..., "overflow"),
    ("thread", signal.SIGSEGV, ..., "overflow")])
def test_real_crashes_are_told(crasher, way, number, address, place):
    program = crasher()
    code, text = crash(program, way)
    assert code == number and text.count("\n") == 1
    told = json.loads(text)
    assert told["signal"] == number.name and "sent_by_pid" not in told
    if address is not ...:
        assert told.get("address") == address
    frames = told["frames"].split()
    if place is None:
        # Nobody can tell where it came from.
        assert frames == ["0x1234"]
        return
    addresses = [frame.split("+")[1] for frame in frames if frame.startswith(program.name + "+")]
    assert symbols(program, addresses).split("\n")[0] == place
    assert told["thread"] == ("odd _name__" if way == "thread" else program.name)


def test_several_threads_that_crash_at_once_leave_one_line(crasher):
    for _ in range(20):
        code, text = crash(crasher(), "many")
        assert code == signal.SIGSEGV and text.count("\n") == 1
        json.loads(text)


def test_a_crash_in_the_middle_of_a_line_begins_its_own(crasher):
    _, text = crash(crasher(), "half")
    first, second = text.splitlines()
    assert first == "half a li" and json.loads(second)["signal"] == "SIGSEGV"


def test_an_unwinder_that_crashes_costs_the_callers_alone(crasher):
    code, text = crash(crasher("-Dbacktrace=broken_backtrace"), "null")
    told = json.loads(text)
    assert code == signal.SIGSEGV and text.count("\n") == 1
    assert (told["signal"], told["address"]) == ("SIGSEGV", "0x40")
    assert re.fullmatch(r"crasher1\+0x[0-9a-f]+", told["frames"])


def test_a_log_that_nobody_reads_sends_the_line_to_standard_error(crasher):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, bytes(4096))
    except BlockingIOError:
        pass
    done = subprocess.run([crasher(), "null", "json"], stdout=write_end, stderr=subprocess.PIPE, timeout=60)
    os.close(read_end)
    os.close(write_end)
    assert json.loads(done.stderr)["signal"] == "SIGSEGV"


def test_a_line_as_text_quotes_what_has_spaces(crasher):
    _, text = crash(crasher(), "null", "text")
    assert re.fullmatch(r'ts=\S+ level=error msg="the process crashed" signal=SIGSEGV address=0x40 '
                        r'thread="crasher0" thread_id=\d+ pid=\d+ version=1\.2\.3 frames="crasher0\+0x[0-9a-f]+ .*"\n', text)
