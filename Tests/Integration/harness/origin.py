"""An origin server that records the exact bytes it gets and answers whatever a test scripts."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from .listening import Server
from .stream import Closed, Message, Stream, read_chunked, read_head, read_length


@dataclass
class Request(Message):
    """A request as the origin got it; `connection` counts the origin's connections from 1."""

    method: str = ""
    target: str = ""
    connection: int = 0


class Exchange:
    """One request and the answer under way, in the hands of a script."""

    def __init__(self, origin: "Origin", stream: Stream, request: Request):
        self.origin = origin
        self.stream = stream
        self.request = request
        self.is_body_read = False
        self.is_over = False

    def read_body(self):
        """Reads the request's body as its head frames it."""
        if self.is_body_read:
            return
        self.is_body_read = True
        encodings = self.request.all("transfer-encoding")
        lengths = self.request.all("content-length")
        # A forwarded message has exactly one framing (pitfall W4); the failure shows in the origin's errors.
        assert not (encodings and lengths) and len(encodings) + len(lengths) <= 1, self.request.head
        if encodings:
            assert encodings == ["chunked"], encodings
            read_chunked(self.stream, self.request.body_read)
        elif lengths:
            read_length(self.stream, self.request.body_read, int(lengths[0]))

    def send(self, data: bytes):
        self.stream.socket.sendall(data)

    def respond(self, status: int = 200, *fields: str, body: bytes = b"ok"):
        """A plain answer with a Content-Length."""
        lines = [f"HTTP/1.1 {status} Scripted", *fields]
        has_body = status not in (204, 304)
        if has_body:
            lines.append(f"Content-Length: {len(body)}")
        data = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.send(data + (body if has_body and self.request.method != "HEAD" else b""))

    def close(self):
        """Ends the connection after what was sent."""
        self.is_over = True

    def reset(self):
        """Ends the connection with a reset."""
        self.stream.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.is_over = True

    def peer_closed(self, within: float = 10) -> bool:
        """Whether the proxy closes this connection within some seconds."""
        self.stream.socket.settimeout(within)
        try:
            while self.stream.fill():
                pass
            return True
        except TimeoutError:
            return False


Script = Callable[[Exchange], None]


class Origin(Server):
    """Listens on loopback. Scripts are chosen by path (without query); others get `200 ok`."""

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0):
        self.tls = tls
        self.changed = threading.Condition()
        self.scripts: dict[str, tuple[Script, bool]] = {}
        self.requests: list[Request] = []
        self.errors: list[str] = []
        self.connections = 0
        self.open_sockets: dict[int, socket.socket] = {}
        self.received = 0
        super().__init__(port)

    def on(self, path: str, script: Script, *, early: bool = False):
        """Runs `script` for requests of `path`; with `early` before their body was read."""
        self.scripts[path] = (script, early)

    def answer(self, path: str, data: bytes, *, then_close: bool = False):
        """Answers requests of `path` with these very bytes."""

        def script(exchange: Exchange):
            exchange.send(data)
            if then_close:
                exchange.close()

        self.on(path, script)

    def forget(self):
        """Back to a fresh origin: no scripts, nothing recorded. Connections stay."""
        with self.changed:
            self.scripts.clear()
            self.requests.clear()
            self.errors.clear()
            self.received = 0

    def wait(self, condition: Callable[[], object], what: str, within: float = 10):
        """Waits until something holds that this origin's threads bring about."""
        with self.changed:
            assert self.changed.wait_for(condition, within), f"never happened: {what}"

    def last(self) -> Request:
        """The newest request."""
        with self.changed:
            assert self.requests, "the origin saw no request"
            return self.requests[-1]

    def targets(self) -> list[str]:
        """What was asked for, in order."""
        with self.changed:
            return [request.target for request in self.requests]

    def close_idle(self):
        """Closes every open connection from this side, those that are just coming in too."""
        deadline = time.monotonic() + 10
        with self.changed:
            while self.open_sockets:
                assert time.monotonic() < deadline, "the origin's connections do not end"
                for sock in self.open_sockets.values():
                    try:
                        # Below TLS: its own shutdown is not for other threads.
                        socket.socket.shutdown(sock, socket.SHUT_RDWR)
                    except OSError:
                        pass
                self.changed.wait(0.1)

    def stop(self):
        """Refuses new connections and drops the old ones."""
        super().stop()
        self.close_idle()

    def _take(self, sock: socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.changed:
            self.connections += 1
            number = self.connections
            self.open_sockets[number] = sock
            self.changed.notify_all()
        threading.Thread(target=self._converse, args=(sock, number), daemon=True).start()

    def _converse(self, sock: socket.socket, number: int):
        try:
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
                with self.changed:
                    self.open_sockets[number] = sock
            stream = Stream(sock)
            while self._serve_one(stream, number):
                pass
        except (Closed, OSError):
            pass
        except Exception as error:
            with self.changed:
                self.errors.append(repr(error))
        finally:
            sock.close()
            with self.changed:
                self.open_sockets.pop(number, None)
                self.changed.notify_all()

    def _serve_one(self, stream: Stream, number: int) -> bool:
        if not stream.buffer and not stream.fill():
            return False
        with self.changed:
            self.received += len(stream.buffer)
        message = read_head(stream)
        method, target, version = message.start_line.split(" ")
        assert version == "HTTP/1.1", message.start_line
        request = Request(message.head, message.start_line, message.fields,
                          method=method, target=target, connection=number)
        exchange = Exchange(self, stream, request)
        script, is_early = self.scripts.get(target.split("?")[0], (Exchange.respond, False))
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        if not is_early:
            exchange.read_body()
        script(exchange)
        if not exchange.is_over:
            exchange.read_body()
        with self.changed:
            self.changed.notify_all()
        return not exchange.is_over


class Gate:
    """Holds a script until the test opens it, or the test's patience ends."""

    def __init__(self):
        self._event = threading.Event()

    def open(self):
        self._event.set()

    def wait(self, within: float = 20) -> bool:
        return self._event.wait(within)

    def is_open(self) -> bool:
        return self._event.is_set()


def wait_until(condition: Callable[[], object], what: str, within: float = 10):
    """Polls for something that only another process can bring about."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)
