"""How many requests a server takes at a time, and what becomes of the others."""

import threading

from harness.origin import Gate, wait_until


def hold(proxy, origin, count: int, path: str = "/open/held"):
    """Requests that the origin holds until the gate opens, and their statuses."""
    gate, statuses = Gate(), []
    origin.on(path, lambda exchange: (gate.wait(), exchange.respond()))

    def ask():
        statuses.append(proxy.ask("GET", path).status)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()

    def release() -> list[int]:
        gate.open()
        for thread in threads:
            thread.join()
        return statuses

    return release


def test_requests_beyond_the_limit_wait_and_beyond_the_queue_are_refused(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=1, upstream='limits = { connections = 2, queue = 3, queue_timeout = "20s" }\n')
    release = hold(proxy, origin, 5)
    proxy.expect_metric(3, "portcullis_upstream_events_total", event="queued")
    wait_until(lambda: len(origin.targets()) == 2, "as many requests as allowed")
    response = proxy.ask("GET", "/open/x")
    assert (response.status, response.code) == (503, "upstream_unavailable") and response.get("retry-after")
    assert proxy.access_of("/open/x")["failure"] == "upstream_queue_full"
    assert len(origin.targets()) == 2 and origin.connections == 2
    assert release() == [200] * 5
    assert origin.connections == 2
    assert proxy.ask("GET", "/open/x").status == 200
    proxy.expect_metric(1, "portcullis_request_failures_total", failure="upstream_queue_full")


def test_nobody_waits_longer_than_allowed(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=1, upstream='limits = { connections = 1, queue = 3, queue_timeout = "200ms" }\n')
    release = hold(proxy, origin, 1)
    wait_until(lambda: origin.targets(), "a request that takes its time")
    response = proxy.ask("GET", "/open/x")
    assert (response.status, response.code) == (503, "upstream_unavailable")
    assert proxy.access_of("/open/x")["failure"] == "upstream_queue_timeout"
    assert release() == [200]
    assert proxy.ask("GET", "/open/x").status == 200


def test_a_client_that_goes_away_leaves_the_queue(start, new_origin):
    origin = new_origin()
    proxy = start(origin, workers=1, upstream='limits = { connections = 1, queue = 1, queue_timeout = "20s" }\n')
    release = hold(proxy, origin, 1)
    wait_until(lambda: origin.targets(), "a request that takes its time")
    with proxy.connect() as impatient:
        impatient.send(b"GET /open/impatient HTTP/1.1\r\nHost: a.test\r\n\r\n")
        proxy.expect_metric(1, "portcullis_upstream_events_total", event="queued")
    assert proxy.access_of("/open/impatient")["failure"] == "client_aborted"
    patient = hold(proxy, origin, 1, "/open/patient")
    proxy.expect_metric(2, "portcullis_upstream_events_total", event="queued")
    assert release() == [200]
    assert patient() == [200]
    assert "/open/impatient" not in origin.targets()
