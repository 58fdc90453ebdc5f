"""Faults in the kernel's answers, in the whole program: PORTCULLIS_FAULTS of debug builds (see
docs/decisions/0070-simulation.md). The unit tests have the single calls; here is what an operator would see."""

import os
import signal
import subprocess
import time

import pytest

from harness import client, http2, proxy as proxies
from harness.certificates import Authority
from harness.client import Closed, Connection, request
from harness.origin import wait_until
from harness.replay import limited

HOST = "api.example.test"
# Not a repetition of anything, so that a byte too many or in the wrong place shows.
BODY = b"".join(b"%d;" % number for number in range(60_000))


def understands_faults() -> bool:
    """Release builds know no faults: they do not even look at the variable."""
    end = subprocess.run([proxies.BINARY, "run", "-c", "/dev/null"], capture_output=True, text=True, timeout=20,
                         env=os.environ | {"PORTCULLIS_FAULTS": "nonsense"})
    return "PORTCULLIS_FAULTS" in end.stderr or b"PORTCULLIS_FAULTS" in proxies.BINARY.read_bytes()


pytestmark = pytest.mark.skipif(not understands_faults(), reason="a release build")


@pytest.fixture
def faulty(start):
    """Starts a proxy whose calls into the kernel go wrong as the text says."""

    def begin(faults: str, *origins, **parts):
        return start(*origins, environment={"PORTCULLIS_FAULTS": faults}, **parts)

    return begin


def events(proxy, message: str) -> list[dict]:
    return [record for record in list(proxy.records) if record.get("msg") == message]


def reload(proxy):
    before = proxy.metric("portcullis_config_reloads_total")
    proxy.signal(signal.SIGHUP)
    wait_until(lambda: proxy.metric("portcullis_config_reloads_total") > before, "the reload has ended")


def test_a_plan_that_is_none_is_refused(start, origin):
    proxy = start(origin, environment={"PORTCULLIS_FAULTS": "accept:EWHAT"}, ready=None)
    proxy.expect_failure("PORTCULLIS_FAULTS", "accept:EWHAT", "send:short=7")


TRANSFERS = ["send:short=997,recv:short=499", "send:EAGAIN:1/2,recv:EAGAIN:1/3", "send:EINTR:1/2,recv:EINTR:1/2",
             "send:short=1:1/3,recv:short=5:1/3,recv:EAGAIN:1/5"]


@pytest.mark.parametrize("faults", TRANSFERS)
@pytest.mark.parametrize("way", ["http1", "tls", "h2"])
def test_no_byte_is_lost_whatever_comes_in_between(faulty, origin, tmp_path, faults, way):
    identities = Authority(tmp_path)
    listener = {"http1": "", "h2": 'protocols = ["h2", "http/1.1"]',
                "tls": f'tls.certificates = [{identities.issue(HOST, file="api").toml}]'}[way]
    origin.on("/open/echo", lambda exchange: (exchange.read_body(), exchange.respond(body=exchange.request.body)))
    proxy = faulty(faults, origin, listener=listener)
    if way == "h2":
        with http2.Client(proxy.port) as peer:
            for _ in range(3):
                assert peer.ask("POST", "/open/echo", body=BODY).body == BODY
    else:
        tls = {"tls": identities.client("http/1.1"), "name": HOST} if way == "tls" else {}
        with Connection(proxy.port, **tls) as connection:
            for _ in range(3):
                answer = connection.ask(request("POST", "/open/echo", body=BODY))
                assert answer.status == 200 and answer.body == BODY
    assert origin.last().body == BODY


def test_who_cannot_accept_pauses_says_so_once_counts_and_goes_on(faulty, origin):
    # Of the whole process: the admin listener has its share. Each pause is a tenth of a second.
    proxy = faulty("accept:EMFILE:100", origin, workers=1)
    with Connection(proxy.port) as connection:
        assert connection.ask(request("GET", "/open/x")).status == 200
    failures = proxy.metric("portcullis_limit_hits_total", limit="open_files")
    assert 10 <= failures <= 100
    for of in "", " of the admin listener":
        assert len(events(proxy, f"cannot accept connections{of}; trying again")) == 1
    ticks = sum(int(word) for word in
                open(f"/proc/{proxy.process.pid}/stat").read().rpartition(")")[2].split()[11:13])
    assert ticks / os.sysconf("SC_CLK_TCK") < 2


