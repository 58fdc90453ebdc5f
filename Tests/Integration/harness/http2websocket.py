"""A WebSocket over one HTTP/2 stream (RFC 8441), by two libraries that know nothing of each other's layer."""

import socket

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (DataReceived, ResponseReceived, StreamEnded, StreamReset,
                       RemoteSettingsChanged, ConnectionTerminated)
from h2.settings import SettingCodes
from websockets.frames import Opcode
from websockets.protocol import CLIENT, OPEN, Protocol

from .client import HOST, PATIENCE


class Client:
    """One HTTP/2 connection, on which streams can be opened as WebSockets."""

    def __init__(self, port: int, *, receive_buffer: int | None = None):
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()
        self.streams: dict[int, Stream] = {}
        self.settings = None
        self.goaway = False
        while self.settings is None:
            self.pump()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def pump(self):
        """Takes what comes next."""
        data = self.socket.recv(1 << 16)
        assert data, "the proxy closed the connection"
        for event in self.h2.receive_data(data):
            stream = self.streams.get(getattr(event, "stream_id", None))
            if isinstance(event, RemoteSettingsChanged):
                self.settings = event.changed_settings
            elif isinstance(event, ConnectionTerminated):
                self.goaway = True
            elif stream is not None:
                stream.take(event)
        self.flush()

    @property
    def allows_websocket(self) -> bool:
        setting = self.settings.get(SettingCodes.ENABLE_CONNECT_PROTOCOL)
        return setting is not None and setting.new_value == 1

    def open(self, path: str, *fields: tuple[str, str], protocol: str = "websocket",
             takes_data: bool = True) -> "Stream":
        """Asks for a WebSocket and waits for the answer's head."""
        number = self.h2.get_next_available_stream_id()
        stream = self.streams[number] = Stream(self, number, takes_data)
        self.h2.send_headers(number, [
            (":method", "CONNECT"), (":protocol", protocol), (":scheme", "http"), (":path", path),
            (":authority", HOST), ("sec-websocket-version", "13"), *fields])
        self.flush()
        while stream.fields is None and stream.reset is None:
            self.pump()
        return stream


class Stream:
    def __init__(self, client: Client, number: int, takes_data: bool):
        self.client, self.number, self.takes_data = client, number, takes_data
        self.fields: dict[str, str] | None = None
        self.reset: int | None = None
        self.is_over = False
        self.data = b""
        self.websocket = Protocol(CLIENT, state=OPEN, max_size=None)
        self.messages = []

    @property
    def status(self) -> int | None:
        return int(self.fields[":status"]) if self.fields else None

    def take(self, event):
        if isinstance(event, ResponseReceived):
            self.fields = dict(event.headers)
        elif isinstance(event, StreamReset):
            self.reset = event.error_code
        elif isinstance(event, StreamEnded):
            self.is_over = True
        elif isinstance(event, DataReceived):
            self.data += event.data
            if self.takes_data:
                self.client.h2.acknowledge_received_data(event.flow_controlled_length, self.number)
            if self.status == 200:
                self.websocket.receive_data(event.data)
                self._collect()

    def _collect(self):
        for frame in self.websocket.events_received():
            if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
                self.messages.append(frame.data)
        self._send_frames()

    def _send_frames(self):
        for data in self.websocket.data_to_send():
            if data:
                self.send(data)

    def send(self, data: bytes):
        """Sends bytes as the windows allow."""
        while data:
            room = min(self.client.h2.local_flow_control_window(self.number),
                       self.client.h2.max_outbound_frame_size)
            if room == 0:
                self.client.pump()
                continue
            self.client.h2.send_data(self.number, data[:room])
            self.client.flush()
            data = data[room:]

    def send_message(self, data: bytes):
        self.websocket.send_binary(data)
        self._send_frames()

    def receive_message(self) -> bytes:
        while not self.messages:
            assert not self.is_over and self.reset is None, (self.is_over, self.reset)
            self.client.pump()
        return self.messages.pop(0)

    def close_websocket(self):
        """The closing handshake, then our end of the stream."""
        self.websocket.send_close(1000)
        self._send_frames()
        while self.websocket.close_rcvd is None:
            self.client.pump()
        self.end()

    def end(self):
        self.client.h2.end_stream(self.number)
        self.client.flush()

    def wait_until_over(self):
        while not self.is_over and self.reset is None:
            self.client.pump()
