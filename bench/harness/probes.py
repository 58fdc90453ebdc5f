"""Single requests that prove what a contestant does, each on a connection of its own."""

import http.client
import re
import ssl
import subprocess
import time
from pathlib import Path

from .processes import Broken


def any_certificate() -> ssl.SSLContext:
    """A client that believes everybody: what is measured is the other side."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def probe(
    port: int,
    path: str,
    token: str = "",
    *,
    tls: bool = False,
    h2: bool = False,
    call: Path | None = None,
) -> tuple[int, bytes]:
    """Status and body of one request; with `call`, of a gRPC call with that file as its body."""
    fields = {"X-Firebase-AppCheck": token} if token else {}
    if call:
        return _call(port, path, fields, call)
    if h2:
        return _http2(port, path, fields)
    if tls:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=10, context=any_certificate()
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=fields)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _http2(port: int, path: str, fields: dict[str, str]) -> tuple[int, bytes]:
    """By curl, as Python has no HTTP/2 of its own."""
    command = ["curl", "--silent", "--insecure", "--http2", "--max-time", "10"]
    command += ["--write-out", "%{stderr}%{http_version} %{http_code}"]
    for name, value in fields.items():
        command += ["--header", f"{name}: {value}"]
    command.append(f"https://127.0.0.1:{port}{path}")
    done = subprocess.run(command, capture_output=True, timeout=20)
    version, _, status = done.stderr.decode("latin-1").partition(" ")
    if done.returncode or version != "2":
        raise Broken(f"no HTTP/2: curl exited with {done.returncode}: {done.stderr[-500:]!r}")
    return int(status), done.stdout


def _call(port: int, path: str, fields: dict[str, str], call: Path) -> tuple[int, bytes]:
    """By nghttp, as curl hides trailers. All that came is the body; the status is what that of gRPC stands for."""
    command = ["nghttp", "--verbose", "--no-dep", "--timeout=10", f"--data={call}"]
    fields = fields | {"Content-Type": "application/grpc", "TE": "trailers"}
    for name, value in fields.items():
        command += [f"--header={name}: {value}"]
    command.append(f"https://127.0.0.1:{port}{path}")
    done = subprocess.run(command, capture_output=True, timeout=20)
    status = _received(b":status", done.stdout)
    if status == 200:
        status = {0: 200, 16: 401}.get(_received(b"grpc-status", done.stdout), 500)
    return status, done.stdout


def _received(name: bytes, told: bytes) -> int:
    """The number in a field that nghttp received, or -1."""
    found = re.search(rb"recv \(stream_id=\d+\) " + name + rb": (\d+)", told)
    return int(found[1]) if found else -1


def await_answer(
    port: int,
    path: str,
    token: str,
    status: int,
    *,
    tls: bool = False,
    h2: bool = False,
    call: Path | None = None,
) -> bytes:
    """The body of the first answer with `status`: a proxy may need a moment to read its key set."""
    deadline = time.monotonic() + 10
    while True:
        seen, body = probe(port, path, token, tls=tls, h2=h2, call=call)
        if seen == status:
            return body
        if time.monotonic() > deadline:
            raise Broken(f"{path} answered {seen} instead of {status}: {body[-200:]!r}")
        time.sleep(0.1)