@pytest.mark.parametrize("error", ["ENOSPC", "EPIPE", "EIO"])
def test_a_log_that_takes_nothing_neither_ends_nor_holds_up_the_proxy(faulty, origin, error):
    proxy = faulty(f"write[1]:{error}:20", origin)
    with proxy.connect() as connection:
        for _ in range(40):
            assert connection.ask(request("GET", "/open/x")).status == 200
            time.sleep(0.06)
        proxy.wait_for_record(lambda record: "log lines were dropped" in record.get("msg", ""), "what was lost")
    assert proxy.metric("portcullis_log_lines_dropped_total") > 0


@pytest.mark.parametrize("call", ["open[.saved]", "write", "rename"])
def test_a_full_state_directory_costs_a_warning_and_no_request(faulty, origin, key_server, mint, call):
    # Only files are written with write(2), but for the log on 1 and for what complains on 2.
    faults = f"{call}:ENOSPC" if call != "write" else ",".join(f"write[{number}]:ENOSPC" for number in range(3, 60))
    proxy = faulty(faults, origin, jwks=key_server.url)
    assert proxy.ask("GET", "/enforced/x", token=mint()).status == 200
    record = proxy.wait_for_record(lambda record: record.get("msg", "").startswith("cannot write "), "the warning")
    assert record["level"] == "warning" and "No space left on device" in record["msg"]
    assert list(proxy.folder.joinpath("state").glob("*.new")) == []


REPLAY = '[replay]\nstore = "file"\n'
PROTECTED = proxies.route("once", projects=["production"], app_check="enforce", replay="enforce")


def test_R13_no_room_for_the_claims_ends_the_start_with_what_to_do(faulty, origin):
    proxy = faulty("fallocate:ENOSPC", origin, routes=PROTECTED, extra=REPLAY, ready=None)
    proxy.expect_failure("No space left on device", "make room there")


def test_a_disk_that_fills_up_later_does_not_touch_the_claims(faulty, origin, keys, tmp_path):
    state = tmp_path / "claims"
    state.mkdir()
    proxy = faulty("fallocate:ENOSPC@4,write:ENOSPC@1000,open[claims]:ENOSPC@4", origin, routes=PROTECTED,
                   extra=REPLAY, state=state)
    for _ in range(3):
        token = limited(keys.first)
        assert proxy.ask("GET", "/once/x", token=token).status == 200
        assert proxy.ask("GET", "/once/x", token=token).code == "token_already_used"


# Calls are counted from the start's on: a reload looks at the files before it loads them.
@pytest.mark.parametrize("fault", ["open[api]:EMFILE:6@2", "open[api.key]:EACCES:4@1", "open[api]:ENOMEM:6@2"])
def test_certificates_that_cannot_be_read_at_a_reload_stay_as_they_are(faulty, origin, tmp_path, fault):
    identities = Authority(tmp_path)
    identity = identities.issue(HOST, file="api")
    proxy = faulty(fault, origin, listener=f"tls.certificates = [{identity.toml}]")

    def serves() -> bool:
        with Connection(proxy.port, tls=identities.client("http/1.1"), name=HOST) as connection:
            return connection.ask(request("GET", "/open/x")).status == 200

    assert serves()
    # What did not change is not read again. Who sees the change first tries it: the watch, or the reload.
    os.utime(tmp_path / "api.pem", (1, 1))
    os.utime(tmp_path / "api.key", (1, 1))
    reload(proxy)
    record = proxy.wait_for_record(lambda record: "not loaded" in record.get("msg", "") or
                                   "not reloaded" in record.get("msg", ""), "the refusal")
    assert "cannot be read" in record["error"] and str(tmp_path) in record["error"]
    assert serves()
    for _ in range(6):
        reload(proxy)
    assert serves() and proxy.metric("portcullis_config_reloads_total", result="success") >= 1


def test_connections_that_break_leave_no_descriptor_behind(faulty, origin):
    proxy = faulty("recv:ECONNRESET:1/7,send:EPIPE:1/11,send:ECONNRESET:1/13,epoll_ctl:ENOMEM:1/17@40,"
                   "socket:EMFILE:1/19@40,accept:ECONNABORTED:1/5,accept:EMFILE:1/23@10", origin)
    before = proxy.descriptors()
    statuses = set()
    for _ in range(300):
        try:
            statuses.add(client.ask(proxy.port, "POST", "/open/x", body=b"b" * 3000).status)
        except (Closed, OSError):
            pass
    assert 200 in statuses and statuses <= {200, 502, 503}, statuses
    wait_until(lambda: proxy.descriptors() <= before + 2, "the connections are closed")
    # One line for each request, however it ended.
    identifiers = [record["request_id"] for record in proxy.access()]
    assert len(identifiers) == len(set(identifiers)) and len(identifiers) >= 200
