"""How a process ends: what it still accepts, what it still answers, and when it lets go (pitfall O3)."""

import signal
import time

import pytest

from harness.client import request
from harness.origin import wait_until


def is_refused(proxy) -> bool:
    try:
        with proxy.connect():
            return False
    except ConnectionError:
        return True


def test_O3_drain_delay_goes_on_accepting_while_readyz_says_no(start, origin):
    proxy = start(origin, server='drain_delay = "1500ms"')
    began = time.monotonic()
    proxy.signal(signal.SIGTERM)
    wait_until(lambda: proxy.admin("/readyz").status == 503, "not ready")
    # Clients that have not heard of it yet are served as ever.
    with proxy.connect() as kept:
        for _ in range(3):
            answer = kept.ask(request("GET", "/open/x"))
            assert answer.status == 200 and answer.get("connection") is None
    assert proxy.wait_for_exit() == 0
    assert time.monotonic() - began > 1.4
    assert is_refused(proxy)


def test_O3_a_second_signal_ends_the_delay_and_everything_else(start, origin):
    proxy = start(origin, server='drain_delay = "1h"')
    proxy.signal(signal.SIGTERM)
    wait_until(lambda: proxy.admin("/readyz").status == 503, "not ready")
    proxy.signal(signal.SIGTERM)
    assert proxy.wait_for_exit() == 0


@pytest.mark.parametrize("used", [True, False], ids=["used a moment ago", "just opened"])
def test_O3_a_request_that_is_on_its_way_when_the_drain_begins_is_answered(start, origin, used):
    proxy = start(origin)
    # More than one: each loop has its own view.
    connections = [proxy.connect() for _ in range(6)]
    for connection in connections:
        if used:
            assert connection.ask(request("GET", "/open/x")).status == 200
    proxy.signal(signal.SIGTERM)
    proxy.wait_for_record(lambda record: record["msg"] == "draining", "the drain begins")
    for connection in connections:
        # A loop may hear of the drain a moment later; every request is answered until one answer says that it is the last.
        said = None
        while said != "close":
            answer = connection.ask(request("GET", "/open/x"))
            assert answer.status == 200
            said = answer.get("connection")
        assert connection.is_closed()
    assert proxy.wait_for_exit() == 0


def test_O3_pipelined_requests_that_came_before_the_drain_are_answered(start, origin):
    proxy = start(origin)
    origin.on("/open/first", lambda exchange: (proxy.signal(signal.SIGTERM), proxy.wait_for_record(
        lambda record: record["msg"] == "draining", "the drain begins"), exchange.respond()))
    with proxy.connect() as connection:
        connection.send(request("GET", "/open/first") + request("GET", "/open/second"))
        answer = connection.read_response()
        # Either it says that it is the last one, or the next one is answered.
        assert answer.status == 200
        if answer.get("connection") != "close":
            assert connection.read_response().status == 200
        assert connection.is_closed()
    assert proxy.wait_for_exit() == 0


def test_O3_a_connection_that_was_idle_for_long_does_not_hold_the_end_up(start, origin):
    proxy = start(origin, server='drain_timeout = "1h"')
    with proxy.connect() as idle:
        assert idle.ask(request("GET", "/open/x")).status == 200
        began = time.monotonic()
        proxy.signal(signal.SIGTERM)
        assert proxy.wait_for_exit(10) == 0
        # A second after it was used, whatever the drain may take.
        assert time.monotonic() - began < 8
        assert idle.is_closed()
