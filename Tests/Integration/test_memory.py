"""The memory ceiling: load is shed before the kernel ends the process, in monitor mode too, and never in silence."""

import signal

from harness.client import request
from harness.http2 import Client
from harness.origin import wait_until

LIMIT = 64 << 20
SERVER = 'memory_limit = "64MiB"'
# A head of a megabyte is bytes that a client can make us keep.
LISTENER = 'protocols = ["http/1.1", "h2"]\nlimits = { header_bytes = "1MiB", header_timeout = "60s", url = "8KiB" }'


def fill(proxy) -> list:
    """Heads that are not complete, until memory is short."""
    connections = []
    piece = b"X: " + b"a" * 8000 + b"\r\n"
    # Complete it is one field of many, so that it can still become a request.
    data = b"GET /monitored/x HTTP/1.1\r\nHost: a.test\r\n" + piece * 60
    while proxy.metric("portcullis_memory_shedding") == 0:
        assert len(connections) < 400, "memory is never short"
        connection = proxy.connect()
        connection.send(data)
        connections.append(connection)
    return connections


def is_ready(proxy) -> bool:
    return proxy.admin("/readyz").status == 200


def test_load_is_shed_while_memory_is_short_and_no_longer(start, origin):
    proxy = start(origin, server=SERVER, listener=LISTENER)
    assert proxy.ask("GET", "/monitored/x").status == 200
    begun = proxy.connect()
    begun.send(b"GET /monitored/begun HTTP/1.1\r\nHost: a.test\r\n")
    idle = proxy.connect()
    assert idle.ask(request("GET", "/open/x")).status == 200
    streams = Client(proxy.port)
    assert streams.ask("GET", "/open/x").status == 200
    asked = len(origin.requests)
    connections = fill(proxy)

    # Whoever asks whether the process should get traffic is told.
    answer = proxy.admin("/readyz")
    assert answer.status == 503 and "memory is short" in answer.json()["reasons"][0]
    assert proxy.admin("/healthz").status == 200
    # A request that had begun is answered, monitored or not; its connection closes.
    begun.send(b"\r\n")
    response = begun.read_response()
    assert (response.status, response.code) == (503, "overloaded")
    assert (response.get("retry-after"), response.get("connection")) == ("5", "close")
    record = proxy.access_of("/monitored/begun")
    assert (record["status"], record["failure"]) == (503, "memory_limit")
    assert "action" not in record and "verdict" not in record
    # Who is idle is closed, who is new is turned away.
    assert idle.is_closed()
    streams.wait_closed()
    assert [event.error_code for event in streams.goaways][-1] == 0
    assert proxy.ask("GET", "/monitored/x").status == 503
    assert len(origin.requests) == asked
    assert proxy.metric("portcullis_limit_hits_total", limit="memory_limit") >= 2
    assert proxy.metric("portcullis_request_failures_total", failure="memory_limit") == 1
    assert proxy.metric("portcullis_memory_limit_bytes") == LIMIT
    assert proxy.metric("portcullis_memory_bytes") >= LIMIT * 0.8
    record = proxy.wait_for_record(lambda record: "memory is short" in record["msg"], "one about memory")
    assert record["level"] == "error" and int(record["used_bytes"]) >= LIMIT * 0.9 - 10

    for connection in connections:
        connection.close()
    wait_until(lambda: is_ready(proxy), "there is memory again", within=20)
    assert proxy.ask("GET", "/monitored/x").status == 200
    with Client(proxy.port) as client:
        assert client.ask("GET", "/open/x").status == 200
    proxy.wait_for_record(lambda record: record["msg"] == "memory is enough again", "one about the end")
    assert proxy.metric("portcullis_memory_bytes") < LIMIT * 0.8


def test_a_reload_changes_the_limit(start, origin):
    proxy = start(origin, server=SERVER, listener=LISTENER)
    connections = fill(proxy)
    text = proxy.config_path.read_text()

    def change(setting: str, count: int):
        proxy.config_path.write_text(text.replace(SERVER, setting))
        proxy.signal(signal.SIGHUP)
        wait_until(lambda: sum("configuration reloaded" in line for line in proxy.lines) == count, "a reload")

    change('memory_limit = "1GiB"', 1)
    wait_until(lambda: is_ready(proxy), "the limit is another one")
    assert proxy.ask("GET", "/open/x").status == 200
    change(SERVER, 2)
    wait_until(lambda: not is_ready(proxy), "the limit is the old one")
    change('memory_limit = "off"', 3)
    wait_until(lambda: is_ready(proxy), "there is no limit")
    assert ("portcullis_memory_limit_bytes", ()) not in proxy.metrics()
    for connection in connections:
        connection.close()


def test_sigterm_ends_a_process_that_sheds_load(start, origin):
    proxy = start(origin, server=SERVER + '\ndrain_timeout = "1s"', listener=LISTENER)
    connections = fill(proxy)
    proxy.stop()
    for connection in connections:
        connection.close()
