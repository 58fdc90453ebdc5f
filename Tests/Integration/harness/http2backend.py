"""A WebSocket backend that speaks HTTP/2 (RFC 8441), by two libraries that know nothing of each other's layer."""

from h2.settings import SettingCodes
from websockets.protocol import OPEN, SERVER, Protocol

from . import http2
from .stream import Body
from .websocket import Echo

OFFER = {SettingCodes.ENABLE_CONNECT_PROTOCOL: 1}


class Frames(Body):
    """What came of a WebSocket and was not looked at yet."""

    data = b""

    def append(self, piece: bytes):
        super().append(piece)
        self.data += piece

    def take(self) -> bytes:
        data, self.data = self.data, b""
        return data


class Backend(http2.Origin):
    """Echoes messages of any extended CONNECT, unless a test gives it something else for a path."""

    def __init__(self, settings: dict | None = None, port: int = 0):
        self.closed = []
        super().__init__(OFFER if settings is None else settings, port)

    def take(self, peer, half):
        half.body_read = Frames()
        super().take(peer, half)

    def _script(self, half):
        script, early = super()._script(half)
        if half.get(":protocol") == "websocket" and script is http2.Exchange.respond:
            return self._echo, True
        return script, early

    def _echo(self, exchange):
        offered = exchange.request.get("sec-websocket-protocol") or ""
        exchange.head(200, *([("sec-websocket-protocol", "chat")] if "chat" in offered else []))
        websocket, request = Protocol(SERVER, state=OPEN, max_size=None), exchange.request
        has_ended, message = False, []
        while True:
            exchange.peer.wait(lambda: request.body_read.data or request.is_over or request.reset is not None
                               or exchange.peer.is_closed, "frames, or an end", within=60)
            with exchange.peer.changed:
                data = request.body_read.take()
            if not data:
                break
            websocket.receive_data(data)
            Echo._answer(websocket, message)
            for data in websocket.data_to_send():
                # Nothing stands for the end: a server ends its side first (RFC 6455, section 7.1.1).
                exchange.send(data, end=not data)
                has_ended = has_ended or not data
        if request.is_over and not has_ended:
            exchange.send(end=True)
        with self.changed:
            code = websocket.close_rcvd.code if websocket.close_rcvd else None
            self.closed.append((request.target, code, request.reset))
            self.changed.notify_all()
