"""The command line: check, explain, demo, and how each ends."""

import re
import subprocess
import threading
import time

import pytest

from harness import tokens
from harness.origin import wait_until
from harness.proxy import BINARY, PROJECTS, ROOT, ROUTES, configuration
from harness.replay import ROUTES as REPLAY_ROUTES
from harness.replay import limited


def run(*arguments, stdin: str = "", within: float = 20) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=within)


@pytest.fixture
def config(tmp_path, key_file):
    """Writes a configuration, good unless changed, and returns its path."""

    def write(change=lambda text: text, **parts):
        parts = {"projects": PROJECTS, "routes": ROUTES} | parts
        text = configuration(port=8080, admin_port=9090, servers=[9000], state=tmp_path, jwks=str(key_file), **parts)
        path = tmp_path / "proxy.conf"
        path.write_text(change(text))
        return path

    return write


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["check", "--help"], ["explain", "--help"],
                                       ["demo", "--help"], ["--version"]])
def test_help_and_version_are_everywhere(arguments):
    done = run(*arguments)
    assert done.returncode == 0 and done.stdout.strip() and done.stderr == ""


@pytest.mark.parametrize("arguments", [[], ["serve"], ["run", "--no-such-option"], ["run", "-c"], ["check", "a", "b"],
                                       ["explain"], ["chekc"]])
def test_wrong_usage_exits_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip()


def test_a_mistyped_command_is_suggested():
    assert "check" in run("chekc").stderr


def test_check_prints_the_route_table(config):
    done = run("check", "-c", config())
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("enforced", "monitored", "open", "ios-only", "browser"):
        assert name in done.stdout


def test_check_accepts_the_example():
    done = run("check", "-c", ROOT / "proxy.conf.example")
    assert done.returncode == 0, done.stdout + done.stderr


def position(text: str, wanted: str) -> str:
    """line:column of a piece of text, counted from 1."""
    before = text[:text.index(wanted)]
    return f"{before.count(chr(10)) + 1}:{len(before) - (before.rfind(chr(10)) + 1) + 1}"


MISTAKES = {
    "key": ('app_check = "monitor"', 'app_chekc = "monitor"', "app_chekc", "app_check"),
    "value": ('app_check = "monitor"', 'app_check = "monitro"', '"monitro"', "monitor"),
    "upstream": ('path = "/open/*"\nupstream = "api"', 'path = "/open/*"\nupstream = "apx"', '"apx"', "api"),
    "app": ('apps = ["ios"]', 'apps = ["ois"]', '"ois"', "ios"),
    "project": ('projects = ["production"]\napps', 'projects = ["produktion"]\napps', '"produktion"', "production"),
    "table": ("[upstream.api]", "[upstraem.api]", "upstraem", "upstream"),
    "type": ("workers = 2", 'workers = "two"', '"two"', ""),
    "replay": ('app_check = "monitor"', 'app_check = "monitor"\nreplay = "moniter"', '"moniter"', "monitor"),
    "stricter": ('app_check = "off"', 'app_check = "off"\nreplay = "monitor"  # here', '"monitor"  # here', ""),
    "store": ("[log]", '[replay]\nstore = "reddis"\n[log]', '"reddis"', "redis"),
    "level": ('level = "debug"', 'level = "debgu"', '"debgu"', "debug"),
    "duration": ("[upstream.api]", '[upstream.api]\ntimeouts = { connect = "2 parsecs" }', '"2 parsecs"', ""),
}


@pytest.mark.parametrize("old, new, quoted, suggestion", MISTAKES.values(), ids=MISTAKES)
def test_O1_check_says_where_what_and_what_was_meant(config, old, new, quoted, suggestion):
    path = config(lambda text: text.replace(old, new, 1))
    text = path.read_text()
    assert new in text
    done = run("check", "-c", path)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert f"{path.name}:{position(text, quoted)}" in said, said
    assert quoted.strip('"') in said and suggestion in said


