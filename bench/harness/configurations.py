"""The configuration of every contestant, and of the backend behind them: each at its best, same work."""

import json
import resource
from pathlib import Path

from .certificate import Certificate
from .tokens import APP_ID, AUDIENCE, ISSUER, PROJECT_ID, PROJECT_NUMBER, TokenSet

BACKEND_PORT = 18300
GRPC_BACKEND_PORT = 18301
# A message as gRPC frames it: not compressed, its length, 200 bytes. Calls and answers are the same.
GRPC_MESSAGE = b"\0" + (200).to_bytes(4, "big") + b"m" * 200
# More than any workload opens, and small enough not to charge nginx for slots that nobody uses.
CONNECTIONS = 12_000


def backend(run: Path, connections: int = CONNECTIONS) -> str:
    """nginx that answers from memory; it never writes a log and never closes a connection."""
    (run / "files").mkdir(exist_ok=True)
    (run / "files" / "1mib").write_bytes(b"m" * (1 << 20))
    (run / "files" / "10mib").write_bytes(b"m" * (10 << 20))
    (run / "files" / "message").write_bytes(GRPC_MESSAGE)
    # `return` takes at most 4 KiB a literal, so the 16 KiB answer is sixteen of 1 KiB.
    return _nginx(
        run,
        f"""
  default_type application/octet-stream; etag off; sendfile on; open_file_cache max=16;
  server {{
    listen 127.0.0.1:{BACKEND_PORT} backlog=4096;
    set $kib "{"k" * 1024}";
    location = /1mib {{ root {run}/files; }}
    location = /10mib {{ root {run}/files; }}
    # A body is read to its end before this is answered: the mirror, of nothing, does that.
    location = /upload {{
      client_max_body_size 0; client_body_timeout 1h; mirror /nowhere; root {run}/files; try_files /message =404;
      error_page 405 =200 /message;
    }}
    location = /message {{ root {run}/files; }}
    location = /nowhere {{ internal; return 204; }}
    location = /16kib {{ return 200 "{"$kib" * 16}"; }}
    location = /verdict {{ return 200 "$http_x_appcheck_verdict"; }}
    location / {{ return 200 "{"x" * 200}"; }}
  }}
  server {{
    listen 127.0.0.1:{GRPC_BACKEND_PORT} http2 backlog=4096;
    default_type application/grpc; add_trailer grpc-status 0;
    # A file is not for POST, but 405 may be answered with it. The mirror, of nothing, reads the call first. Includes
    # that are not there take the length away, which servers of gRPC do not send.
    ssi on; ssi_types application/grpc;
    location / {{ mirror /nothing; root {run}/files; try_files /message =404; error_page 405 =200 /message; }}
    location = /message {{ root {run}/files; }}
    location = /nothing {{ internal; return 204; }}
  }}""",
        connections,
    )


def nginx(
    run: Path,
    port: int,
    location: str,
    access_log: str = "access_log off;",
    certificate: Certificate | None = None,
    *,
    grpc: bool = False,
    connections: int = CONNECTIONS,
) -> str:
    """nginx as a reverse proxy; `location` is what it does with every request."""
    tls = (
        f"""ssl_certificate {certificate.certificate}; ssl_certificate_key {certificate.key};
    ssl_protocols TLSv1.2 TLSv1.3;"""
        if certificate
        else ""
    )
    return _nginx(
        run,
        f"""
  upstream backend {{
    server 127.0.0.1:{_backend_port(grpc)};
    keepalive 256; keepalive_requests 1000000000; keepalive_timeout 3600s;
  }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
  proxy_buffers 16 16k; proxy_max_temp_file_size 0;
  log_format json escape=json '{{"time":"$time_iso8601","id":"$request_id","client":"$remote_addr",'
    '"method":"$request_method","host":"$host","uri":"$uri","protocol":"$server_protocol",'
    '"status":$status,"bytes_in":$request_length,"bytes_out":$bytes_sent,'
    '"duration":$request_time,"upstream":"$upstream_addr",'
    '"upstream_duration":"$upstream_response_time","user_agent":"$http_user_agent"}}';
  server {{
    listen 127.0.0.1:{port} {"ssl http2 " if certificate else ""}backlog=4096;
    {tls}
    {access_log}
    location / {{ {location} }}
  }}""",
        connections,
    )


