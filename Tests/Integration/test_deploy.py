"""deploy/two-instances: the example that operators start from, run as its README says."""

import os
import pathlib
import re
import shutil
import subprocess
import threading
from types import SimpleNamespace

import pytest

from harness import client
from harness.client import request
from harness.origin import wait_until
from harness.proxy import BINARY, ROOT, Portcullis, free_port
from harness.replay import statuses_of_copies
from judging import assert_rejected

FOLDER = ROOT / "deploy/two-instances"
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("redis-server", "redis-cli", "haproxy", "curl"))), reason="not installed: make setup")


class Example:
    """run.sh on ports of its own, with what it printed."""

    def __init__(self):
        self.ports = {name: free_port() for name in (
            "A_PORT", "B_PORT", "A_ADMIN_PORT", "B_ADMIN_PORT", "REDIS_PORT", "FRONT_PORT")}
        self.a, self.b, self.front = (
            SimpleNamespace(port=self.ports[name]) for name in ("A_PORT", "B_PORT", "FRONT_PORT"))
        self.lines: list[str] = []
        environment = os.environ | {name: str(port) for name, port in self.ports.items()}
        self.process = subprocess.Popen(
            [FOLDER / "run.sh"], env=environment | {"PORTCULLIS": str(BINARY)}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: self._has_ended() or any("Ctrl-C" in line for line in self.lines),
                   "run.sh starts everything", within=60)
        assert self.process.poll() is None, self.output()
        self.folder = pathlib.Path(re.search(r"logs are in (\S+)", self.output())[1])

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def _has_ended(self) -> bool:
        return self.process.poll() is not None

    def output(self) -> str:
        return "\n".join(self.lines)

    def printed(self, part: str) -> list[str]:
        """The lines to paste that have this in them."""
        found = [line.strip() for line in self.lines if part in line and not line.strip().startswith("#")]
        assert found, f"{part} is not in:\n{self.output()}"
        return found

    def paste(self, line: str) -> str:
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=30).stdout

    def token(self) -> str:
        """A limited-use token, got by the printed line."""
        line = self.printed("ONCE=$(")[0]
        return self.paste(f'{line}; echo "$ONCE"').strip()

    def redis(self, *words: str, user: str = "default") -> str:
        name = {"default": "redis-admin-password", "portcullis": "redis-password"}[user]
        password = (self.folder / "secrets" / name).read_text()
        return subprocess.run(
            ["redis-cli", "-p", str(self.ports["REDIS_PORT"]), "--user", user, "--pass", password,
             "--no-auth-warning", *words], capture_output=True, text=True, timeout=20).stdout.strip()

    def stop_redis(self):
        process = int((self.folder / "redis.pid").read_text())
        self.paste(self.printed("kill $(cat")[0])
        wait_until(lambda: not pathlib.Path(f"/proc/{process}/exe").exists(), "Redis has ended")

    def start_redis(self):
        self.paste(self.printed("redis.conf)")[0])

    def ask(self, instance, target: str, token: str | None = None) -> client.Response:
        return client.ask(instance.port, "GET", target, token=token)

    def expect_fresh_tokens_to_pass(self):
        """Both instances are connected, and their Redis vouches for new tokens, on every loop."""
        streak = []

        def passes() -> bool:
            streak.append({self.ask(instance, "/transfers/again", self.token()).status
                           for instance in (self.a, self.b)})
            return streak[-6:] == [{200}] * 6

        wait_until(passes, "new tokens pass", within=45)

    def end(self):
        self.process.terminate()
        assert self.process.wait(40) == 0, self.output()


@pytest.fixture(scope="module")
def running():
    example = Example()
    try:
        example.expect_fresh_tokens_to_pass()
        yield example
    finally:
        pids = [*children_of(example.process.pid), (example.folder / "redis.pid").read_text().strip()]
        example.end()
    # Nothing is left behind.
    assert not example.folder.exists()
    assert len(pids) >= 5
    assert not [pid for pid in pids if pathlib.Path(f"/proc/{pid}/exe").exists()]


@pytest.fixture
def example(running):
    running.expect_fresh_tokens_to_pass()
    return running


def children_of(pid: int) -> list[str]:
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_R2_a_token_that_one_instance_accepted_is_refused_by_the_other(example):
    for first, second in ((example.a, example.b), (example.b, example.a)):
        token = example.token()
        assert example.ask(first, "/transfers/1", token).status == 200
        assert_rejected(example.ask(second, "/transfers/1", token), "token_already_used")
        assert_rejected(example.ask(example.front, "/transfers/1", token), "token_already_used")


def test_the_first_printed_lines_do_what_they_say(example):
    lines = [line for line in example.printed("curl") if "/transfers/1" in line]
    answers = example.paste("\n".join([example.printed("ONCE=$(")[0], *lines]))
    assert [line.split()[1] for line in answers.splitlines() if line.startswith("HTTP/")] == ["200", "401"]
    assert '"token_already_used"' in answers


