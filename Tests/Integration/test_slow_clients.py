"""W9: whoever keeps connections busy with next to nothing costs little, is gone in time, and other clients hardly notice.

Short versions: `make floods` has 20,000 of each kind, with figures. `-s` shows those of here.
"""

import json
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from harness.client import Closed, request
from harness.origin import Origin, wait_until

SLOW = pathlib.Path(__file__).parent / "harness" / "slow.py"
COUNT = 2000
# What a slow client may cost while it is there: buffers of the head or body that it does not finish.
BYTES_EACH = {"silent": 2_000, "slow_headers": 40_000, "slow_bodies": 120_000, "slow_readers": 120_000}
PATHS = {"silent": "/", "slow_headers": "/", "slow_bodies": "/open/upload", "slow_readers": "/open/large"}
# Fewer where each has a connection to the backend, and a thread there.
COUNTS = {"silent": COUNT, "slow_headers": COUNT, "slow_bodies": 300, "slow_readers": 60}
# What the kernel has taken of an answer counts as taken, so no lower rate would show in seconds.
LIMITS = ('limits = { header_timeout = "2s", idle_timeout = "2s", body_rate = "1KiB", answer_rate = "1GiB", '
          'rate_grace = "1s" }')
# The word of each end, one of them for each.
ENDS = {"silent": "idle_timeout", "slow_headers": "header_timeout", "slow_bodies": "body_rate",
        "slow_readers": "answer_rate"}


class Attackers:
    """A process of slow clients; `told` is what it says in the end."""

    def __init__(self, *arguments):
        """What slow.py takes: kind, port, count, seconds, and perhaps a path and an address to come from."""
        self.process = subprocess.Popen(
            [sys.executable, SLOW, *map(str, arguments)],
            stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def finish(self) -> dict:
        out, _ = self.process.communicate(timeout=60)
        return json.loads(out)

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def attack():
    started = []

    def begin(*arguments) -> Attackers:
        started.append(Attackers(*arguments))
        return started[-1]

    yield begin
    for attackers in started:
        attackers.stop()


def latencies(proxy, count: int = 100) -> list[float]:
    """Milliseconds that requests of a well-behaved client take, sorted; half of them on new connections."""
    taken = []
    with proxy.connect() as kept:
        for number in range(count):
            begun = time.monotonic()
            if number % 2:
                assert proxy.ask("GET", "/open/x", "Connection: close").status == 200
            else:
                assert kept.ask(request("GET", "/open/x")).status == 200
            taken.append((time.monotonic() - begun) * 1000)
    return sorted(taken)


def script(origin: Origin):
    """An upload is read as it comes, and a large answer sent as it is taken."""

    def large(exchange):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n" + b"a" * 8_000_000)

    origin.on("/open/upload", lambda exchange: exchange.respond())
    origin.on("/open/large", large)


@pytest.mark.parametrize("kind", list(PATHS))
def test_W9_slow_clients_keep_nobody_waiting(start, new_origin, attack, kind):
    origin, count = new_origin(), COUNTS[kind]
    script(origin)
    proxy = start(origin, workers=1, listener=LIMITS, log='access = "off"')
    calm = latencies(proxy)
    resident = proxy.resident_bytes()
    attackers = attack(kind, proxy.port, count, 8, PATHS[kind])
    busy = latencies(proxy)
    grown = proxy.resident_bytes() - resident
    told = attackers.finish()
    middle = len(calm) // 2
    print(f"{kind}: {told}; memory +{grown / 1024:.0f} KiB, {grown / count:.0f} bytes each; others p50 {busy[middle]:.2f} ms "
          f"(calm {calm[middle]:.2f}), p99 {busy[-1]:.2f} ms (calm {calm[-1]:.2f})")
    assert told["opened"] >= count
    assert grown < count * BYTES_EACH[kind] + (8 << 20)
    # On a machine that does other things; `make floods` measures.
    assert busy[middle] < 2 * calm[middle] + 50
    # They are not kept, and what ended them has a name.
    assert proxy.metric("portcullis_limit_hits_total", limit=ENDS[kind]) >= count / 2
    wait_until(lambda: proxy.metric("portcullis_connections") == 0, "all are gone", within=15)
    assert proxy.ask("GET", "/open/x").status == 200


def test_W9_a_client_of_many_connections_has_its_share(start, new_origin, attack):
    """With connections_per_network, one address can take no more than that however much it tries."""
    origin = new_origin()
    proxy = start(origin, listener="limits = { connections_per_network = 100 }", log='access = "off"')
    attackers = attack("silent", proxy.port, COUNT, 4, "/", "127.0.0.3")
    assert 90 <= proxy.metric("portcullis_connections") <= 101
    assert len(latencies(proxy)) == 100
    # Who is turned away says it in the log, but a flood is not one of lines, too.
    lines = [record for record in list(proxy.records) if record.get("limit") == "connections_per_network"]
    assert 1 <= len(lines) <= 4 and lines[0]["client"] == "127.0.0.3"
    assert attackers.finish()["ended"] > COUNT - 200
    assert proxy.metric("portcullis_limit_hits_total", limit="connections_per_network") > COUNT - 200


def test_W9_more_silent_connections_than_there_are_places_keep_nobody_out(start, new_origin, attack):
    """At max_connections the longest idle ones go, so that a flood of silence is not the end of service."""
    origin = new_origin()
    proxy = start(origin, workers=1, server="max_connections = 500", log='access = "off"')
    attackers = attack("silent", proxy.port, 1000, 8, "/")
    most, refused = 0, 0
    end = time.monotonic() + 5
    while time.monotonic() < end:
        most = max(most, proxy.metric("portcullis_connections"))
        try:
            refused += proxy.ask("GET", "/open/x", "Connection: close").status != 200
        except (OSError, Closed):
            refused += 1
        threading.Event().wait(0.05)
    print(f"at most {most:.0f} connections, {refused} requests refused; {attackers.finish()}")
    assert most <= 500
    # Only while none of the others had been silent for a second.
    assert refused < 30
    assert proxy.metric("portcullis_idle_connections_closed_total") > 500