def _nginx(run: Path, http: str, connections: int) -> str:
    temporary = "\n".join(
        f"  {kind}_temp_path {run}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""worker_processes 1; daemon off; master_process off;
error_log {run}/error.log error; pid {run}/nginx.pid;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
  access_log off; server_tokens off; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 3600s;
{temporary}{http}
}}
"""


def haproxy(
    port: int,
    rules: str = "",
    certificate: Certificate | None = None,
    *,
    grpc: bool = False,
) -> str:
    """HAProxy with one thread; `rules` come before the backend is chosen."""
    # By itself it asks for two descriptors per possible connection, and gives up where that is too many.
    tls = f" ssl crt {certificate.both} alpn h2,http/1.1" if certificate else ""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return f"""global
  nbthread 1
  maxconn {CONNECTIONS}
  no strict-limits
  ulimit-n {descriptors}
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  http-reuse always
frontend public
  bind 127.0.0.1:{port} backlog 4096{tls}
{rules}
  default_backend origin
backend origin
  server only 127.0.0.1:{_backend_port(grpc)} pool-max-conn 256{" proto h2" if grpc else ""}
"""


def haproxy_token_rules(tokens: TokenSet, bits: int) -> str:
    """What HAProxy 2.6 can check by itself: the signature by one named key, and claims one by one."""
    refuse = "  http-request deny deny_status 401"
    return f"""{refuse} unless {{ req.fhdr_cnt(X-Firebase-AppCheck) eq 1 }}
  http-request set-var(txn.token) req.fhdr(X-Firebase-AppCheck)
  http-request set-var(txn.alg) var(txn.token),jwt_header_query('$.alg')
  http-request set-var(txn.iss) var(txn.token),jwt_payload_query('$.iss')
  http-request set-var(txn.aud) var(txn.token),jwt_payload_query('$.aud[0]')
  http-request set-var(txn.exp) var(txn.token),jwt_payload_query('$.exp','int')
  http-request set-var(txn.now) date()
{refuse} unless {{ var(txn.alg) -m str RS256 }}
{refuse} unless {{ var(txn.iss) -m str {ISSUER} }}
{refuse} unless {{ var(txn.aud) -m str {AUDIENCE} }}
{refuse} if {{ var(txn.exp),sub(txn.now) -m int le 0 }}
{refuse} unless {{ var(txn.token),jwt_verify(txn.alg,"{tokens.public_key(bits)}") -m int 1 }}"""


def envoy(
    port: int,
    tokens: TokenSet | None = None,
    cache: int = 0,
    certificate: Certificate | None = None,
    *,
    grpc: bool = False,
) -> str:
    """Envoy, with jwt_authn when `tokens` are given and its cache of `cache` tokens when not 0."""
    extension = "type.googleapis.com/envoy.extensions.filters"
    filters = []
    if tokens is not None:
        provider = {
            "issuer": ISSUER,
            "audiences": [AUDIENCE],
            "from_headers": [{"name": "X-Firebase-AppCheck"}],
            "local_jwks": {"inline_string": tokens.key_set.read_text()},
        }
        if cache:
            provider["jwt_cache_config"] = {"jwt_cache_size": cache}
        filters.append(
            {
                "name": "envoy.filters.http.jwt_authn",
                "typed_config": {
                    "@type": f"{extension}.http.jwt_authn.v3.JwtAuthentication",
                    "providers": {"app_check": provider},
                    "rules": [
                        {"match": {"prefix": "/"}, "requires": {"provider_name": "app_check"}}
                    ],
                },
            }
        )
    filters.append(
        {
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": f"{extension}.http.router.v3.Router"},
        }
    )
    manager = {
        "@type": f"{extension}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "public",
        "http_filters": filters,
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            "route": {"cluster": "backend", "timeout": "0s"},
                        }
                    ],
                }
            ]
        },
    }
    limits = {f"max_{what}": 100_000 for what in ("connections", "pending_requests", "requests")}
    cluster = {
        "name": "backend",
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [limits]},
        "load_assignment": {
            "cluster_name": "backend",
            "endpoints": [
                {"lb_endpoints": [{"endpoint": {"address": _socket_address(_backend_port(grpc))}}]}
            ],
        },
    }
    if grpc:
        options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        cluster["typed_extension_protocol_options"] = {
            options: {
                "@type": f"type.googleapis.com/{options}",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        }
    listener = {
        "name": "public",
        "address": _socket_address(port),
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": manager,
                    }
                ]
            }
        ],
    }
    if certificate:
        pair = {
            "certificate_chain": {"filename": str(certificate.certificate)},
            "private_key": {"filename": str(certificate.key)},
        }
        sockets = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
        listener["filter_chains"][0]["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": f"{sockets}.DownstreamTlsContext",
                "common_tls_context": {
                    "alpn_protocols": ["h2", "http/1.1"],
                    "tls_certificates": [pair],
                },
            },
        }
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}})


def _backend_port(grpc: bool) -> int:
    return GRPC_BACKEND_PORT if grpc else BACKEND_PORT


def _socket_address(port: int) -> dict:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def portcullis(
    run: Path,
    port: int,
    tokens: TokenSet,
    *,
    app_check: str,
    access_log: str = "off",
    token_cache: str | None = None,
    max_connections: int | None = None,
    routes: int = 1,
    claims: str | None = None,
    certificate: Certificate | None = None,
    grpc: bool = False,
    limits: str = 'idle_timeout = "1h"',
) -> str:
    """Portcullis with one worker; see `route_paths` for what more than one route means. `claims` names the store
    of spent tokens."""
    (run / "state").mkdir(exist_ok=True)
    cache = f'token_cache = "{token_cache}"\n' if token_cache else ""
    most = f"max_connections = {max_connections}\n" if max_connections else ""
    # The tokens are older than the store, which begins with each run: it records them, and says that it cannot
    # vouch for them. They live for days, too, to be kept.
    replay = (
        f"""
