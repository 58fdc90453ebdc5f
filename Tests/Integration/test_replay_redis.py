"""The store redis with real servers: what is promised when they stop, pause, forget, fill up or fail over."""

import time

import pytest

from harness import redis
from harness.client import request
from harness.origin import wait_until
from harness.redis import RedisServer
from harness.replay import ROUNDS, ROUTES, claims, statuses_of_copies
from judging import assert_rejected

pytestmark = pytest.mark.skipif(not (redis.PROGRAM and redis.CLIENT), reason="redis-server is not installed")


@pytest.fixture
def serve():
    """Starts Redis servers: `serve("maxmemory 1mb")`."""
    started = []

    def begin(*options, **parts) -> RedisServer:
        started.append(RedisServer(*options, **parts))
        return started[-1]

    yield begin
    for server in started:
        server.close()


@pytest.fixture
def protect(start):
    """Starts a proxy that claims in a Redis: `protect("redis://127.0.0.1:6379", origin)`."""

    def begin(url: str, *origins, more: str = "", **parts):
        parts.setdefault("routes", ROUTES)
        return start(*origins, extra=f'[replay]\nstore = "redis"\nredis = "{url}"\n{more}', **parts)

    return begin


def url(server: RedisServer) -> str:
    return f"redis://127.0.0.1:{server.port}"


def pass_once(proxy, token: str, target: str = "/once/x"):
    response = proxy.ask("GET", target, token=token)
    assert response.status == 200, proxy.output()
    assert_rejected(proxy.ask("GET", target, token=token), "token_already_used")


def wait_until_claims_pass(proxy, once):
    """Waits until the store is there again, and can vouch for new tokens on every loop."""
    streak = []

    def is_back() -> bool:
        streak.append(proxy.ask("GET", "/once/again", token=once()).status)
        return streak[-8:] == [200] * 8

    wait_until(is_back, "claims pass again", within=45)


def assert_unavailable(proxy, token: str, *, within: float = 2):
    start = time.monotonic()
    response = proxy.ask("GET", "/once/x", token=token)
    assert time.monotonic() - start < within
    assert_rejected(response, "verification_unavailable", 503)
    assert "retry-after" in response.head.decode().lower()


@pytest.mark.timeout(600)
def test_R1_R2_a_thousand_copies_over_two_proxies_pass_once(protect, origin, once, serve):
    server = serve()
    proxies = [protect(url(server), origin, more='timeout = "20s"\n') for _ in range(2)]
    for number in range(ROUNDS):
        data = request("GET", f"/once/{number}", token=once())
        assert statuses_of_copies(proxies, data) == {200: 1, 401: 999}, number
    assert origin.targets() == [f"/once/{number}" for number in range(ROUNDS)]


def test_R13_R14_a_proxy_that_is_killed_and_started_again_lets_no_token_pass_twice(protect, origin, once, serve):
    server = serve()
    proxy = protect(url(server), origin)
    used = [once() for _ in range(20)]
    for token in used:
        assert proxy.ask("GET", "/once/x", token=token).status == 200
    unused = once()
    # kill -9, which is no end that `stop` would accept.
    proxy.kill()
    proxy.stop = lambda: None
    proxy = protect(url(server), origin)
    for token in used:
        assert_rejected(proxy.ask("GET", "/once/x", token=token), "token_already_used")
    # The memory was not the proxy's: what was not used is as good as ever.
    pass_once(proxy, unused)


def test_R11_a_stopped_server_is_503_at_once_and_everything_passes_again_when_it_is_back(
        protect, origin, once, serve):
    server = serve()
    proxy = protect(url(server), origin)
    pass_once(proxy, once())
    server.kill()
    for _ in range(12):
        assert_unavailable(proxy, once())
    assert proxy.access_of("/once/x", 13)["claim_failure"] == "breaker_open"
    assert proxy.metric("portcullis_replay_breaker_state", state="open") == 1
    # Routes that take nothing once are not concerned.
    assert proxy.ask("GET", "/ordinary/x", token=once()).status == 200
    server.start()
    wait_until_claims_pass(proxy, once)
    pass_once(proxy, once())


def test_R11_a_paused_server_costs_its_timeout_five_times_and_then_nothing(protect, origin, once, serve):
    server = serve()
    # Each loop has a connection; one loop makes the count exact.
    proxy = protect(url(server), origin, workers=1, more='timeout = "300ms"\n')
    pass_once(proxy, once())
    server.pause()
    lost = [once() for _ in range(5)]
    for token in lost:
        assert_unavailable(proxy, token)
    start = time.monotonic()
    for _ in range(5):
        response = proxy.ask("GET", "/once/quick", token=once())
        assert response.status == 503
    assert time.monotonic() - start < 0.3
    server.resume()
    wait_until_claims_pass(proxy, once)
    # Whether these were claimed was not known; they were, so they do not pass now.
    assert_rejected(proxy.ask("GET", "/once/x", token=lost[0]), "token_already_used")


