"""RSA keys, key sets and App Check tokens, right ones and wrong ones."""

import base64
import json
import time
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

NUMBER = "123456789012"
PROJECT_ID = "my-app"
ISSUER = f"https://firebaseappcheck.googleapis.com/{NUMBER}"
IOS = f"1:{NUMBER}:ios:0a1b2c3d4e5f"
ANDROID = f"1:{NUMBER}:android:1f2e3d4c5b6a"
# A second project, whose tokens are signed with the same keys, as all of Google's are.
OTHER_NUMBER = "210987654321"
OTHER_PROJECT_ID = "other-app"
OTHER_ISSUER = f"https://firebaseappcheck.googleapis.com/{OTHER_NUMBER}"
OTHER_IOS = f"1:{OTHER_NUMBER}:ios:ffffffffffff"

PLACEHOLDER = "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ=="

# Everything that was minted in this run, so that the proxy's output can be searched for it.
minted: set[str] = set()


def encode(data: bytes) -> str:
    """base64url without padding (RFC 7515, section 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


@dataclass
class SigningKey:
    """A key pair under its key id."""

    kid: str
    bits: int = 2048
    private: rsa.RSAPrivateKey = field(init=False, repr=False)

    def __post_init__(self):
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=self.bits)

    def jwk(self, **changes) -> dict:
        """The public key as a JWK (RFC 7517); a change to None drops the member."""
        public = self.private.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid,
               "n": encode(number_bytes(public.n)), "e": encode(number_bytes(public.e))}
        key.update(changes)
        return {name: value for name, value in key.items() if value is not None}

    def sign(self, data: bytes) -> bytes:
        return self.private.sign(data, padding.PKCS1v15(), hashes.SHA256())


def key_set(*keys) -> dict:
    """A key set of `SigningKey`s and ready-made JWKs."""
    return {"keys": [key.jwk() if isinstance(key, SigningKey) else key for key in keys]}


def mint(key: SigningKey, *, header: dict | None = None, claims: dict | None = None,
         drop: tuple[str, ...] = (), signature: bytes | None = None, lifetime: int = 3600,
         raw_header: bytes | None = None, raw_claims: bytes | None = None) -> str:
    """A token; valid for the first project and its iOS app unless something is changed.

    A header member or claim of None, or named in `drop`, is left out; `raw_…` replaces the JSON altogether.
    """
    now = int(time.time())
    head = {"kid": key.kid, "typ": "JWT", "alg": "RS256"} | (header or {})
    head = {name: value for name, value in head.items() if value is not None}
    body = {"sub": IOS, "aud": [f"projects/{NUMBER}", f"projects/{PROJECT_ID}"],
            "provider": "app_attest", "iss": ISSUER, "exp": now + lifetime, "iat": now,
            "jti": encode(f"{time.monotonic_ns()}".encode())} | (claims or {})
    body = {name: value for name, value in body.items() if name not in drop}
    signed = ".".join([encode(raw_header or json.dumps(head).encode()),
                       encode(raw_claims or json.dumps(body).encode())])
    token = f"{signed}.{encode(key.sign(signed.encode()) if signature is None else signature)}"
    minted.add(token)
    return token


def secrets_of(token: str) -> list[str]:
    """The parts of a token that no output may contain."""
    return [part for part in token.split(".")[1:] if len(part) >= 40]
