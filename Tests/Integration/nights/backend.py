"""A backend of the nights, as a program: `backend.py PORT FILE`. It answers each request with what it was asked, so that a
client can tell its own answer from anybody else's, and notes in FILE each POST that it carried out."""

import asyncio
import base64
import hashlib
import os
import sys
import zlib

PORT, NOTES = int(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
STREAM_PIECES, STREAM_PAUSE = 20, 0.1


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.buffer, self.is_tunnel, self.is_streaming = transport, b"", False, False

    def data_received(self, data):
        if self.is_tunnel:
            self.transport.write(data)
            return
        self.buffer += data
        self.answer_all()

    def answer_all(self):
        while not self.is_streaming and (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            lines = self.buffer[:end].decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            length = int(fields.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4:end + 4 + length], self.buffer[end + 4 + length:]
            method, target, _ = lines[0].split(" ")
            key = next((line.split(": ", 1)[1] for line in lines if line.lower().startswith("sec-websocket-key:")), None)
            self.answer(method, target, body, key)

    def answer(self, method, target, body, key):
        if key is not None:
            accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
            self.transport.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                                 b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + self.buffer)
            self.buffer, self.is_tunnel = b"", True
        elif "/stream/" in target:
            self.is_streaming = True
            asyncio.ensure_future(self.stream(target))
        else:
            if method == "POST":
                os.write(NOTES, f"{target}\n".encode())
            text = f"{method} {target} {len(body)} {zlib.crc32(body)}".encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))

    async def stream(self, target):
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(STREAM_PIECES):
            piece = f"data: {number} {target}\n\n".encode()
            self.transport.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await asyncio.sleep(STREAM_PAUSE)
        self.transport.write(b"0\r\n\r\n")
        self.is_streaming = False
        self.answer_all()


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", PORT, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
