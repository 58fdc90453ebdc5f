"""Fixtures of the integration tests: an origin, keys, tokens, and the proxy between them."""

import contextlib
import json
import pathlib
import socket
import subprocess
import tempfile
from types import SimpleNamespace

import pytest

from harness import http2
from harness import proxy as proxies
from harness import tokens
from harness.keyserver import Authority, KeyServer
from harness.origin import Origin
from harness.replay import limited
from harness.websocket import Backend


def pytest_configure(config):
    if not proxies.BINARY.exists():
        pytest.exit(f"{proxies.BINARY} is not built: run `make test`, or set PORTCULLIS", returncode=4)


@pytest.fixture(scope="session")
def keys():
    """Two ordinary keys, one as wide as Google's, and one that no key set holds."""
    return SimpleNamespace(first=tokens.SigningKey("k1"), second=tokens.SigningKey("k2"),
                           wide=tokens.SigningKey("wide", 3072), stranger=tokens.SigningKey("k1"))


@pytest.fixture(scope="session")
def mint(keys):
    """Makes a token, signed with the first key unless told otherwise."""

    def make(key=None, **changes) -> str:
        return tokens.mint(key or keys.first, **changes)

    return make


@pytest.fixture(scope="session")
def once(keys):
    """Makes a limited-use token, signed with the first key unless told otherwise."""

    def make(key=None, **changes) -> str:
        return limited(key or keys.first, **changes)

    return make


@pytest.fixture(scope="session")
def key_file(keys, tmp_path_factory) -> pathlib.Path:
    """A key set as a file: the first key and the wide one."""
    path = tmp_path_factory.mktemp("keys") / "jwks.json"
    path.write_text(json.dumps(tokens.key_set(keys.first, keys.wide)))
    return path


@pytest.fixture(scope="module")
def module_origin():
    origin = Origin()
    yield origin
    origin.stop()


@pytest.fixture
def origin(module_origin):
    """The origin behind the shared proxy, as if fresh; its own checks must all have held."""
    module_origin.forget()
    yield module_origin
    assert module_origin.errors == []


@pytest.fixture(scope="module")
def module_second():
    origin = http2.Origin()
    yield origin
    origin.stop()


@pytest.fixture
def behind(module_second):
    """The origin that speaks HTTP/2, for a shared proxy that has one behind it."""
    module_second.forget()
    yield module_second
    assert module_second.errors == []


@pytest.fixture(scope="module")
def module_proxy(module_origin, key_file):
    with running_proxy([module_origin], key_file) as proxy:
        yield proxy


@pytest.fixture
def proxy(module_proxy, origin):
    """A proxy with the standard routes, shared by the tests of a module; it must outlive each of them."""
    yield module_proxy
    assert module_proxy.process.poll() is None, "the proxy died:\n" + module_proxy.output()[-4000:]


@pytest.fixture(scope="module")
def module_backend():
    backend = Backend()
    yield backend
    backend.stop()


@pytest.fixture
def backend(module_backend):
    """The WebSocket backend behind a shared proxy, as if fresh."""
    module_backend.forget()
    return module_backend


@pytest.fixture
def start(tmp_path, key_file, request):
    """Starts a proxy of the test's own: `start(origin, routes=…, upstream=…)`; see harness.proxy.configuration."""
    started = []

    def begin(*origins, ready: str | None = "/readyz", jwks=key_file, environment=None,
              **parts) -> proxies.Portcullis:
        folder = tmp_path / f"proxy-{len(started)}"
        folder.mkdir()
        proxy = start_proxy(folder, origins, jwks, environment, **parts)
        started.append(proxy)
        return proxy.wait_until_ready(ready) if ready else proxy

    yield begin
    try:
        for proxy in started:
            proxy.stop()
    finally:
        for proxy in started:
            proxy.kill()


@pytest.fixture
def new_origin():
    """Makes origins of the test's own."""
    made = []

    def make(**options) -> Origin:
        made.append(Origin(**options))
        return made[-1]

    yield make
    for origin in made:
        origin.stop()


@pytest.fixture
def key_server(keys):
    """A key server on plain http with the first key."""
    server = KeyServer(keys.first)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def resolver(tmp_path_factory) -> pathlib.Path:
    """A getaddrinfo that answers what a test wrote; see resolver.c."""
    library = tmp_path_factory.mktemp("resolver") / "resolver.so"
    source = pathlib.Path(__file__).parent / "resolver/resolver.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


@contextlib.contextmanager
def running_proxy(origins, jwks, **parts):
    """A proxy that answers, for the tests of a module; its own checks must hold when it ends."""
    with tempfile.TemporaryDirectory() as folder:
        proxy = start_proxy(pathlib.Path(folder), origins, jwks, **parts)
        try:
            yield proxy.wait_until_ready()
            proxy.stop()
        finally:
            proxy.kill()


def start_proxy(folder: pathlib.Path, origins, jwks, environment=None, **parts) -> proxies.Portcullis:
    """A proxy before these origins (or ports), not waited for."""
    state = parts.pop("state", folder / "state")
    if not state.exists():
        state.mkdir()
    process = {name: parts.pop(name) for name in ("sockets", "program", "prelude") if name in parts}
    port = parts.pop("port", None) or proxies.free_port()
    admin_port = parts.pop("admin_port", None) or proxies.free_port()
    config = proxies.configuration(
        port=port, admin_port=admin_port, state=state, jwks=str(jwks),
        servers=[getattr(origin, "port", origin) for origin in origins], **parts)
    return proxies.Portcullis(folder, config, port=port, admin_port=admin_port,
                              environment=environment, **process)


@pytest.fixture
def deaf():
    """A port whose backlog is full: the kernel answers no further SYN."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
    yield listener.getsockname()[1]
    for sock in [*fillers, listener]:
        sock.close()
