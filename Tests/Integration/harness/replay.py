"""Limited-use tokens, routes that take each of them once, and many copies of one request at once."""

import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import h2.connection
import h2.events

from . import client, tokens
from .proxy import route

# A configuration for each store; the file lies in the state directory.
STORES = {
    "memory": '[replay]\nstore = "memory"\n',
    # Its disk space is taken at once: 160 bytes for each entry.
    "file": '[replay]\nstore = "file"\nmax_entries = 50000\n',
    # Patient: a machine that runs other tests besides may well take longer than the default.
    "redis": '[replay]\nstore = "redis"\nredis = "redis://127.0.0.1:@REDIS@"\ntimeout = "10s"\n'}

# How often the tests with a thousand copies repeat; 100 proves more, and takes its time.
ROUNDS = int(os.environ.get("REPLAY_ROUNDS", "5"))

ROUTES = "".join((
    route("once", projects=["production"], app_check="enforce", replay="enforce",
          cors={"allow_origins": ["https://app.example.com"]}),
    route("once-ios", projects=["production"], apps=["ios"], app_check="enforce", replay="enforce"),
    route("watched", projects=["production"], app_check="enforce", replay="monitor"),
    route("loose", projects=["production"], app_check="monitor", replay="monitor"),
    route("outside", projects=["production"], app_check="enforce", enforce_percent=0, replay="enforce"),
    route("ordinary", projects=["production"], app_check="enforce"),
    route("open", app_check="off")))


def limited(key, *, lifetime: int = 300, **changes) -> str:
    """A limited-use token: it lives for five minutes."""
    return tokens.mint(key, lifetime=lifetime, **changes)


def claims(proxy) -> dict[str, int]:
    """What became of claims so far, without what never happened."""
    return {dict(labels)["result"]: int(value) for (name, labels), value in proxy.metrics().items()
            if name == "portcullis_replay_claims_total" and value}


def statuses_of_streams(port: int, path: str, token: str, *, connections: int = 10, streams: int = 20) -> Counter:
    """Copies of one request as streams of many HTTP/2 connections, each connection's in one write."""
    opened = []
    for _ in range(connections):
        session = h2.connection.H2Connection()
        session.initiate_connection()
        for number in range(streams):
            session.send_headers(1 + 2 * number, [
                (":method", "GET"), (":scheme", "http"), (":authority", client.HOST), (":path", path),
                ("x-firebase-appcheck", token)], end_stream=True)
        opened.append((client.Connection(port, patience=60), session))
    for connection, session in opened:
        connection.send(session.data_to_send())
    statuses: Counter = Counter()
    for connection, session in opened:
        ended = 0
        while ended < streams:
            data = connection.socket.recv(1 << 16)
            assert data, "the connection ended early"
            for event in session.receive_data(data):
                if isinstance(event, h2.events.ResponseReceived):
                    statuses[int(dict(event.headers)[b":status"])] += 1
                ended += isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
            connection.send(session.data_to_send())
        connection.close()
    return statuses


def statuses_of_copies(proxies, data: bytes, *, connections: int = 100, copies: int = 10) -> Counter:
    """Sends copies of one request, pipelined on each of many connections that go to the proxies in turn, all
    at the same moment; counts the answers by status."""
    opened = [client.Connection(proxies[number % len(proxies)].port, patience=60)
              for number in range(connections)]
    last = data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    rest = data[-1:] + data * (copies - 2) + last
    start = threading.Barrier(4)

    def send(share) -> Counter:
        # Every connection has a request of which one byte is missing: that one goes out quickly.
        for connection in share:
            connection.send(data[:-1])
        start.wait(60)
        for connection in share:
            connection.send(rest)
        return Counter(response.status for connection in share for response in connection.read_until_closed())

    with ThreadPoolExecutor(4) as pool:
        found = sum(pool.map(send, (opened[number::4] for number in range(4))), Counter())
    for connection in opened:
        connection.close()
    return found
