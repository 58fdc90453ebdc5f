"""Load that is connections: a TLS handshake, one request, the end. Also the program that makes them."""

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

# No relative imports: the program is run as a file.
THREADS = 8


def handshakes(port: int, path: str, token: str, seconds: float, *, resumed: bool):
    """Opens connections for `seconds`, each new, or each with the session of the one before."""
    from .load import Load, children_seconds
    from .processes import LOAD_CORE, Broken

    before = children_seconds()
    command = ["taskset", "-c", str(LOAD_CORE), sys.executable, str(Path(__file__))]
    command += [str(port), path, token, str(seconds), "resumed" if resumed else "full"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if finished.returncode:
        raise Broken(f"handshakes: {finished.stderr[-500:]}")
    told = json.loads(finished.stdout)
    return Load(
        requests=told["requests"],
        seconds=told["seconds"],
        bytes=told["bytes"],
        error_statuses=told["error_statuses"],
        socket_errors=told["socket_errors"],
        p50_ms=told["p50_ms"],
        p99_ms=told["p99_ms"],
        cpu_seconds=children_seconds() - before,
    )


class _Client:
    """One connection after another."""

    def __init__(self, port: int, path: str, token: str, resumes: bool):
        self.port, self.resumes = port, resumes
        fields = f"Host: 127.0.0.1\r\nConnection: close\r\nX-Firebase-AppCheck: {token}\r\n"
        self.request = f"GET {path} HTTP/1.1\r\n{fields}\r\n".encode()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.session = None
        self.times: list[float] = []
        self.bytes = self.error_statuses = self.socket_errors = 0
        self.mistake: str | None = None

    def run(self, until: float) -> None:
        while time.perf_counter() < until and self.mistake is None:
            start = time.perf_counter()
            try:
                self._connect()
            except OSError:
                self.socket_errors += 1
            self.times.append(time.perf_counter() - start)

    def _connect(self) -> None:
        plain = socket.create_connection(("127.0.0.1", self.port), 10)
        with self.context.wrap_socket(plain, session=self.session) as connection:
            if connection.session_reused != (self.session is not None):
                self.mistake = "a session was not resumed" if self.session else "a session was resumed"
            connection.sendall(self.request)
            answer = b""
            while data := connection.recv(65536):
                answer += data
            self.bytes += len(answer)
            self.error_statuses += not answer.startswith(b"HTTP/1.1 200")
            if self.resumes:
                # Tickets of TLS 1.3 come after the handshake, so that they are there by now.
                self.session = connection.session


def _main() -> None:
    port, path, token, seconds, kind = sys.argv[1:]
    clients = [_Client(int(port), path, token, kind == "resumed") for _ in range(THREADS)]
    start = time.perf_counter()
    threads = [
        threading.Thread(target=client.run, args=(start + float(seconds),)) for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    if mistakes := [client.mistake for client in clients if client.mistake]:
        sys.exit(mistakes[0])
    times = sorted(each for client in clients for each in client.times)
    told = {
        "requests": len(times),
        "seconds": elapsed,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[len(times) * 99 // 100] * 1000,
    }
    for figure in ("bytes", "error_statuses", "socket_errors"):
        told[figure] = sum(getattr(client, figure) for client in clients)
    print(json.dumps(told))


if __name__ == "__main__":
    _main()
