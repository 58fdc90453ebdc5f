"""When a request is tried once more (pitfall O8), what that does to its token (R8), and who keeps a client's server."""

from collections import Counter

import pytest

from harness.client import request
from harness.proxy import free_port, route
from harness.replay import limited
from harness.stream import Closed

TURNS = 'balance = "round_robin"\nejection = { failures = 0 }\n'
TRUSTING = TURNS + "retries = { idempotent = true }\n"


def statuses_of(proxy, *, method="GET", body=None, count=2) -> list[int]:
    return [proxy.ask(method, "/open/x", body=body).status for _ in range(count)]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_an_idempotent_request_without_an_answer_is_sent_again_where_that_is_allowed(start, new_origin, method):
    bad, good = new_origin(), new_origin()
    bad.on("/open/x", lambda exchange: exchange.close())
    proxy = start(bad, good, workers=1, upstream=TRUSTING)
    assert statuses_of(proxy, method=method) == [200, 200]
    assert len(bad.targets()) == len(good.targets()) == 2
    proxy.expect_metric(2, "portcullis_upstream_events_total", event="retried")
    assert proxy.access_of("/open/x")["upstream_server"] == f"127.0.0.1:{good.port}"


@pytest.mark.parametrize("method, body, upstream", [
    ("POST", None, TRUSTING), ("PATCH", None, TRUSTING), ("PUT", b"content", TRUSTING), ("GET", None, TURNS)])
def test_everything_else_is_an_answer(start, new_origin, method, body, upstream):
    bad, good = new_origin(), new_origin()
    bad.on("/open/x", lambda exchange: exchange.close())
    proxy = start(bad, good, workers=1, upstream=upstream)
    assert sorted(statuses_of(proxy, method=method, body=body)) == [200, 502]
    assert len(bad.targets()) == len(good.targets()) == 1


@pytest.mark.parametrize("beginning", [
    b"H", b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
def test_nothing_is_sent_again_once_a_byte_of_an_answer_came(start, new_origin, beginning):
    bad, good = new_origin(), new_origin()
    bad.answer("/open/x", beginning, then_close=True)
    proxy = start(bad, good, workers=1, upstream=TRUSTING)
    statuses = []
    for _ in range(2):
        with proxy.connect() as connection:
            connection.send(request("GET", "/open/x"))
            try:
                statuses.append(connection.read_response().status)
            except Closed:
                statuses.append("cut off")
    assert statuses.count(200) == 1, statuses
    assert len(bad.targets()) == len(good.targets()) == 1


def test_attempts_bound_how_often_one_request_moves(start, new_origin):
    dead = [free_port() for _ in range(3)]
    good = new_origin()
    proxy = start(*dead, good, workers=1, upstream=TURNS + "retries = { attempts = 1 }\n")
    response = proxy.ask("GET", "/open/x")
    assert (response.status, response.code) == (502, "upstream_unreachable")
    proxy.expect_metric(1, "portcullis_upstream_events_total", event="retry_refused")
    # Those two are passed over now, so that the next request finds its way.
    assert proxy.ask("GET", "/open/x").status == 200


def test_the_budget_bounds_how_often_all_of_them_do(start, new_origin):
    bad, good = new_origin(), new_origin()
    bad.on("/open/x", lambda exchange: exchange.close())
    proxy = start(bad, good, workers=1, upstream=TURNS + 'retries = { idempotent = true, budget = "5%" }\n')
    statuses = Counter(proxy.ask("GET", "/open/x").status for _ in range(40))
    # Ten are always allowed; of each further one half of the requests would need one.
    assert statuses[502] >= 8 and len(bad.targets()) == 10 + statuses[502], statuses
    proxy.expect_metric(10, "portcullis_upstream_events_total", event="retried")
    proxy.expect_metric(statuses[502], "portcullis_upstream_events_total", event="retry_refused")


REPLAY = '[replay]\nstore = "memory"\n' + route(
    "once", projects=["production"], app_check="enforce", replay="enforce")


def test_r8_a_request_that_is_sent_again_spends_its_token_once(start, new_origin, keys):
    bad, good = new_origin(), new_origin()
    bad.on("/once/x", lambda exchange: exchange.close())
    proxy = start(bad, good, workers=1, upstream=TRUSTING, extra=REPLAY)
    tokens = [limited(keys.first) for _ in range(2)]
    assert [proxy.ask("GET", "/once/x", token=token).status for token in tokens] == [200, 200]
    proxy.expect_metric(2, "portcullis_replay_claims_total", result="claimed")
    proxy.expect_metric(0, "portcullis_replay_claims_total", result="released")
    response = proxy.ask("GET", "/once/x", token=tokens[0])
    assert (response.status, response.code) == (401, "token_already_used")


def test_r8_a_token_is_not_given_back_when_only_the_second_attempt_sent_nothing(start, new_origin, keys):
    """The first server got the request and said nothing; the second cannot be reached: the first may have acted."""
    bad = new_origin()
    bad.on("/once/x", lambda exchange: exchange.close())
    proxy = start(bad, free_port(), workers=1, upstream=TRUSTING, extra=REPLAY)
    token = limited(keys.first)
    response = proxy.ask("GET", "/once/x", token=token)
    assert response.status == 502 and response.json().get("token") == "spent"
    assert proxy.ask("GET", "/once/x", token=token).code == "token_already_used"


def test_a_client_keeps_its_server_while_it_is_there(start, new_origin):
    origins = {origin.port: origin for origin in (new_origin() for _ in range(4))}
    proxy = start(*origins.values(), upstream='balance = "hash"\nhash_by = "header:X-User"\n')

    def server_of(user: str) -> str:
        assert proxy.ask("GET", f"/open/{user}", f"X-User: {user}").status == 200
        return proxy.access_of(f"/open/{user}", len([one for one in asked if one == user]))["upstream_server"]

    asked: list[str] = []
    users = [f"user-{number}" for number in range(20)]
    before = {}
    for user in users:
        before[user] = server_of(user)
        asked.append(user)
    assert len(set(before.values())) >= 3
    for user in users:
        assert server_of(user) == before[user]
        asked.append(user)
    gone = next(iter(set(before.values())))
    origins[int(gone.rsplit(":", 1)[1])].stop()
    for user in users:
        now = server_of(user)
        assert now == before[user] if before[user] != gone else now != gone
        asked.append(user)
