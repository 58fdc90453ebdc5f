"""Envoy as a backend: a program that was not written here between the proxy and the origin."""

import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from .origin import wait_until
from .proxy import free_port

# The wheel of the requirements brings the binary into the environment.
PROGRAM = next((str(path) for path in sorted(pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/envoy/_bin/envoy"))),
               shutil.which("envoy"))

_HTTP = "type.googleapis.com/envoy.extensions.filters"
_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"


def _address(port: int) -> dict:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


class Envoy:
    """Forwards everything to one origin; WebSockets too, from either version of HTTP."""

    def __init__(self, origin_port: int, *, http2_origin: bool = False, identity=None):
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory()
        file = pathlib.Path(self.folder.name) / "envoy.json"
        file.write_text(json.dumps(self._configuration(origin_port, http2_origin, identity)))
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        self.process = subprocess.Popen(
            [PROGRAM, "-c", str(file), "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning"],
            stdout=self.log, stderr=self.log)
        wait_until(self._listens, "Envoy listens", within=20)

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.output()
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        self.folder.cleanup()

    def _configuration(self, origin_port: int, http2_origin: bool, identity) -> dict:
        manager = {
            "@type": f"{_HTTP}.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "public",
            "http2_protocol_options": {"allow_connect": True},
            "upgrade_configs": [{"upgrade_type": "websocket"}],
            "http_filters": [{"name": "envoy.filters.http.router",
                              "typed_config": {"@type": f"{_HTTP}.http.router.v3.Router"}}],
            "route_config": {"virtual_hosts": [{
                "name": "all", "domains": ["*"],
                "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}]}]}}
        chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        if identity:
            chain["transport_socket"] = {
                "name": "envoy.transport_sockets.tls",
                "typed_config": {
                    "@type": _TLS,
                    "common_tls_context": {
                        "alpn_protocols": ["h2", "http/1.1"],
                        "tls_certificates": [{
                            "certificate_chain": {"filename": str(identity.certificate)},
                            "private_key": {"filename": str(identity.key)}}]}}}
        cluster = {
            "name": "origin", "type": "STATIC", "connect_timeout": "5s",
            "load_assignment": {"cluster_name": "origin", "endpoints": [
                {"lb_endpoints": [{"endpoint": {"address": _address(origin_port)}}]}]}}
        if http2_origin:
            cluster["typed_extension_protocol_options"] = {_OPTIONS: {
                "@type": f"type.googleapis.com/{_OPTIONS}",
                "explicit_http_config": {"http2_protocol_options": {"allow_connect": True}}}}
        return {"static_resources": {
            "listeners": [{"name": "public", "address": _address(self.port), "filter_chains": [chain]}],
            "clusters": [cluster]}}
