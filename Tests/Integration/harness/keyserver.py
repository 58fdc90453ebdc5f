"""Where the proxy gets its keys: a scripted key server, an authority for its certificate, a CONNECT proxy."""

import datetime
import ipaddress
import json
import pathlib
import socket
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .listening import Server
from .origin import Exchange, Gate, Origin
from .stream import Stream, read_head
from .tokens import key_set


class KeyServer(Origin):
    """Serves a key set at `/jwks`; a test changes what, how and how fast at any time."""

    def __init__(self, *keys, tls: ssl.SSLContext | None = None, port: int = 0):
        super().__init__(tls, port)
        self.body = json.dumps(key_set(*keys)).encode()
        self.status = 200
        self.fields = ["Content-Type: application/json"]
        self.gate: Gate | None = None
        self.on("/jwks", self._serve_keys)

    def _serve_keys(self, exchange: Exchange):
        if self.gate is not None:
            self.gate.wait()
        exchange.respond(self.status, *self.fields, body=self.body)

    def serve(self, *keys):
        """Serves a set of these keys from now on."""
        self.body = json.dumps(key_set(*keys)).encode()
        self.status = 200

    @property
    def hits(self) -> int:
        return self.targets().count("/jwks")

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://localhost:{self.port}/jwks"

    def wait_for_hits(self, count: int):
        self.wait(lambda: len(self.requests) >= count, f"{count} fetches of the key set")


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Integration test authority")])
        certificate = self._builder(self.name, self.key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self.key, hashes.SHA256())
        self.path = directory / "authority.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def context(self, name: str = "localhost", *, expired: bool = False) -> ssl.SSLContext:
        """A server's TLS context with a certificate for one DNS name or IP address."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            alternative = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._builder(subject, key.public_key(), expired).add_extension(
            x509.SubjectAlternativeName([alternative]), critical=False
        ).sign(self.key, hashes.SHA256())
        path = self.directory / f"{name}{'-expired' if expired else ''}.pem"
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _builder(self, subject: x509.Name, public_key, expired: bool = False):
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name)
                .public_key(public_key).serial_number(x509.random_serial_number())
                .not_valid_before(now - 3 * day).not_valid_after(now + (-day if expired else day)))


class ConnectProxy(Server):
    """An HTTP proxy that only tunnels, and writes down where to. Names resolve to loopback here."""

    def __init__(self, refuse: bool = False):
        self.refuse = refuse
        self.heads: list[bytes] = []
        super().__init__()

    def _serve(self, sock: socket.socket):
        stream = Stream(sock)
        message = read_head(stream)
        self.heads.append(message.head)
        method, authority, _ = message.start_line.split(" ")
        if self.refuse or method != "CONNECT":
            sock.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            sock.close()
            return
        far = socket.create_connection(("127.0.0.1", int(authority.rpartition(":")[2])))
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=self._copy, args=(far, sock), daemon=True)
        back.start()
        far.sendall(stream.buffer)
        self._copy(sock, far)

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass
