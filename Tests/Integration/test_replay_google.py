"""R16: claims that Google keeps, asked for as its documentation says, with a fake Google on loopback."""

import json
import threading

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import tokens
from harness.client import request
from harness.origin import Exchange, Origin, wait_until
from harness.replay import ROUNDS, ROUTES, claims, statuses_of_copies
from judging import assert_rejected


class FakeGoogle(Origin):
    """Grants access tokens at `/token` and spends App Check tokens as verifyAppCheckToken does."""

    def __init__(self):
        super().__init__()
        self.spent: set[str] = set()
        self.refusal: tuple[int, dict] | None = None
        self.grants = 0
        self.lock = threading.Lock()
        self.path = f"/v1beta/projects/{tokens.NUMBER}:verifyAppCheckToken"
        self.on("/token", self._grant)
        self.on(self.path, self._verify)

    def _json(self, exchange: Exchange, status: int, value: dict):
        exchange.respond(status, "Content-Type: application/json", body=json.dumps(value).encode())

    def _grant(self, exchange: Exchange):
        with self.lock:
            self.grants += 1
        self._json(exchange, 200, {"access_token": f"secret-{self.grants}", "expires_in": 3599,
                                   "token_type": "Bearer"})

    def _verify(self, exchange: Exchange):
        if self.refusal is not None:
            return self._json(exchange, *self.refusal)
        token = json.loads(exchange.request.body)["appCheckToken"]
        with self.lock:
            is_spent = token in self.spent
            self.spent.add(token)
        self._json(exchange, 200, {"alreadyConsumed": True} if is_spent else {})
        return None

    @property
    def asked(self) -> int:
        return self.targets().count(self.path)


@pytest.fixture
def protect(start, tmp_path):
    """Starts a proxy whose claims a fake Google keeps."""
    fakes = []

    def begin(*origins, google=None):
        if google is None:
            google = FakeGoogle()
            fakes.append(google)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
        path = tmp_path / "google.json"
        path.write_text(json.dumps({
            "type": "service_account", "private_key_id": "0123", "private_key": pem.decode(),
            "client_email": "portcullis@demo.iam.gserviceaccount.com",
            "token_uri": f"http://127.0.0.1:{google.port}/token"}))
        settings = f'''
[replay]
store = "google"
google = {{ credentials = "{path}", url = "http://127.0.0.1:{google.port}/v1beta" }}
timeout = "30s"
monitor_patience = "5s"
'''
        return google, start(*origins, routes=ROUTES, extra=settings)

    yield begin
    for fake in fakes:
        fake.stop()


def test_R16_google_says_whether_a_token_is_spent(protect, origin, once):
    google, proxy = protect(origin)
    token = once()
    assert proxy.ask("POST", "/once/x", token=token, body=b"a").status == 200
    assert_rejected(proxy.ask("POST", "/once/x", token=token, body=b"a"), "token_already_used")
    assert origin.targets() == ["/once/x"]
    assert google.asked == 2 and google.grants == 1
    wait_until(lambda: claims(proxy) == {"claimed": 1, "reused": 1}, "the claims")


@pytest.mark.timeout(1800)
def test_R1_a_thousand_copies_at_once_over_two_proxies_pass_once(protect, origin, once):
    google, first = protect(origin)
    _, second = protect(origin, google=google)
    for number in range(ROUNDS):
        data = request("GET", f"/once/{number}", token=once())
        assert statuses_of_copies([first, second], data) == {200: 1, 401: 999}, number
    assert origin.targets() == [f"/once/{number}" for number in range(ROUNDS)]


def test_R16_a_token_that_another_service_spent_is_refused(protect, origin, once):
    google, proxy = protect(origin)
    token = once()
    google.spent.add(token)
    assert_rejected(proxy.ask("POST", "/once/x", token=token, body=b"a"), "token_already_used")
    assert origin.targets() == []


@pytest.mark.parametrize("status, error, code, failure", [
    (403, {"message": "App attestation failed.", "status": "PERMISSION_DENIED"}, "token_invalid", None),
    (403, {"message": "The caller does not have permission", "status": "PERMISSION_DENIED"},
     "verification_unavailable", "denied"),
    (400, {"message": "Provider not supported.", "status": "FAILED_PRECONDITION"}, "limited_use_required", None),
    (429, {"message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}, "verification_unavailable", "overloaded"),
    (500, {"message": "Internal.", "status": "INTERNAL"}, "verification_unavailable", "protocol"),
])
def test_R16_only_the_token_s_faults_are_the_token_s(protect, origin, once, status, error, code, failure):
    google, proxy = protect(origin)
    google.refusal = (status, {"error": {"code": status, **error}})
    expected = 503 if code == "verification_unavailable" else 401
    response = proxy.ask("POST", "/once/x", token=once(), body=b"a")
    assert_rejected(response, code, expected)
    # An error of the service's own does not say whether it spent the token first.
    assert response.json().get("token") == {"protocol": "spent", None: None}.get(failure, "unspent")
    assert proxy.access_of("/once/x").get("claim_failure") == failure
    assert origin.targets() == []


def test_R16_google_out_of_reach_is_unavailable(protect, origin, once):
    google, proxy = protect(origin)
    assert proxy.ask("POST", "/once/x", token=once(), body=b"a").status == 200
    google.stop()
    assert_rejected(proxy.ask("POST", "/once/x", token=once(), body=b"a"), "verification_unavailable", 503)
    # A monitored request passes all the same.
    assert proxy.ask("POST", "/watched/x", token=once(), body=b"a").status == 200
