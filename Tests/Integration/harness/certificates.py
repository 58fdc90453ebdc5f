"""Certificates of the tests' own: authorities, what they issue, and what can be wrong with it."""

import datetime
import ipaddress
import pathlib
import ssl
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


@dataclass
class Identity:
    """A certificate with its key, as files and as objects."""

    certificate: pathlib.Path
    key: pathlib.Path
    x509: x509.Certificate

    @property
    def serial(self) -> int:
        return self.x509.serial_number

    @property
    def toml(self) -> str:
        """As an element of `tls.certificates`."""
        return f'{{ certificate = "{self.certificate}", key = "{self.key}" }}'


class Authority:
    """An authority; `path` is the PEM file to be trusted."""

    def __init__(self, folder: pathlib.Path, name: str = "Test authority"):
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._x509 = (
            self._builder(self._name, self._key.public_key(), -3, 9)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256()))
        self.path = folder / f"{name.replace(' ', '-')}.pem"
        self.path.write_bytes(self._x509.public_bytes(serialization.Encoding.PEM))

    def issue(self, *names: str, file: str, subject: str = "test", days: tuple[int, int] = (-2, 5),
              usage: str = "server", replace: bool = False) -> Identity:
        """A certificate in `file`.pem and `file`.key; with `replace` over those of an earlier one."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Tests"),
                          x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = self._builder(name, key.public_key(), *days)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([self._general(name) for name in names]), critical=False)
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if usage == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        paths = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        assert replace or not paths[0].exists(), "two certificates in one file"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        paths[1].chmod(0o600)
        return Identity(*paths, certificate)

    def say(self, identity: Identity, file: str, *, hours: int = 24, revoked: bool = False) -> pathlib.Path:
        """An OCSP response about a certificate, to be replaced in so many hours."""
        now = datetime.datetime.now(datetime.UTC)
        status = ocsp.OCSPCertStatus.REVOKED if revoked else ocsp.OCSPCertStatus.GOOD
        response = ocsp.OCSPResponseBuilder().add_response(
            cert=identity.x509, issuer=self._x509, algorithm=hashes.SHA1(), cert_status=status,
            this_update=now - 2 * DAY, next_update=now + datetime.timedelta(hours=hours),
            revocation_time=now - 2 * DAY if revoked else None, revocation_reason=None,
        ).responder_id(ocsp.OCSPResponderEncoding.HASH, self._x509).sign(self._key, hashes.SHA256())
        path = self.folder / file
        path.write_bytes(response.public_bytes(serialization.Encoding.DER))
        return path

    def client(self, *alpn: str, identity: Identity | None = None) -> ssl.SSLContext:
        """A client's context that trusts this authority alone."""
        context = ssl.create_default_context(cafile=str(self.path))
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if identity:
            context.load_cert_chain(identity.certificate, identity.key)
        return context

    def server(self, identity: Identity, *, clients: "Authority | None" = None) -> ssl.SSLContext:
        """A server's context with a certificate; with `clients` it asks for one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.certificate, identity.key)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.path)
        return context

    @staticmethod
    def _general(name: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    def _builder(self, subject: x509.Name, key, first: int, last: int) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
                .serial_number(x509.random_serial_number())
                .not_valid_before(now + first * DAY).not_valid_after(now + last * DAY))