def test_R2_two_hundred_copies_over_both_instances_pass_once(example):
    for number in range(3):
        data = request("GET", f"/transfers/{number}", token=example.token())
        assert statuses_of_copies([example.a, example.b], data, connections=20) == {200: 1, 401: 199}


def test_the_front_uses_both_instances(example):
    for _ in range(4):
        assert example.ask(example.front, "/through-the-front").status == 200
    for name in ("a", "b"):
        log = example.folder / f"{name}.log"
        # The log is written behind the answers.
        wait_until(lambda: "/through-the-front" in log.read_text(), f"instance {name} gets its share")


def test_R11_without_redis_only_the_protected_route_is_503_and_all_is_well_when_it_is_back(example):
    used = example.token()
    assert example.ask(example.a, "/transfers/1", used).status == 200
    example.stop_redis()
    for instance in (example.a, example.b, example.front):
        assert_rejected(example.ask(instance, "/transfers/2", example.token()), "verification_unavailable", 503)
        assert example.ask(instance, "/elsewhere").status == 200
    before = children_of(example.process.pid)

    example.start_redis()
    example.expect_fresh_tokens_to_pass()
    assert children_of(example.process.pid) == before, "something was started again"
    # Redis has forgotten it: it is refused because it is older than that memory, and then because it is in it.
    for instance in (example.a, example.b):
        assert example.ask(instance, "/transfers/1", used).status in (401, 503)
    assert_rejected(example.ask(example.b, "/transfers/1", used), "token_already_used")


def test_R9_the_user_may_do_what_the_store_does_and_nothing_else(example):
    # A third instance, whose backend cannot be reached, takes its claims back.
    port, admin_port = free_port(), free_port()
    text = (example.folder / "a.conf").read_text()
    text = text.replace(str(example.a.port), str(port)).replace(str(example.ports["A_ADMIN_PORT"]), str(admin_port))
    text = re.sub(r'servers = \[.*\]', f'servers = ["127.0.0.1:{free_port()}"]', text)
    folder = example.folder / "third"
    folder.mkdir()
    (folder / "secrets").symlink_to(example.folder / "secrets")
    third = Portcullis(folder, text, port=port, admin_port=admin_port).wait_until_ready()
    try:
        token = example.token()
        answer = third.ask("GET", "/transfers/1", token=token)
        assert (answer.status, answer.json()["token"]) == (502, "unspent")
        assert example.ask(example.a, "/transfers/1", token).status == 200
        third.stop()
    finally:
        third.kill()

    assert example.redis("acl", "log") == "", "the store was refused something"
    for words in (["flushall"], ["keys", "*"], ["get", "other:key"], ["set", "other:key", "1"],
                  ["config", "get", "*"], ["shutdown"], ["eval", "return redis.call('get','other:key')", "0"]):
        answer = example.redis(*words, user="portcullis")
        assert "NOPERM" in answer or "No permissions" in answer or "can't access" in answer, answer
    example.redis("acl", "log", "reset")


def test_redis_is_set_up_as_the_example_says(example):
    for key, value in (("maxmemory-policy", "noeviction"), ("save", ""), ("appendonly", "no"),
                       ("maxmemory", str(256 << 20)), ("bind", "127.0.0.1"), ("protected-mode", "yes")):
        assert example.redis("config", "get", key) == f"{key}\n{value}".strip()


def test_a_claim_takes_no_more_memory_than_the_example_says(example):
    assert example.ask(example.a, "/transfers/1", example.token()).status == 200
    key = next(key for key in example.redis("--scan").splitlines() if "epoch" not in key)
    # What MEMORY USAGE leaves out are the two hash tables: 16 bytes a claim when full, 32 when just doubled.
    assert int(example.redis("memory", "usage", key)) + 32 <= 208
    # The life of the demo's tokens, the largest leeway, and the store's margin: five minutes each.
    assert 840 < int(example.redis("ttl", key)) <= 900


def test_every_file_is_right_as_it_is(tmp_path):
    folder = tmp_path / "two-instances"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("secrets"))
    subprocess.run([folder / "secrets.sh"], check=True)
    password = (folder / "secrets/redis-password").read_text()
    subprocess.run([folder / "secrets.sh"], check=True)
    assert (folder / "secrets/redis-password").read_text() == password, "made anew under running servers"
    configs = list(folder.glob("proxy*.conf"))
    assert configs
    for config in configs:
        done = subprocess.run([BINARY, "check", "-c", config], capture_output=True, text=True)
        assert done.returncode == 0 and password not in done.stdout + done.stderr, done.stderr
    subprocess.run(["haproxy", "-c", "-f", folder / "haproxy.cfg"], check=True)
    names = re.findall(r"\./[\w./-]+", (folder / "compose.yaml").read_text())
    assert {"./proxy.conf", "./haproxy.cfg"} <= set(names)
    for name in names:
        assert (folder / name).exists(), name