def test_check_shows_replay_protection(config):
    done = run("check", "-c", config(lambda text: text.replace(
        'app_check = "enforce"', 'app_check = "enforce"\nreplay = "enforce"', 1)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ +STORE +WHERE", done.stdout, re.M) and re.search(r"^ +file .+/replay +29m +reject +keeps claims$", done.stdout, re.M)
    assert re.search(r"^ .*\benforced\b.*\benforce +100% +enforce\b", done.stdout, re.M), done.stdout


REDIS = ["redis://:hunter2@cache:70000", "redis://:hunter2", "redis://:hun#ter2@cache", "redis://:hunter2%@cache/0",
         "http://:hunter2@cache", "redis+sentinel://:hunter2@s1,s2", "redis://:hunter2@/0"]


@pytest.mark.parametrize("url", REDIS)
def test_O5_a_mistake_in_the_redis_url_never_shows_its_password(config, url):
    done = run("check", "-c", config(lambda text: text + f'\n[replay]\nstore = "redis"\nredis = "{url}"\n'))
    said = done.stdout + done.stderr
    assert done.returncode == 1 and '"redis" in [replay]' in said, said
    assert "hunter2" not in said and "ter2" not in said, said


def test_O1_check_lists_every_mistake_at_once(config):
    path = config(lambda text: text.replace('app_check = "off"', 'app_check = "of"')
                  .replace("workers =", "worker =").replace('apps = ["ios"]', 'apps = ["ois"]'))
    done = run("check", "-c", path)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert len(set(re.findall(r"proxy\.conf:(\d+):\d+", said))) >= 4


@pytest.mark.parametrize("change", [
    lambda text: text + "\n[[route]\n", lambda text: text + "\nkey = \n", lambda text: text + "\n[log]\n",
    lambda text: "\0" + text, lambda text: text + '\nkey = "\xff"\n',
], ids=["bracket", "value", "twice", "nul", "latin"])
def test_O1_broken_toml_is_said_with_its_place(config, change):
    done = run("check", "-c", config(change))
    assert done.returncode == 1
    assert re.search(r"proxy\.conf:\d+:\d+", done.stdout + done.stderr)


def test_O4_PROXY_headers_of_everybody_are_no_configuration(config):
    listen = 'listen = "127.0.0.1:8080"'
    done = run("check", "-c", config(lambda text: text.replace(listen, f"{listen}\nproxy_protocol = true", 1)))
    assert done.returncode == 1
    assert 'needs "trusted_proxies"' in done.stdout + done.stderr


# Explain

def explain(path, *arguments, stdin: str = "") -> subprocess.CompletedProcess:
    return run("explain", "-c", path, *arguments, stdin=stdin)


def test_explain_tells_route_verdict_and_action(config, mint):
    done = explain(config(), "GET", "http://api.example.test/enforced/x",
                   "-H", f"X-Firebase-AppCheck: {mint()}")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("enforced", "verified", "allow", tokens.IOS, "production"):
        assert word in done.stdout, done.stdout


REFUSED = {
    "expired": (lambda mint, keys: mint(claims={"exp": int(time.time()) - 600, "iat": int(time.time()) - 4000}),
                "expired", "token_expired"),
    "signature": (lambda mint, keys: mint(keys.stranger), "signature", "token_invalid"),
    "audience": (lambda mint, keys: mint(claims={"aud": ["projects/1"]}), "audience", "token_invalid"),
    "issuer": (lambda mint, keys: mint(claims={"iss": tokens.ISSUER + "9"}), "issuer", "token_invalid"),
    "unknown-key": (lambda mint, keys: mint(keys.second), "unknown_key", "token_invalid"),
    "placeholder": (lambda mint, keys: tokens.PLACEHOLDER, "attestation_failed", "attestation_failed"),
    "garbage": (lambda mint, keys: "garbage", "malformed", "token_invalid"),
}


@pytest.mark.parametrize("make, word, code", REFUSED.values(), ids=REFUSED)
def test_explain_tells_why_a_token_is_refused(config, keys, mint, make, word, code):
    done = explain(config(), "GET", "http://api.example.test/enforced/x",
                   "-H", f"X-Firebase-AppCheck: {make(mint, keys)}")
    assert done.returncode == 1
    assert word in done.stdout and code in done.stdout, done.stdout + done.stderr


def test_explain_reads_a_token_from_standard_input(config, mint):
    done = explain(config(), "GET", "http://api.example.test/enforced/x", "--token", "-", stdin=mint() + "\n")
    assert "verified" in done.stdout, done.stdout + done.stderr


def test_explain_tells_that_there_is_no_token_or_no_route(config):
    done = explain(config(), "GET", "http://api.example.test/enforced/x")
    assert done.returncode == 1
    assert "missing" in done.stdout and "token_missing" in done.stdout
    done = explain(config(), "GET", "http://api.example.test/nothing")
    assert done.returncode == 1 and "404" in done.stdout


def test_explain_of_a_monitored_route_says_what_would_be(config):
    done = explain(config(), "GET", "http://api.example.test/monitored/x")
    assert done.returncode == 0 and "would_reject" in done.stdout


def test_explain_tells_who_is_in_the_share(config):
    path = config(lambda text: text.replace(
        'name = "enforced"', 'name = "enforced"\nenforce_percent = 50\nsticky_by = "header:X-Client"', 1))
    ends = {explain(path, "GET", "http://api.example.test/enforced/x", "-H", f"X-Client: {number}").returncode
            for number in range(20)}
    assert ends == {0, 1}


# Explain, about tokens that are used once

def once(config, store: str):
    """A configuration whose enforced route takes each token once."""
    return config(lambda text: text.replace('app_check = "enforce"', 'app_check = "enforce"\nreplay = "enforce"', 1)
                  + f"\n[replay]\n{store}\n")


def ask(path, token: str) -> subprocess.CompletedProcess:
    return explain(path, "GET", "http://api.example.test/enforced/x", "-H", f"X-Firebase-AppCheck: {token}")


def test_R6_explain_tells_a_session_token_by_its_life(config, mint):
    done = ask(once(config, 'store = "memory"'), mint())
    assert done.returncode == 1
    assert "not_limited_use" in done.stdout and done.stdout.rstrip().endswith("401 limited_use_required"), done.stdout


def test_explain_of_claims_in_memory_says_who_knows(config, keys):
    done = ask(once(config, 'store = "memory"'), limited(keys.first))
    assert done.returncode == 0
    assert "only the running process knows" in done.stdout
    assert done.stdout.rstrip().endswith("provided the token was not used before"), done.stdout


def test_R11_explain_says_that_redis_cannot_be_asked_and_what_would_come_of_it(config, keys, tmp_path):
    store = f'store = "redis"\nredis = "redis+unix://:hunter2@{tmp_path}/none.sock"'
    done = ask(once(config, store), limited(keys.first))
    assert done.returncode == 1
    assert "store redis cannot be asked" in done.stdout and "none.sock" in done.stdout, done.stdout
    assert done.stdout.rstrip().endswith("503 verification_unavailable"), done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    done = ask(once(config, store + '\nwhen_unavailable = "allow"'), limited(keys.first))
    assert done.returncode == 0 and re.search(r"action +allow$", done.stdout, re.M), done.stdout


@pytest.fixture
def redis(tmp_path):
    """The socket of a Redis server of the test's own."""
    place = tmp_path / "redis.sock"
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", place, "--save", "", "--dir", tmp_path],
                              stdout=subprocess.DEVNULL)
    try:
        wait_until(place.exists, "redis-server listens")
        yield place
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("store", ["file", "redis"])
def test_R2_explain_asks_the_store_and_spends_nothing(start, origin, keys, request, store):
    url = f'\nredis = "redis+unix://{request.getfixturevalue("redis")}"' if store == "redis" else ""
    proxy = start(origin, routes=REPLAY_ROUTES, extra=f'[replay]\nstore = "{store}"{url}\n')
    # An empty store vouches for tokens from the next full second on.
    second = int(time.time()) + 1
    wait_until(lambda: time.time() >= second, "the next second")
    token = limited(keys.first)
    arguments = (proxy.config_path, "GET", "http://api.example.test/once/x", "-H", f"X-Firebase-AppCheck: {token}")
    for _ in range(2):
        done = explain(*arguments)
        assert done.returncode == 0 and f"store {store}: fresh, never used" in done.stdout, done.stdout + done.stderr
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    done = explain(*arguments)
    assert done.returncode == 1 and f"store {store}: used before" in done.stdout, done.stdout
    assert done.stdout.rstrip().endswith("401 token_already_used"), done.stdout


def test_explain_never_repeats_a_whole_token(config, mint):
    token = mint()
    done = explain(config(), "GET", "http://api.example.test/enforced/x", "-H", f"X-Firebase-AppCheck: {token}")
    assert done.returncode == 0 and "verified" in done.stdout, done.stdout + done.stderr
    for secret in tokens.secrets_of(token)[1:]:
        assert secret not in done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["GET"], ["GET", "not a url"], ["GET", "http://a/b", "-H", "no colon"]])
