"""The cases of the App Check oracle, judged by Google's Python SDK and by the proxy.

Wherever both disagree, the table below says so and why. The proxy may only be stricter, but for the documented
leeway on clocks.
"""

import importlib.util
import json
import time

import pytest

from harness import tokens
from harness.origin import Origin
from harness.proxy import ROOT

ORACLE = ROOT.parent / "shared/oracles/appcheck_oracle.py"

# What the SDK takes and the proxy refuses: case to reason.
STRICTER = {
    "exp missing": "a token without an end would be good for ever",
    "exp string": "times are numbers (RFC 7519, section 2)",
    "exp float": "App Check's times are whole seconds; another shape is another issuer",
    "iat missing": "without it neither the lifetime nor a future token can be told",
    "iss other project": "the issuer is compared whole; keys are shared by all projects (pitfall T7)",
    "iss no suffix": "the same",
    "sub empty": "a token of no app (pitfall T8)",
    "eight days": "App Check issues no token for longer than seven days",
    "number of the other project": "the audience names both number and id of the project",
}

# What the SDK refuses and the proxy takes, because of the leeway of 60 s that the design documents.
LEEWAY = {
    "expired 1s, issued an hour ago": "within the leeway on exp",
    "iat +5s": "within the leeway on iat",
    "nbf future": "60 s ahead is within the leeway on nbf",
}

# Refused by the SDK for no reason of security.
LENIENT = {
    "leading space": "white space around a field value is no part of it (RFC 9110, section 5.5)",
}


@pytest.fixture(scope="module")
def oracle():
    if not ORACLE.exists():
        pytest.skip(f"skipped: the optional fixture folder has no {ORACLE.name}")
    spec = importlib.util.spec_from_file_location("appcheck_oracle", ORACLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sdk(oracle):
    """Whether the official SDK takes a token."""
    import firebase_admin
    import google.auth.credentials
    from firebase_admin import app_check, credentials
    from jwt import PyJWKClient

    class Anonymous(credentials.Base):
        def get_credential(self):
            return google.auth.credentials.AnonymousCredentials()

    app = firebase_admin.initialize_app(Anonymous(), {"projectId": "pid"})
    app_check._get_app_check_service(app)._jwks_client = PyJWKClient(oracle.url, lifespan=21600)

    def accepts(token: str) -> bool:
        try:
            app_check.verify_token(token)
            return True
        except Exception:
            return False

    yield accepts
    firebase_admin.delete_app(app)



def more_cases(oracle) -> dict:
    """Cases beside the oracle's: its expired tokens were issued after they expired, which is refused for itself."""
    now = int(time.time())
    return {
        "expired 1s, issued an hour ago": lambda: oracle.tok(pl={"exp": now - 1, "iat": now - 3600}),
        "expired 61s, issued an hour ago": lambda: oracle.tok(pl={"exp": now - 61, "iat": now - 3600}),
        "eight days": lambda: oracle.tok(pl={"exp": now + 8 * 86400}),
        "crit": lambda: oracle.tok({"crit": ["exp"]}),
        "number of the other project": lambda: oracle.tok(pl={"aud": ["projects/999", "projects/pid"]}),
    }


PROJECT = '''
[project.oracle]
number = "123"
id = "pid"
jwks = "@JWKS@"
apps = { ios = "1:123:ios:abc" }
'''

ROUTE = '''
[[route]]
name = "judged"
path = "/judged"
upstream = "api"
app_check = "enforce"
'''


def test_every_difference_to_the_sdk_is_intended(oracle, sdk, start, tmp_path):
    path = tmp_path / "oracle.json"
    path.write_text(json.dumps(oracle.jwks()))
    origin = Origin()
    proxy = start(origin, jwks=path, projects=PROJECT, routes=ROUTE)
    stricter, looser = {}, {}
    for name, make in (oracle.cases | more_cases(oracle)).items():
        token = make()
        tokens.minted.add(token)
        theirs = sdk(token)
        response = proxy.ask("GET", "/judged", token=token)
        assert response.status in (200, 401), (name, response.head)
        ours = response.status == 200
        if theirs and not ours:
            stricter[name] = response.code
        if ours and not theirs:
            looser[name] = origin.last().get("x-appcheck-verdict")
    origin.stop()
    assert len(oracle.cases) >= 33
    assert set(stricter) == set(STRICTER)
    assert set(looser) == set(LEEWAY) | set(LENIENT)


def test_key_sets_that_the_sdk_reads_are_read(oracle, start, tmp_path):
    for name, keys in (("padded", oracle.jwks(pad=True)), ("no-use", oracle.jwks(use=None))):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(keys))
        origin = Origin()
        token = oracle.tok()
        tokens.minted.add(token)
        assert start(origin, jwks=path, projects=PROJECT, routes=ROUTE).ask(
            "GET", "/judged", token=token).status == 200
        origin.stop()
