"""Nights on call, in a minute: under load for the whole time, the configuration is read again, new binaries take over,
backends are killed and started, or stopped in the middle of anything, certificates are replaced, and the resolver fails,
hangs and names addresses where nobody listens.

The rules. **Nothing fails for a reload, an upgrade, a certificate or a name**: no connection is refused, no answer is cut,
delayed beyond its time-out, or another one's. What may fail is what the backends fail:

- Killed: a POST that it had was perhaps carried out, so that it is not sent again: 502. A stream or a WebSocket that it
  had begun ends. A GET is sent again to another one (`retries.idempotent`).
- Stopped: what it had, and what it gets until a check fails, waits for `timeouts.response_header`, then 504. Streams and
  WebSockets wait.

Besides: each answer is the one to its request; each request of a checker has exactly one line in the log; no POST is carried
out twice; a limited-use token is good for one request; every process that was taken over from exits with 0.

`make nights` has 50 reloads, 10 upgrades, 20 restarts and 6 stops, three times; an ordinary run is a tenth of one night.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
from collections import Counter

import pytest

from harness import tokens
from harness.certificates import Authority
from harness.origin import wait_until
from harness.proxy import PROJECT, Portcullis, configuration, free_port, route
from nights.clients import CHECKERS, H2Load, Wrk
from nights.events import HEADER_TIMEOUT, Backend, Events, Log, replace_program

IS_WHOLE = "NIGHTS" in os.environ
RUNS = int(os.environ.get("NIGHTS", "1"))
SIZE = {"reloads": 50, "upgrades": 10, "restarts": 20, "stops": 6} if IS_WHOLE else {
    "reloads": 6, "upgrades": 2, "restarts": 3, "stops": 1}

UPSTREAM = f'''
health = {{ path = "/healthz", interval = "1s", timeout = "1s", healthy_after = 1, unhealthy_after = 2 }}
retries = {{ attempts = 4, budget = "100%", idempotent = true }}
timeouts = {{ response_header = "{int(HEADER_TIMEOUT)}s" }}
'''


class Night:
    """One proxy, and after each upgrade the next, with everything around it."""

    def __init__(self, folder: pathlib.Path, seed: str, keys, key_file, resolver, backends: list[Backend]):
        self.seed, self.keys, self.backends = seed, keys, backends
        self.authority = Authority(folder)
        self.is_over = False
        self.folder = folder
        self.port, self.tls_port, self.admin_port, self.spare_port = (free_port() for _ in range(4))
        self.token = tokens.mint(keys.first, lifetime=7200)
        self.serials: dict[int, float] = {}
        self.seen: Counter = Counter()
        self.hosts = folder / "hosts"
        self.names("127.0.0.1")
        identity = self.new_certificate()
        servers = [backend.port for backend in self.backends]
        named = "\n".join(f'    "backend.test:{port}",' for port in servers)
        (folder / "state").mkdir()
        self.configuration = configuration(
            port=self.port, admin_port=self.admin_port, servers=servers, state=folder / "state", jwks=str(key_file),
            projects=PROJECT, upstream=UPSTREAM, listener='protocols = ["h2", "http/1.1"]', server='drain_timeout = "20s"',
            routes=route("enforced", app_check="enforce") + route("open", app_check="off")
            + route("once", app_check="enforce", replay="enforce") + route("named", app_check="off", upstream="named"),
            extra=f'''
[upstream.named]
servers = [
{named}
]
resolve_interval = "1s"
{UPSTREAM}
[[listener]]
listen = "127.0.0.1:{self.tls_port}"
tls = {{ certificates = [{identity.toml}] }}
''')
        self.config_path = folder / "proxy.conf"
        self.config_path.write_text(self.configuration)
        self.program = folder / "bin/portcullis"
        self.program.parent.mkdir()
        self.replace_program()
        # A file of which each process appends whole lines: two processes write to it at a time.
        self.log_path = folder / "log"
        with open(self.log_path, "ab") as output:
            self.process = subprocess.Popen(
                [self.program, "run", "-c", self.config_path], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=os.environ | {"LD_PRELOAD": str(resolver), "TEST_HOSTS": str(self.hosts)})
        Portcullis.adopt_orphans()
        self.pid, self.earlier = self.process.pid, []
        self.log = Log(self.log_path)
        self.log.start()
        self.log.wait(('"msg":"serving"',), 0, 60)

    def replace_program(self):
        replace_program(self.program)

    def names(self, answer: str):
        fresh = self.hosts.with_suffix(".fresh")
        fresh.write_text(f"backend.test {answer}\n")
        fresh.rename(self.hosts)

    def new_certificate(self):
        identity = self.authority.issue("api.example.test", file=f"night-{self.port}", replace=True)
        self.serials[identity.serial] = time.time()
        return identity

    def saw(self, certificate: bytes):
        from cryptography import x509
        self.seen[x509.load_der_x509_certificate(certificate).serial_number] += 1

    def stop(self) -> dict[int, int]:
        """Ends the last process; how each of them ended."""
        os.kill(self.pid, signal.SIGTERM)
        codes = {}

        def ended(process: int) -> bool:
            if process == self.process.pid:
                codes[process] = self.process.poll()
                return codes[process] is not None
            try:
                number, status = os.waitpid(process, os.WNOHANG)
            except ChildProcessError:
                return False
            codes[process] = os.waitstatus_to_exitcode(status)
            return number != 0

        for process in [*self.earlier, self.pid]:
            wait_until(lambda: ended(process), f"the end of process {process}", within=40)
        self.log.is_over = True
        self.log.join(30)
        return codes

    def clean_up(self):
        self.is_over = True
        for process in [*self.earlier, self.pid]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass


@pytest.fixture
def backends(tmp_path):
    made = [Backend(tmp_path) for _ in range(3)]
    yield made
    for backend in made:
        backend.process.send_signal(signal.SIGCONT)
        backend.die()


@pytest.fixture
def night(tmp_path, keys, key_file, resolver, backends, request):
    night = Night(tmp_path, str(request.param), keys, key_file, resolver, backends)
    yield night
    night.clean_up()


def is_allowed(events: Events, kind: str, status: int, began: float, ended: float) -> bool:
    """The rules, for one failure that a client saw, or that the log has."""
    # What a backend had may be noticed a time-out later; clocks and log lines are a moment late.
    met = {what for what, begin, end in events.windows if began <= end + HEADER_TIMEOUT + 1 and ended >= begin - 0.1}
    if status == 504:
        return "stop" in met
    # Also before its answer began: the handshake of a WebSocket is not sent twice.
    ends = {"post": (502,), "stream": (0, 200), "websocket": (0, 101, 502)}
    return "restart" in met and status in ends.get(kind, ())


def kind_of(target: str) -> str:
    parts = target.split("/c/")
    return parts[1].split("-")[0] if len(parts) > 1 else target.split("/")[-1]


@pytest.mark.timeout(900 if IS_WHOLE else 240)
@pytest.mark.parametrize("night", range(RUNS), indirect=True)
def test_nights_under_load_lose_nothing(night):
    began = time.monotonic()
    checkers = [cls(night, number) for cls, count in CHECKERS for number in range(count)]
    for checker in checkers:
        checker.start()
    events = Events(night, **SIZE)
    loads = [H2Load(night)]
    # wrk has a length of its own; one run after the other, for as long as it takes.
    wrks: list[Wrk] = []

    def keep_loading():
        while not night.is_over:
            wrks.append(Wrk(night.port, 5, night.token).end())

    wrk = threading.Thread(target=keep_loading, daemon=True)
    wrk.start()
    events.run()
    night.is_over = True
    wrk.join(60)
    for checker in checkers:
        checker.join(60)
    for load in loads:
        load.end()
    took = time.monotonic() - began
    assert events.errors == [], events.errors
    metrics = metric_of(night)
    codes = night.stop()

    print(f"\n{took:.0f} s: {events.counts}")
    verdict = judge(night, events, checkers, wrks, loads)
    print(verdict)
    assert set(codes.values()) == {0}, codes
    # Every process but the first took another one's place.
    assert metrics == SIZE["upgrades"] == len(night.earlier)
    assert_posts_once(night)
    assert_one_line_each(night, checkers)
    assert set(night.seen) <= set(night.serials) and len(night.seen) > 1, "certificates that nobody put there, or only one"
    assert verdict["forbidden"] == []


def metric_of(night) -> float:
    from harness.client import ask
    text = ask(night.admin_port, "GET", "/metrics", host="localhost").body.decode()
    return float(re.search(r'^portcullis_upgrades_total\{result="success"\} (\d+)', text, re.M)[1])


def judge(night, events, checkers, wrks, loads) -> dict:
    """What failed, and what of it the rules do not allow."""
    forbidden: list[str] = []
    allowed = Counter()
    for checker in checkers:
        for failure in checker.failures:
            if is_allowed(events, failure.kind, failure.status, failure.began, failure.ended):
                allowed[f"{failure.kind} {failure.status}"] += 1
            else:
                forbidden.append(str(failure))
    logged = Counter()
    for line in night.log.requests:
        record = json.loads(line)
        kind, status = kind_of(record["target"]), record["status"]
        failure = record.get("failure")
        if status < 400 and failure is None or kind == "once" and status == 401 or failure in (
                "client_aborted", "drained", "websocket_drained"):
            continue
        ended = parse_time(record["ts"])
        logged[f"{kind} {status} {failure}"] += 1
        if not is_allowed(events, kind, status, ended - record["duration_us"] / 1e6, ended):
            forbidden.append(line)
    for run in wrks:
        if run.errors:
            forbidden.append(f"wrk: {run.errors} refused {run.refused}")
    for load in loads:
        if load.errors:
            forbidden.append(f"h2load: {load.errors}")
    # What they were refused is in the log, with its time: as many as they say.
    for kind, refused in (("wrk", sum(run.refused for run in wrks)), ("h2load", sum(load.refused for load in loads))):
        said = sum(count for name, count in logged.items() if name.split()[0] == kind)
        if refused > said:
            forbidden.append(f"{kind} was refused {refused} times, and the log has {said}")
    return {
        "asked": {checker.name: checker.asked for checker in checkers},
        "wrk": sum(run.requests for run in wrks), "h2load": sum(load.requests for load in loads),
        "h2load unfinished": sum(load.unfinished for load in loads),
        "lines": night.log.total, "allowed": dict(allowed), "logged": dict(logged), "forbidden": forbidden}


def parse_time(text: str) -> float:
    from datetime import datetime
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def assert_posts_once(night):
    notes = Counter(line for backend in night.backends if backend.notes.exists()
                    for line in backend.notes.read_text().splitlines())
    assert notes and max(notes.values()) == 1, notes.most_common(3)


def assert_one_line_each(night, checkers):
    lines = Counter(json.loads(line)["target"] for line in night.log.requests if "/c/" in line)
    for checker in checkers:
        for target in checker.answered:
            target = target.replace("/c/", "/stream/c/") if checker.kind == "stream" else target
            assert lines[target] == 1, f"{target} has {lines[target]} lines"