def test_explain_refuses_what_is_no_request(config, arguments):
    assert explain(config(), *arguments).returncode in (1, 2)


# Demo

@pytest.fixture
def demo():
    """The demo with the curl lines that it printed."""
    process = subprocess.Popen([BINARY, "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")), daemon=True)
    reader.start()
    try:
        yield process, lines
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()


def test_the_demo_does_what_it_prints(demo):
    process, lines = demo
    wait_until(lambda: any("grep" in line for line in lines) or process.poll() is not None,
               "the demo prints its lines", within=20)
    assert process.poll() is None, "".join(lines)
    wait_until(lambda: any("msg=serving" in line for line in lines), "the demo serves")
    # Pasted into one shell, as a newcomer does.
    script = "".join(line.strip() + "\n" for line in lines if line.strip().startswith(("curl", "TOKEN=", "ONCE=", "#")))
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30)
    statuses = [int(status) for status in re.findall(r"^HTTP/1\.1 (\d+)", done.stdout, re.MULTILINE)]
    assert statuses == [200, 401, 200, 401, 400, 200, 401, 401], script + done.stdout
    for code in ("token_missing", "token_invalid", "token_in_url", "token_already_used", "limited_use_required"):
        assert f'"code":"{code}"' in done.stdout
    assert re.search(r'^portcullis_requests_total\{.*verdict="verified".*\} 1$', done.stdout, re.MULTILINE)
    # Its favourite port may be another demo's.
    issuer = re.search(r"^ *issuer +(\S+)", "".join(lines), re.MULTILINE)[1]
    token = subprocess.run(["curl", "-s", f"{issuer}/token"], capture_output=True, text=True).stdout
    assert token.count(".") == 2 and not any(token.split(".")[0] in line for line in lines)
