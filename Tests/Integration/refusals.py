"""What a message that could be read in two ways must lead to: one answer, the end, and silence behind the proxy."""

from harness.client import Connection, Response


def assert_refused(proxy, origin, data: bytes, statuses: set[int] = frozenset({400})) -> Response:
    """Sends bytes; one answer of these statuses must come, the connection must end, nothing be forwarded."""
    with Connection(proxy.port) as connection:
        try:
            connection.send(data)
        except ConnectionError:
            pass  # Refused while still sending; the answer can be read all the same.
        responses = connection.read_until_closed()
    assert len(responses) == 1, f"{len(responses)} answers to one refused message"
    assert responses[0].status in statuses, responses[0].head + responses[0].body
    assert responses[0].get("connection") == "close"
    assert_origin_saw_nothing(proxy, origin)
    return responses[0]


def assert_origin_saw_nothing(proxy, origin):
    """Nothing was forwarded up to now: only a request sent after all of it arrives."""
    assert proxy.ask("GET", "/open/marker").status == 200
    assert origin.targets() == ["/open/marker"]
    with origin.changed:
        marker = origin.requests.pop()
        arrived, origin.received = origin.received, 0
    assert arrived == len(marker.head), "bytes reached the origin that are no part of a request"
