"""What is measured."""

from dataclasses import dataclass
from enum import Enum, auto

from . import configurations
from .contestants import Contestant, envoy, haproxy, nginx, portcullis

PORTCULLIS = "Portcullis"
PLAIN_NGINX = "nginx, plain"
WITHOUT_CLAIMS = "Portcullis, no claims"
CLAIMS_IN_MEMORY = "Portcullis, claims in memory"
CLAIMS_IN_FILE = "Portcullis, claims in a file"
# Seconds of warm-up and of measuring; what is warmed up with is used up, too.
ONCE_LENGTH = (1, 4)
_CALL_PATH = "/bench.Echo/Say"
# Two thirds of a core for the most expensive contestant: waiting times are the proxies' own, and no queue's.
_STEADY_RATE = 16_000


class Client(Enum):
    """Who asks; all but the first over TLS."""

    WRK = auto()
    """HTTP/1.1 with keep-alive."""
    H2LOAD = auto()
    GRPC = auto()
    """Unary calls over HTTP/2, on both sides of the proxy."""
    HANDSHAKES = auto()
    """A new connection, with a new session, for each request."""
    RESUMPTIONS = auto()
    """A new connection, with the session of one before, for each request."""


@dataclass(frozen=True)
class Workload:
    """One table: the same requests for every contestant."""

    name: str
    title: str
    contestants: tuple[Contestant, ...]
    reference: str
    """The label of the row that the ratios refer to."""
    bits: int | None = 2048
    """The key size of the tokens that the requests carry; none for no token."""
    distinct: bool = False
    """Every token of the set in turn instead of one."""
    once: bool = False
    """No token twice, so that a run can last no longer than `ONCE_LENGTH`."""
    path: str = "/small"
    routes: tuple[int, ...] = ()
    """The routes of each contestant, where the paths differ by contestant."""
    status: int = 200
    tls: bool = False
    client: Client = Client.WRK
    connections: int = 64
    """Of wrk; the other clients have their own number."""
    rate: int | None = None
    """Requests a second at which the waiting times are compared, too; none where not."""
    beats_peers: bool = False
    """Whether it is a goal to need no more CPU than the best of the peers, and to have no higher p99."""
    raw_verification: bool = False
    """Measure `openssl speed` of that key size between the runs."""


def _plain(name: str, title: str, path: str, rate: int | None = _STEADY_RATE) -> Workload:
    contestants = (
        portcullis(PORTCULLIS, app_check="off"),
        nginx(),
        haproxy(),
        envoy(),
    )
    return Workload(name, title, contestants, PLAIN_NGINX, path=path, rate=rate)


def _plain_tls(
    name: str,
    title: str,
    path: str = "/small",
    client: Client = Client.WRK,
    connections: int = 64,
    rate: int | None = _STEADY_RATE,
) -> Workload:
    grpc = client is Client.GRPC
    contestants = (
        portcullis(PORTCULLIS, app_check="off", tls=True, grpc=grpc),
        nginx(location=_nginx_location(grpc), tls=True, grpc=grpc),
        haproxy(tls=True, grpc=grpc),
        envoy(tls=True, grpc=grpc),
    )
    return _tls(name, title, contestants, path, client, connections, rate)


def _token_same_tls(
    name: str, title: str, path: str = "/small", client: Client = Client.WRK
) -> Workload:
    grpc = client is Client.GRPC
    contestants = (
        portcullis(PORTCULLIS, app_check="enforce", tls=True, grpc=grpc),
        nginx(location=_nginx_location(grpc), tls=True, grpc=grpc),
        haproxy("HAProxy, jwt_verify", bits=2048, tls=True, grpc=grpc),
        envoy("Envoy, jwt_authn with cache", verifies=True, cache=100, tls=True, grpc=grpc),
    )
    return _tls(name, title, contestants, path, client)


def _tls(
    name: str,
    title: str,
    contestants: tuple[Contestant, ...],
    path: str,
    client: Client,
    connections: int = 64,
    rate: int | None = _STEADY_RATE,
) -> Workload:
    return Workload(
        name,
        title,
        contestants,
        PLAIN_NGINX,
        path=path,
        tls=True,
        client=client,
        connections=connections,
        rate=rate,
        beats_peers=True,
    )


def _nginx_location(grpc: bool) -> str:
    return "grpc_pass grpc://backend;" if grpc else "proxy_pass http://backend;"


def _distinct(bits: int) -> Workload:
    contestants = (
        # So small a cache that no token is still in it when its turn comes again.
        portcullis(PORTCULLIS, app_check="enforce", token_cache="64KiB"),
        nginx(),
        haproxy("HAProxy, jwt_verify", bits=bits),
        envoy("Envoy, jwt_authn", verifies=True),
    )
    return Workload(
        f"token-distinct-{bits}",
        f"20,000 distinct tokens, RSA-{bits}, every one verified",
        contestants,
        PLAIN_NGINX,
        bits=bits,
        distinct=True,
        raw_verification=True,
    )