[replay]
store = "{claims}"
when_unavailable = "allow"
limited_use_max_lifetime = "7d"
max_entries = 400000
"""
        if claims
        else ""
    )
    tls = (
        f'tls.certificates = [{{ certificate = "{certificate.certificate}", '
        f'key = "{certificate.key}" }}]\nprotocols = ["h2", "http/1.1"]\n'
        if certificate
        else ""
    )
    protection = 'replay = "enforce"\n' if claims else ""
    head = f"""[server]
workers = 1
state_directory = "{run}/state"
drain_timeout = "1s"
{cache}{most}
[log]
level = "error"
access = "{access_log}"

[[listener]]
listen = "127.0.0.1:{port}"
limits = {{ {limits} }}
{tls}
[project.bench]
number = "{PROJECT_NUMBER}"
id = "{PROJECT_ID}"
jwks = "{tokens.key_set}"
apps = {{ ios = "{APP_ID}" }}

[upstream.backend]
servers = ["127.0.0.1:{_backend_port(grpc)}"]
idle_connections = 256
{'protocol = "h2c"' if grpc else ""}
{replay}"""
    return head + "".join(
        f"""
[[route]]
name = "route-{number}"
path = "{path}"
upstream = "backend"
app_check = "{app_check}"
{protection}"""
        for number, path in enumerate(_route_patterns(routes))
    )


def route_paths(count: int) -> list[str]:
    """One request path for each of `count` routes, all equally long whatever the count."""
    # Half exact, half prefixes: the two kinds that a table answers in different ways.
    return [
        f"/v1/{'exact' if number % 2 == 0 else 'under'}-{number:06d}/item"
        for number in range(count)
    ]


def _route_patterns(count: int) -> list[str]:
    if count == 1:
        return ["/*"]
    return [
        path if "exact" in path else path.removesuffix("item") + "*" for path in route_paths(count)
    ]
