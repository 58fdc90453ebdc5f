"""What is going on: GET /status, `portcullis status`, `drain` and `undrain`, and that none of it shows a secret."""

import contextlib
import ctypes
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from harness import client, tokens
from harness.certificates import Authority
from harness.origin import Gate, wait_until
from harness.client import request
from harness.proxy import BINARY, PROJECT, free_port, route
from test_admin import TOKEN, address, begin, token_file  # noqa: F401
from test_operations import reload

SECRETS = {"header": "AIzaSy-the-key-of-google-1234567", "redis": "redis-password-that-is-secret",
           "google": "private_key_that_is_secret_0123456789"}


def run(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)


def status(proxy) -> dict:
    answer = client.ask(proxy.admin_port, "GET", "/status", host="localhost")
    assert answer.status == 200 and answer.get("content-type") == "application/json"
    assert answer.get("cache-control") == "no-store"
    return answer.json()


def shown(proxy, *arguments) -> str:
    """The tables, which must fit and be plain."""
    done = run("status", "-c", proxy.config_path, *arguments)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert all(len(line) <= 100 for line in done.stdout.splitlines()), done.stdout
    assert re.fullmatch(r"[\n\x20-\x7e]*", done.stdout)
    return done.stdout


def test_a_quiet_proxy(start, origin, mint):
    proxy = start(origin, workers=2)
    report = status(proxy)
    assert report["problems"] == []
    process = report["process"]
    assert (process["pid"], process["phase"], process["ready"], process["loops"]) == (proxy.process.pid, "serving", True, 2)
    assert process["silent_loops"] == [] and process["not_ready"] == []
    assert 1 << 20 < process["resident_bytes"] < 1 << 30 and 0 < process["open_descriptors"] < process["descriptor_limit"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", process["started_at"])
    assert report["configuration"]["file"] == str(proxy.config_path) and report["configuration"]["reloads"] == 0
    assert [keys["project"] for keys in report["key_sets"]] == ["production", "other"]
    assert all(keys["usable"] and keys["keys"] == 2 and keys["age_seconds"] >= 0 for keys in report["key_sets"])
    assert report["upstreams"][0]["servers"][0]["state"] == "ready"
    assert report["listeners"][0]["protocols"] == ["http/1.1"] and report["certificates"] == []
    assert "replay" not in report
    text = shown(proxy)
    assert "No problems." in text and f"pid {proxy.process.pid}" in text and "serving, ready" in text


def test_verdicts_reasons_and_failures_of_the_last_minutes(start, origin, mint):
    proxy = start(origin, workers=2)
    for _ in range(3):
        assert proxy.ask("GET", "/enforced/x", token=mint()).status == 200
    for _ in range(2):
        assert proxy.ask("GET", "/enforced/x").status == 401
    assert proxy.ask("GET", "/monitored/x", token=mint(claims={"aud": ["projects/1"]})).status == 200
    origin.answer("/open/bad", b"nonsense\r\n\r\n", then_close=True)
    assert proxy.ask("GET", "/open/bad").status == 502
    proxy.expect_metric(7, "portcullis_requests_total")
    traffic = status(proxy)["traffic"]

    def row(rows, **wanted):
        found = [row for row in rows if wanted.items() <= row.items()]
        assert len(found) == 1, rows
        return found[0]["requests"]

    everywhere = {"1m": 3, "5m": 3, "15m": 3}
    assert row(traffic["verdicts"], route="enforced", verdict="verified", action="allow") == everywhere
    assert row(traffic["verdicts"], route="enforced", verdict="missing", action="reject")["1m"] == 2
    assert row(traffic["reasons"], verdict="missing", reason="unknown_origin", action="reject")["15m"] == 2
    assert row(traffic["reasons"], verdict="invalid", action="would_reject")["5m"] == 1
    assert row(traffic["failures"], failure="upstream_protocol")["1m"] == 1
    assert [window["minutes"] for window in traffic["windows"]] == [1, 5, 15]
    first = traffic["windows"][0]
    assert (first["requests"], first["rejected"], first["would_reject"], first["server_errors"]) == (7, 2, 1, 1)
    assert first["per_second"] == pytest.approx(7 / first["seconds"])
    text = shown(proxy)
    for line in (r"enforced +verified +allow +3 +3 +3", r"missing +unknown_origin +reject +2", r"upstream_protocol +1",
                 r"rejected +2 +2 +2"):
        assert re.search(line, text), text


def test_servers_that_are_away_come_first_with_the_reason(begin, new_origin):  # noqa: F811
    good, hanging = new_origin(), new_origin()
    dead, drained = free_port(), new_origin()
    proxy = begin(good, dead, drained, upstream='ejection = { failures = 1, time = "60s" }\npanic_threshold = 0\n')
    assert run("drain", "api", address(drained), "-c", proxy.config_path).returncode == 0
    wait_until(lambda: proxy.ask("GET", "/x").status == 200 and status(proxy)["upstreams"][0]["available"] == 1,
               "the dead one is ejected")
    servers = {server["server"]: server for server in status(proxy)["upstreams"][0]["servers"]}
    ejected, away = servers[f"127.0.0.1:{dead}"], servers[address(drained)]
    assert ejected["state"] == "ejected" and ejected["last_failure"] == "upstream_connect"
    assert re.fullmatch(r"upstream_connect, by [12] of 2 loops for another \d+ s", ejected["why"])
    assert away["state"] == "draining" and re.fullmatch(r"by 127\.0\.0\.1:\d+ at \S+Z", away["why"])
    assert servers[address(good)]["state"] == "ready"
    assert [problem["severity"] for problem in status(proxy)["problems"]] == ["warning", "note"]
    lines = shown(proxy).splitlines()
    assert any(line.startswith(f"  !  upstream api: 127.0.0.1:{dead} is ejected") for line in lines)
    table = [line for line in lines if re.match(r"  api +127", line)]
    assert [line.split()[2] for line in table] == ["ejected", "draining", "ready"]
    assert hanging.targets() == []


def test_checks_that_fail_say_why(start, origin):
    port = free_port()
    proxy = start(origin, extra=f'''
[upstream.checked]
servers = ["127.0.0.1:{port}"]
health = {{ path = "/healthz", interval = "100ms", timeout = "90ms", unhealthy_after = 1 }}
''')
    proxy.wait_for_record(lambda record: record["msg"] == "upstream server is unhealthy", "the verdict")
    upstream = status(proxy)["upstreams"][1]
    assert upstream["servers"][0]["state"] == "unhealthy" and "refused" in upstream["servers"][0]["why"].lower()
    problems = status(proxy)["problems"]
    assert problems[0]["severity"] == "critical" and "no server works" in problems[0]["text"]


def test_keys_that_were_never_loaded_are_the_first_thing_to_read(start, origin):
    proxy = start(origin, ready="/healthz", jwks=f"http://127.0.0.1:{free_port()}/jwks", projects=PROJECT)
    proxy.wait_for_record(lambda record: "could not be loaded" in record["msg"], "the failure")
    report = status(proxy)
    assert report["process"]["ready"] is False
    assert report["key_sets"][0]["usable"] is False and report["key_sets"][0]["next_refresh_seconds"] is not None
    text = shown(proxy)
    assert "NOT READY" in text and re.search(r"!! not ready: the keys of project production were never loaded", text)


def test_a_failed_reload_stays_in_sight_until_one_goes_well(start, origin):
    proxy = start(origin)
    good = proxy.config_path.read_text()
    proxy.config_path.write_text(good.replace("app_check", "app_chekc"))
    proxy.signal(signal.SIGHUP)
    proxy.expect_metric(1, "portcullis_config_reloads_total", result="failure")
    report = status(proxy)
    assert "app_chekc" in report["configuration"]["last_reload_errors"][0]
    assert report["configuration"]["failed_reloads"] == 1
    assert "changed nothing" in report["problems"][0]["text"]
    # The file is broken, so it does not tell where to ask: that is said, and --admin helps.
    refused = run("status", "-c", proxy.config_path)
    assert refused.returncode == 1 and "--admin ADDRESS" in refused.stderr and refused.stdout == ""
    assert run("status", "-c", proxy.config_path, "--admin", f"localhost:{proxy.admin_port}").returncode == 0
    reload(proxy, good, lambda: True)
    assert status(proxy)["problems"] == []


def test_certificates_that_expire_are_told_in_time(start, origin, tmp_path):
    authority = Authority(tmp_path)
    soon, late = authority.issue("a.test", file="soon", days=(-2, 5)), authority.issue("b.test", file="late", days=(-2, 90))
    proxy = start(origin, ready="/healthz", listener=f"tls.certificates = [ {late.toml}, {soon.toml} ]")
    report = status(proxy)
    assert {entry["file"]: entry["names"] for entry in report["certificates"]} == {
        str(soon.certificate): ["a.test"], str(late.certificate): ["b.test"]}
    assert [problem["text"].split()[2] for problem in report["problems"]] == [str(soon.certificate)]
    assert report["listeners"][0]["tls"] is True


def test_the_replay_store_and_requests_in_flight(start, origin, once):
    gate = Gate()
    origin.on("/once/slow", lambda exchange: (gate.wait(), exchange.respond()))
    proxy = start(origin, extra=route("once", app_check="enforce", replay="enforce") + '\n[replay]\nstore = "memory"\n')
    with proxy.connect() as busy:
        busy.send(request("GET", "/once/slow", token=once()))
        origin.wait(lambda: origin.targets(), "the request arrives")
        report = status(proxy)
        assert report["replay"] == {"store": "memory", "entries": 1, "entry_limit": 1000000}
        assert report["upstreams"][0]["servers"][0]["in_flight"] == 1
        assert report["listeners"][0]["active"] == 1
        gate.open()
        assert busy.read_response().status == 200


# The command


def test_json_is_the_document_of_the_listener(start, origin):
    proxy = start(origin)
    done = run("status", "-c", proxy.config_path, "--json")
    assert done.returncode == 0 and json.loads(done.stdout).keys() == status(proxy).keys()


@pytest.mark.parametrize("arguments, code, words", [
    (["--admin", "nonsense"], 2, "is no address"),
    (["--admin", "127.0.0.1:1"], 1, "nobody listens on 127.0.0.1:1"),
    (["--admin", "unix:/nonexistent/admin.sock"], 1, "there is no socket /nonexistent/admin.sock"),
    (["extra"], 2, "unexpected argument"), (["-c", "/nonexistent.conf"], 1, "cannot be read")])
def test_errors_say_what_to_do(arguments, code, words):
    done = run("status", *arguments)
    assert (done.returncode, done.stdout) == (code, "") and words in done.stderr


def test_a_configuration_without_admin_says_so(tmp_path):
    path = tmp_path / "proxy.conf"
    path.write_text('[[listener]]\nlisten = "127.0.0.1:8080"\n[upstream.api]\nservers = ["127.0.0.1:1"]\n'
                    + route("all", path="/*", app_check="off"))
    done = run("status", "-c", path)
    assert done.returncode == 1 and "has no [admin] table" in done.stderr


def test_who_answers_but_is_no_admin_listener_is_told_apart(start, origin):
    proxy = start(origin)
    done = run("status", "--admin", f"127.0.0.1:{proxy.port}")
    assert done.returncode == 1 and "answered 404 to /status" in done.stderr
    done = run("status", "--admin", f"127.0.0.1:{origin.port}")
    assert done.returncode == 1 and "is that the admin listener" in done.stderr


def test_a_socket_that_one_may_not_use_is_told(start, origin, tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    path = tmp_path / "admin.sock"
    import socket
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o600)
        for folder in (tmp_path, *tmp_path.parents):
            if folder.owner() == "root" and folder.name.startswith("pytest"):
                folder.chmod(0o755)
        done = subprocess.run([BINARY, "status", "--admin", f"unix:{path}"], capture_output=True, text=True, timeout=60,
                              user=65534, group=65534, extra_groups=[])
    assert done.returncode == 1 and "permission denied for the socket" in done.stderr, done.stderr


def test_colours_are_for_terminals_alone(start, origin):
    proxy = start(origin)
    proxy.config_path.write_text(proxy.config_path.read_text())

    def on_a_terminal(**environment) -> str:
        leader, follower = pty.openpty()
        process = subprocess.Popen([BINARY, "status", "--admin", f"127.0.0.1:{proxy.admin_port}"], stdout=follower,
                                   env=os.environ | {"TERM": "xterm"} | environment)
        os.close(follower)
        text = b""
        while select.select([leader], [], [], 20)[0]:
            try:
                text += os.read(leader, 65536)
            except OSError:
                break
        os.close(leader)
        assert process.wait(20) == 0
        return text.decode()

    assert "\x1b[1mTraffic\x1b[0m" in on_a_terminal()
    assert "\x1b" not in on_a_terminal(NO_COLOR="1") and "\x1b" not in on_a_terminal(TERM="dumb")
    assert "\x1b" not in shown(proxy)


def test_drain_and_undrain_from_the_command_line(begin, new_origin, token_file, tmp_path):  # noqa: F811
    first, second = new_origin(), new_origin()
    proxy = begin(first, second)
    done = run("drain", "api", address(first), "-c", proxy.config_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"api: {address(first)} is draining; 0 requests under way; 1 server of api in service\n"
    assert proxy.ask("GET", "/x").status == 200 and first.targets() == []
    assert "already draining" in run("drain", "api", address(first), "-c", proxy.config_path).stdout
    last = run("drain", "api", address(second), "--admin", f"127.0.0.1:{proxy.admin_port}", "--token-file", token_file)
    assert last.returncode == 0 and "503 upstream_unavailable" in last.stderr
    back = run("undrain", "api", address(first), "-c", proxy.config_path)
    assert back.returncode == 0 and "is getting requests again" in back.stdout
    assert proxy.ask("GET", "/x").status == 200 and first.targets() == ["/x"]

    for arguments, code, words in (
            (["drain", "api"], 2, "UPSTREAM and SERVER"), (["drain", "api", "x"], 2, "needs the admin token"),
            (["drain", "a/b", "x", "-c", proxy.config_path], 2, "cannot be the name of an upstream"),
            (["drain", "nope", "x", "-c", proxy.config_path], 1, "there is no upstream nope; there are api"),
            (["drain", "api", "x:1", "-c", proxy.config_path], 1, f"it has {address(first)}, {address(second)}"),
            (["drain", "api", "x:1", "-c", proxy.config_path, "--token-file", tmp_path / "no"], 1, "cannot read the admin")):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (code, "") and words in done.stderr, done.stderr
    wrong = tmp_path / "wrong"
    wrong.write_text("0123456789abcdef")
    done = run("drain", "api", address(first), "-c", proxy.config_path, "--token-file", wrong)
    assert done.returncode == 1 and "this is not the token of token_file" in done.stderr
    assert TOKEN not in proxy.output()


# Secrets


def google_key(folder: pathlib.Path) -> pathlib.Path:
    """A service account whose key is recognised wherever it appears."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    path = folder / "service-account.json"
    path.write_text(json.dumps({
        "type": "service_account", "project_id": "p", "private_key_id": "secret-id-of-the-key-0123456789",
        "private_key": key, "client_email": "a@p.iam.gserviceaccount.com",
        "token_uri": f"http://127.0.0.1:{free_port()}/token"}))
    return path


@pytest.mark.parametrize("store", ["redis", "google"])
def test_O5_nothing_that_is_told_holds_a_secret(start, origin, mint, once, tmp_path, token_file, store):  # noqa: F811
    secrets = [SECRETS["header"], TOKEN]
    if store == "redis":
        replay = (f'\n[replay]\nstore = "redis"\nredis = "redis://somebody@127.0.0.1:{free_port()}/0"\n'
                  f'redis_password = "{SECRETS["redis"]}"\ntimeout = "50ms"\n')
        secrets.append(SECRETS["redis"])
    else:
        key = google_key(tmp_path)
        secrets += json.loads(key.read_text())["private_key"].split("\n")[1:4]
        replay = (f'\n[replay]\nstore = "google"\ngoogle = {{ credentials = "{key}", '
                  f'url = "http://127.0.0.1:{free_port()}/v1beta" }}\ntimeout = "50ms"\n')
    # The key server refuses, so that errors of fetching are told as well.
    keys = (f'jwks_headers = {{ X-Goog-Api-Key = "{SECRETS["header"]}" }}\n')
    failing = PROJECT.replace("production", "failing").replace(tokens.NUMBER, "998877665544").replace(
        "@JWKS@", f"http://127.0.0.1:{free_port()}/jwks?key=query-secret-0123456789") + keys
    failing = re.sub(r"apps = .*", 'apps = { failing = "1:998877665544:ios:aa" }', failing)
    secrets.append("query-secret-0123456789")
    proxy = start(origin, ready="/healthz", projects=PROJECT + failing, admin=f'token_file = "{token_file}"',
                  routes=route("enforced", projects=["production"], app_check="enforce")
                  + route("once", projects=["production"], app_check="enforce", replay="enforce"), extra=replay)
    sent = [mint(), once()]
    proxy.ask("GET", "/enforced/x", token=sent[0])
    proxy.ask("GET", "/once/x", token=sent[1])
    proxy.ask("GET", f"/enforced/x?token={sent[0]}")
    client.ask(proxy.admin_port, "POST", f"/upstreams/api/servers/{address(origin)}/drain",
               f"Authorization: Bearer {TOKEN}", host="localhost")
    client.ask(proxy.admin_port, "POST", f"/upstreams/api/servers/{address(origin)}/drain",
               f"Authorization: Bearer {TOKEN}x", host="localhost")
    proxy.wait_for_record(lambda record: "could not be loaded" in record["msg"], "the failing key server")
    # A reload with a mistake in every secret's line, too.
    proxy.config_path.write_text(proxy.config_path.read_text().replace("redis_password", "redis_pasword")
                                 .replace("X-Goog-Api-Key", "X Goog"))
    proxy.signal(signal.SIGHUP)
    proxy.expect_metric(1, "portcullis_config_reloads_total", result="failure")
    told = {
        "status": client.ask(proxy.admin_port, "GET", "/status", host="localhost").body.decode(),
        "tables": run("status", "--admin", f"127.0.0.1:{proxy.admin_port}").stdout,
        "metrics": proxy.admin("/metrics").body.decode(), "readiness": proxy.admin("/readyz").body.decode(),
        "check": (lambda done: done.stdout + done.stderr)(run("check", "-c", proxy.config_path)),
        "log": proxy.output()}
    assert all(len(text) > 20 for text in told.values())
    for token in sent:
        secrets += tokens.secrets_of(token)
    for name, text in told.items():
        for secret in secrets:
            assert secret not in text, f"{secret} is in the {name}"


# Loops that are stuck

PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000


@contextlib.contextmanager
def stopped(proxy, name: str):
    """Stops one thread of the proxy, as a debugger does, and lets the others run."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    tasks = pathlib.Path(f"/proc/{proxy.process.pid}/task")
    thread = next(int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == name)
    if libc.ptrace(PTRACE_ATTACH, thread, None, None) != 0:
        pytest.skip("threads of others cannot be stopped here")
    os.waitpid(thread, WALL)
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, thread, None, None)


def test_a_loop_that_is_stuck_is_named_and_holds_nothing_up(begin, new_origin):  # noqa: F811
    first, second = new_origin(), new_origin()
    proxy = begin(first, second, workers=2)
    with stopped(proxy, "worker 1"):
        began = time.monotonic()
        report = status(proxy)
        assert time.monotonic() - began < 5
        assert report["process"]["silent_loops"] == [1]
        assert "event loop 1 does not answer" in report["problems"][0]["text"]
        done = run("drain", "api", address(first), "-c", proxy.config_path)
        assert done.returncode == 0 and "1 event loop did not answer" in done.stderr
    wait_until(lambda: status(proxy)["process"]["silent_loops"] == [], "the loop goes on")
    # It has taken note meanwhile: whichever loop serves a request, the drained server gets none.
    for _ in range(30):
        assert proxy.ask("GET", "/x").status == 200
    assert first.targets() == []