WORKLOADS = (
    _plain("plain", "Plain forwarding, 200-byte answers", "/small"),
    Workload(
        "token-same",
        "One repeated token, verified (RSA-2048)",
        (
            portcullis(PORTCULLIS, app_check="enforce"),
            nginx(),
            haproxy("HAProxy, jwt_verify", bits=2048),
            envoy("Envoy, jwt_authn with cache", verifies=True, cache=100),
        ),
        PLAIN_NGINX,
        rate=_STEADY_RATE,
    ),
    Workload(
        "token-many",
        "20,000 tokens, all of them cached (RSA-2048)",
        (
            portcullis(PORTCULLIS, app_check="enforce", token_cache="256MiB"),
            nginx(),
            envoy("Envoy, jwt_authn with cache", verifies=True, cache=32_768),
        ),
        PLAIN_NGINX,
        distinct=True,
    ),
    _distinct(2048),
    _distinct(3072),
    Workload(
        "token-once",
        "A token of its own for each request, verified and claimed (RSA-2048)",
        tuple(
            portcullis(label, app_check="enforce", token_cache="64KiB", **claims)
            for label, claims in (
                (WITHOUT_CLAIMS, {}),
                (CLAIMS_IN_MEMORY, {"claims": "memory"}),
                (CLAIMS_IN_FILE, {"claims": "file"}),
            )
        ),
        WITHOUT_CLAIMS,
        once=True,
    ),
    Workload(
        "refused",
        "No token: refused with 401",
        (
            portcullis(PORTCULLIS, app_check="enforce"),
            nginx("nginx, return 401", location="return 401;"),
            haproxy("HAProxy, deny 401", bits=2048),
            envoy("Envoy, jwt_authn", verifies=True),
        ),
        "nginx, return 401",
        bits=None,
        status=401,
        rate=_STEADY_RATE,
    ),
    _plain("body-16kib", "Plain forwarding, 16 KiB answers", "/16kib"),
    _plain("body-1mib", "Plain forwarding, 1 MiB answers", "/1mib", rate=None),
    _plain_tls("tls-plain", "Plain forwarding over TLS 1.3 with keep-alive, 200-byte answers"),
    _token_same_tls("tls-token-same", "One repeated token over TLS 1.3, verified (RSA-2048)"),
    _plain_tls("tls-body-16kib", "Plain forwarding over TLS 1.3, 16 KiB answers", "/16kib"),
    _plain_tls(
        "tls-body-10mib",
        "Plain forwarding over TLS 1.3, 10 MiB answers on 8 connections",
        "/10mib",
        connections=8,
        rate=None,
    ),
    _plain_tls(
        "handshakes",
        "A full handshake of TLS 1.3 (P-256), one request, the end",
        client=Client.HANDSHAKES,
        rate=None,
    ),
    _plain_tls(
        "resumptions",
        "A resumed session of TLS 1.3, one request, the end",
        client=Client.RESUMPTIONS,
        rate=None,
    ),
    _plain_tls(
        "h2-plain", "Plain forwarding from HTTP/2, 200-byte answers", client=Client.H2LOAD
    ),
    _token_same_tls(
        "h2-token-same",
        "One repeated token over HTTP/2, verified (RSA-2048)",
        client=Client.H2LOAD,
    ),
    _plain_tls(
        "grpc", "gRPC: unary calls, HTTP/2 on both sides", _CALL_PATH, client=Client.GRPC
    ),
    _token_same_tls(
        "grpc-token-same",
        "gRPC: unary calls with one repeated token, verified (RSA-2048)",
        _CALL_PATH,
        client=Client.GRPC,
    ),
    Workload(
        "routes",
        "10,000 routes against 10 (half exact, half prefixes), every route in turn",
        (
            portcullis("Portcullis, 10 routes", app_check="off", routes=10),
            portcullis("Portcullis, 10,000 routes", app_check="off", routes=10_000),
        ),
        "Portcullis, 10 routes",
        bits=None,
        routes=(10, 10_000),
    ),
    Workload(
        "access-log",
        "One repeated token with an access log line for every request",
        (
            portcullis("Portcullis, log off", app_check="enforce"),
            portcullis(
                "Portcullis, JSON to /dev/null",
                app_check="enforce",
                access_log="all",
                log_to="/dev/null",
            ),
            portcullis(
                "Portcullis, JSON to a file in memory",
                app_check="enforce",
                access_log="all",
                log_to="access.log",
            ),
            nginx(),
            nginx("nginx, combined to a file in memory", log="combined"),
            nginx("nginx, JSON to a file in memory", log="json"),
        ),
        PLAIN_NGINX,
    ),
)

IDLE_CONNECTIONS = 10_000


@dataclass(frozen=True)
class IdleWorkload:
    """One table of memory: connections that have had a request and keep silent."""

    name: str
    title: str
    contestants: tuple[Contestant, ...]
    limit: float
    """The goal: so many times what nginx takes."""
    tls: bool = False


IDLE_WORKLOADS = (
    IdleWorkload(
        "idle",
        "memory with idle keep-alive connections",
        (portcullis(PORTCULLIS, app_check="off"), nginx(), haproxy(), envoy()),
        1.2,
    ),
    IdleWorkload(
        "idle-tls",
        "memory with idle keep-alive connections over TLS 1.3",
        (
            portcullis(PORTCULLIS, app_check="off", tls=True),
            nginx(tls=True),
            haproxy(tls=True),
            envoy(tls=True),
        ),
        1,
        tls=True,
    ),
)
NAMES = tuple(workload.name for workload in (*WORKLOADS, *IDLE_WORKLOADS))


def request_lines(workload: Workload, index: int, tokens: list[str]) -> list[str]:
    """The requests that the contestant at `index` gets, as requests.lua reads them."""
    if workload.routes:
        # As many lines whatever the number of routes: the load generator must cost the same.
        paths = configurations.route_paths(workload.routes[index])
        return [f"{paths[number % len(paths)]}\t" for number in range(max(workload.routes))]
    if workload.distinct or workload.once:
        return [f"{workload.path}\t{token}" for token in tokens]
    return [f"{workload.path}\t{tokens[0] if tokens else ''}"]
