"""What the tests of several themes ask of one request: how was it judged, and what did the origin see?"""

from harness.client import Response

CODES = {"missing": "token_missing", "attestation_failed": "attestation_failed",
         "app_not_allowed": "app_not_allowed", "unavailable": "verification_unavailable"}
STATUS = {"app_not_allowed": 403, "unavailable": 503}


def code_of(verdict: str, reason: str | None) -> str:
    """The code that an enforced route answers with (design: the table of rejections)."""
    if verdict == "invalid":
        return {"expired": "token_expired", "in_url": "token_in_url"}.get(reason, "token_invalid")
    return CODES[verdict]


def status_of(verdict: str, reason: str | None) -> int:
    return 400 if reason == "in_url" else STATUS.get(verdict, 401)


def assert_rejected(response: Response, code: str, status: int = 401):
    """A rejection as browsers, caches and people need it (RFC 9457; pitfalls C3, C5)."""
    assert (response.status, response.code) == (status, code), response.head + response.body
    assert response.json()["status"] == status
    assert response.get("cache-control") == "no-store"
    if status == 401:
        assert response.get("www-authenticate") == f'AppCheck error="{code}"'
    else:
        assert response.get("www-authenticate") is None
    if status == 503:
        assert int(response.get("retry-after")) > 0


def assert_judged(proxy, origin, token: str, verdict: str, reason: str | None = None, *,
                  monitored: str = "/monitored/x", enforced: str = "/enforced/x"):
    """Sends one token to a monitored and an enforced route; both must say the same of it."""
    seen = len(origin.requests)
    response = proxy.ask("GET", monitored, token=token)
    assert response.status == 200, response.head + response.body
    request = origin.last()
    told = (request.get("x-appcheck-verdict"), request.get("x-appcheck-reason"),
            request.get("x-appcheck-action"))
    passes = verdict == "verified"
    assert told == (verdict, reason, "allow" if passes else "would_reject")
    assert len(origin.requests) == seen + 1

    response = proxy.ask("GET", enforced, token=token)
    if passes:
        assert response.status == 200, response.head + response.body
        assert origin.last().get("x-appcheck-verdict") == "verified"
        return
    assert_rejected(response, code_of(verdict, reason), status_of(verdict, reason))
    assert len(origin.requests) == seen + 1, "a rejected request reached the origin"


def verdict_of(origin) -> tuple[str | None, str | None]:
    """Verdict and reason of the newest request that reached the origin."""
    request = origin.last()
    return request.get("x-appcheck-verdict"), request.get("x-appcheck-reason")
