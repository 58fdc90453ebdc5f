"""A WebSocket backend, WebSocket clients by a library, and the bytes of a handshake by hand."""

import base64
import hashlib
import socket
import threading

from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import CloseCode, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.sync.client import connect
from websockets.sync.server import serve

from .client import HOST
from .listening import Server

SUBPROTOCOLS = ["chat", "superchat"]
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Backend:
    """Echoes messages. It keeps the head of each handshake, and runs what a test gives it for a path instead of the echo."""

    def __init__(self):
        self.handshakes = []
        self.closed = []
        self.changed = threading.Condition()
        self.handlers = {}
        self.server = serve(self._handle, "127.0.0.1", 0, subprotocols=SUBPROTOCOLS,
                            select_subprotocol=self._select, process_request=self._note,
                            max_size=None, ping_interval=None)
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def on(self, path: str, handler):
        self.handlers[path] = handler

    def forget(self):
        """Back to a fresh backend: no handlers, nothing recorded."""
        with self.changed:
            self.handshakes.clear()
            self.closed.clear()
            self.handlers.clear()

    def wait(self, condition, what: str, within: float = 10):
        with self.changed:
            assert self.changed.wait_for(condition, within), f"never happened: {what}"

    def stop(self):
        self.server.shutdown()

    @staticmethod
    def _select(connection, offered):
        return next((name for name in SUBPROTOCOLS if name in offered), None)

    def _note(self, connection, request):
        with self.changed:
            self.handshakes.append(request)
            self.changed.notify_all()

    def _handle(self, connection):
        path = connection.request.path.split("?")[0]
        try:
            self.handlers.get(path, self._echo)(connection)
        except ConnectionClosed:
            pass
        finally:
            code = connection.protocol.close_rcvd.code if connection.protocol.close_rcvd else None
            with self.changed:
                self.closed.append((path, code))
                self.changed.notify_all()

    @staticmethod
    def _echo(connection):
        for message in connection:
            connection.send(message)


class Echo(Server):
    """Echoes messages, each before it looks at the next byte, so that what it sends depends on nothing but what it got.

    A library's server reads ahead: what it says to a good and a bad frame in one packet is a race of its own threads.
    """

    # Cases in which something is wrong are shorter than this; of longer ones only the close frame, which comes last, must
    # not be read together with the message before it.
    BY_BYTE, TAIL = 4096, 256

    def _serve(self, sock: socket.socket):
        protocol = ServerProtocol(
            extensions=[ServerPerMessageDeflateFactory()], max_size=None)
        message, received = [], 0
        with sock:
            try:
                while data := sock.recv(1 << 16):
                    block = 0 if received < self.BY_BYTE else max(0, len(data) - self.TAIL)
                    received += len(data)
                    for piece in (data[:block], *(data[at:at + 1] for at in range(block, len(data)))):
                        if piece:
                            protocol.receive_data(piece)
                        self._answer(protocol, message)
                        if self._send(protocol, sock):
                            # Bytes that come now would reset the connection under our last words.
                            while sock.recv(1 << 16):
                                pass
                            return
            except OSError:
                pass

    @staticmethod
    def _answer(protocol: ServerProtocol, message: list):
        for event in protocol.events_received():
            if isinstance(event, Request):
                protocol.send_response(protocol.accept(event))
            elif event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                message.append(event)
                if not event.fin:
                    continue
                opcode, data = message[0].opcode, b"".join(part.data for part in message)
                message.clear()
                try:
                    if opcode is Opcode.BINARY:
                        protocol.send_binary(data)
                    else:
                        data.decode()
                        protocol.send_text(data)
                except UnicodeDecodeError:
                    protocol.fail(CloseCode.INVALID_DATA)
                except InvalidState:
                    pass

    @staticmethod
    def _send(protocol: ServerProtocol, sock: socket.socket) -> bool:
        """Whether that was the last of it."""
        for data in protocol.data_to_send():
            if not data:
                sock.shutdown(socket.SHUT_WR)
                return True
            sock.sendall(data)
        return False


def open_websocket(port: int, path: str = "/enforced/ws", *, token: str | None = None,
                   fields: dict | None = None, **options):
    """A WebSocket through the proxy."""
    fields = {} if fields is None else dict(fields)
    if token is not None:
        fields["X-Firebase-AppCheck"] = token
    sock = socket.create_connection(("127.0.0.1", port))
    options = {"max_size": None, "ping_interval": None, "proxy": None} | options
    return connect(f"ws://{HOST}{path}", sock=sock, additional_headers=fields, **options)


def handshake(path: str, *fields: str, token: str | None = None, upgrade: str = "websocket",
              key: str | None = KEY, method: str = "GET") -> bytes:
    """The head of a handshake as bytes."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", "Connection: Upgrade", f"Upgrade: {upgrade}",
             "Sec-WebSocket-Version: 13"]
    if key is not None:
        lines.append(f"Sec-WebSocket-Key: {key}")
    if token is not None:
        lines.append(f"X-Firebase-AppCheck: {token}")
    return "\r\n".join([*lines, *fields]).encode() + b"\r\n\r\n"


def accept(key: str) -> str:
    """The answer to a key (RFC 6455, section 4.2.2)."""
    return base64.b64encode(hashlib.sha1((key + SUFFIX).encode()).digest()).decode()


def switching(request, *fields: str, accept_value: str | None = None, upgrade: str = "websocket") -> bytes:
    """The answer that opens a WebSocket, to a request that a harness.origin.Origin got."""
    value = accept_value or accept(request.get("sec-websocket-key") or "")
    lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {upgrade}",
             f"Sec-WebSocket-Accept: {value}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"
