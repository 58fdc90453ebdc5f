"""Keys and App Check tokens of the size and shape that Firebase issues, made once and kept."""

import base64
import json
import os
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

PROJECT_NUMBER = "123456789012"
PROJECT_ID = "bench-app"
APP_ID = f"1:{PROJECT_NUMBER}:ios:0a1b2c3d4e5f60718293a4"
ISSUER = f"https://firebaseappcheck.googleapis.com/{PROJECT_NUMBER}"
AUDIENCE = f"projects/{PROJECT_NUMBER}"
KEY_BITS = (2048, 3072)
DISTINCT = 20_000
# One for each request of a run of `workloads.ONCE_LENGTH` seconds at 45,000 requests a second.
ONCE = 225_000
ONCE_BITS = 2048
# A session token may live for seven days; a day of margin keeps a kept set valid for a whole run.
LIFETIME = 6 * 86_400
KEEP = 4 * 86_400


@dataclass(frozen=True)
class TokenSet:
    """What one folder holds: the key set, and for each key size its PEM and its tokens."""

    folder: Path

    @property
    def key_set(self) -> Path:
        return self.folder / "jwks.json"

    def public_key(self, bits: int) -> Path:
        return self.folder / f"rsa{bits}.pem"

    def tokens(self, bits: int) -> list[str]:
        return (self.folder / f"tokens{bits}.txt").read_text().split()

    def once(self) -> list[str]:
        """As many tokens as a run has requests. Made when they are asked for first: it takes minutes."""
        file = self.folder / "once.txt"
        if not file.exists():
            cores = os.cpu_count() or 1
            with ProcessPoolExecutor(cores) as pool:
                parts = pool.map(_signed, [self.private_key] * cores, [ONCE // cores + 1] * cores)
                made = [token for part in parts for token in part]
            part = file.with_suffix(".part")
            part.write_text("\n".join(made) + "\n")
            part.rename(file)
        return file.read_text().split()

    @property
    def private_key(self) -> Path:
        """The key of `ONCE_BITS` bits."""
        return self.folder / "private.pem"


def prepared(folder: Path) -> TokenSet:
    """The tokens in `folder`, made again when they are absent or about to grow too old."""
    stamp = folder / "made"
    # A folder of an earlier version has no private key.
    is_whole = stamp.exists() and TokenSet(folder).private_key.exists()
    if not is_whole or time.time() - float(stamp.read_text()) > KEEP:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _make(TokenSet(folder))
        stamp.write_text(str(time.time()))
    return TokenSet(folder)


def tampered(token: str) -> str:
    """The same token with one character of its signature changed: well-formed, and never genuine."""
    position = token.rindex(".") + 100
    other = "A" if token[position] != "A" else "B"
    return token[:position] + other + token[position + 1 :]


def _make(tokens: TokenSet) -> None:
    # A decoy first: a key set serves several keys, and the right one must be found by its kid.
    keys = [_jwk(rsa.generate_private_key(65537, 2048), "bench-decoy")]
    now = int(time.time())
    for bits in KEY_BITS:
        key = rsa.generate_private_key(65537, bits)
        kid = f"bench-{bits}"
        keys.append(_jwk(key, kid))
        tokens.public_key(bits).write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        if bits == ONCE_BITS:
            tokens.private_key.write_bytes(
                key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                )
            )
        lines = "\n".join(_token(key, kid, now) for _ in range(DISTINCT))
        (tokens.folder / f"tokens{bits}.txt").write_text(lines + "\n")
    tokens.key_set.write_text(json.dumps({"keys": keys}))


def _signed(private_key: Path, count: int) -> list[str]:
    key = serialization.load_pem_private_key(private_key.read_bytes(), None)
    now = int(time.time())
    return [_token(key, f"bench-{ONCE_BITS}", now) for _ in range(count)]


def _token(key: rsa.RSAPrivateKey, kid: str, now: int) -> str:
    header = {"kid": kid, "typ": "JWT", "alg": "RS256"}
    payload = {
        "sub": APP_ID,
        "aud": [AUDIENCE, f"projects/{PROJECT_ID}"],
        "provider": "app_attest",
        "iss": ISSUER,
        "exp": now + LIFETIME,
        "iat": now,
        "jti": _base64url(os.urandom(32)),
    }
    signed = ".".join(
        _base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, payload)
    )
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_base64url(signature)}"


def _jwk(key: rsa.RSAPrivateKey, kid: str) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    return {
        "kty": "RSA",
        "use": "sig",
        "alg": "RS256",
        "kid": kid,
        "n": _base64url(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")),
        "e": _base64url(numbers.e.to_bytes(3, "big")),
    }


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