def test_R13_a_flushed_server_lets_no_token_pass_twice(protect, origin, once, serve):
    server = serve()
    proxy = protect(url(server), origin)
    token, unused = once(), once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    assert server.cli("flushall") == "OK"
    # Nobody can tell which of the two was used: both are refused.
    assert_unavailable(proxy, token)
    assert_unavailable(proxy, unused)
    assert proxy.access_of("/once/x", 1)["claim"] == "predates"
    proxy.wait_for_record(lambda record: "lost what it knew" in record.get("msg", ""), "said so")
    wait_until_claims_pass(proxy, once)
    assert_rejected(proxy.ask("GET", "/once/x", token=token), "token_already_used")


def test_R13_a_restarted_server_lets_no_token_pass_twice(protect, origin, once, serve):
    server = serve()
    proxy = protect(url(server), origin)
    token = once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    server.kill()
    server.start()
    wait_until_claims_pass(proxy, once)
    assert_unavailable(proxy, token)
    assert_rejected(proxy.ask("GET", "/once/x", token=token), "token_already_used")


def test_R12_a_full_server_refuses_and_forgets_nothing(protect, origin, once, serve):
    server = serve("maxmemory-policy noeviction")
    proxy = protect(url(server), origin)
    token = once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    server.cli("config", "set", "maxmemory", "1")
    assert_unavailable(proxy, once())
    assert proxy.access_of("/once/x", 1)["claim"] == "full"
    server.cli("config", "set", "maxmemory", "0")
    assert_rejected(proxy.ask("GET", "/once/x", token=token), "token_already_used")
    pass_once(proxy, once())


def test_R12_a_server_that_evicts_is_not_used_unless_the_configuration_accepts_it(protect, origin, once, serve):
    server = serve("maxmemory 50mb", "maxmemory-policy allkeys-lru")
    proxy = protect(url(server), origin)
    assert_unavailable(proxy, once())
    assert proxy.access_of("/once/x")["claim_failure"] == "evicting"
    assert "maxmemory-policy noeviction" in proxy.output()
    accepting = protect(url(server), origin, more='redis_eviction = "accept"\n')
    pass_once(accepting, once())


def test_R11_when_unavailable_allow_lets_requests_through_and_counts_them(protect, origin, once, serve):
    server = serve()
    proxy = protect(url(server), origin, more='when_unavailable = "allow"\n')
    pass_once(proxy, once())
    server.kill()
    assert proxy.ask("GET", "/once/allowed", token=once()).status == 200
    record = proxy.access_of("/once/allowed")
    assert (record["verdict"], record["claim"]) == ("unavailable", "unavailable")
    wait_until(lambda: claims(proxy).get("unavailable") == 1, "counted")


def test_M1_a_monitored_route_waits_no_longer_than_its_patience(protect, origin, once, serve):
    server = serve()
    proxy = protect(url(server), origin, workers=1, more='timeout = "10s"\nmonitor_patience = "50ms"\n')
    assert proxy.ask("GET", "/watched/x", token=once()).status == 200
    server.pause()
    start = time.monotonic()
    assert proxy.ask("GET", "/watched/x", token=once()).status == 200
    assert time.monotonic() - start < 2
    server.resume()


def test_the_password_is_never_logged(protect, origin, once, serve):
    server = serve("requirepass right-horse")
    proxy = protect(f"redis://:wrong-battery@127.0.0.1:{server.port}", origin)
    assert_unavailable(proxy, once())
    assert proxy.access_of("/once/x")["claim_failure"] == "denied"
    assert "WRONGPASS" in proxy.output() and "wrong-battery" not in proxy.output()
    good = protect(f"redis://:right-horse@127.0.0.1:{server.port}/5", origin)
    pass_once(good, once())
    assert "right-horse" not in good.output()


def test_a_unix_socket_serves_as_well(protect, origin, once, serve):
    server = serve()
    pass_once(protect(f"redis+unix://{server.folder}/socket", origin), once())


def test_R2_a_cluster_takes_each_token_once(protect, origin, once, serve):
    nodes = redis.make_cluster(serve)
    proxies = [protect(f"redis+cluster://127.0.0.1:{node.port}", origin) for node in nodes]
    for number in range(20):
        token = once()
        assert proxies[number % 2].ask("GET", "/once/x", token=token).status == 200
        assert_rejected(proxies[1 - number % 2].ask("GET", "/once/x", token=token), "token_already_used")
    assert all(int(node.cli("dbsize")) > 2 for node in nodes)


@pytest.mark.timeout(180)
def test_R13_a_failover_by_sentinels_lets_no_token_pass_twice(protect, origin, once, serve):
    master, replica, sentinels = redis.make_sentinels(serve)
    listed = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    proxy = protect(f"redis+sentinel://{listed}/claims", origin)
    token = once()
    assert proxy.ask("GET", "/once/x", token=token).status == 200
    master.kill()
    assert_unavailable(proxy, once())
    wait_until_claims_pass(proxy, once)
    assert "role:master" in replica.cli("info", "replication")
    # It was replicated, or it predates the new master's memory: never does it pass.
    assert proxy.ask("GET", "/once/x", token=token).status in (401, 503)
    assert_rejected(proxy.ask("GET", "/once/x", token=token), "token_already_used")
