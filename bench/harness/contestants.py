"""Who takes part: how to start it, and on what terms."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import configurations
from .certificate import Certificate
from .tokens import TokenSet

PORT = 18310


@dataclass(frozen=True)
class Setting:
    """Where things are."""

    portcullis: Path
    tokens: TokenSet
    certificate: Certificate


@dataclass(frozen=True)
class Contestant:
    """One row of a table."""

    label: str
    program: str
    """`portcullis`, `nginx`, `haproxy` or `envoy`."""
    configuration: Callable[[Path, Setting], str]
    verifies: bool = False
    """Whether a tampered token must be refused before the run counts."""
    claims: bool = False
    """Whether it must take each token once before the run counts."""
    log_to: str | None = None
    """A file for standard output (where Portcullis logs), relative to the run's folder."""

    def command(self, run: Path, setting: Setting) -> list[str]:
        """Writes the configuration into `run`; the command that starts the contestant with it."""
        file = run / f"{self.program}.conf"
        file.write_text(self.configuration(run, setting))
        executable = executables(setting)[self.program]
        match self.program:
            case "portcullis":
                return [executable, "run", "-c", str(file)]
            case "nginx":
                return [executable, "-c", str(file)]
            case "haproxy":
                return [executable, "-db", "-f", str(file)]
            case _:
                as_json = file.rename(run / "envoy.json")
                once = ["--concurrency", "1", "--disable-hot-restart", "-l", "off"]
                return [executable, "-c", str(as_json), *once]


def executables(setting: Setting) -> dict[str, str | None]:
    """Each program's path; none where it is not installed."""
    envoys = sorted(Path(sys.prefix).glob("lib/python3*/site-packages/envoy/_bin/envoy"))
    return {
        "portcullis": str(setting.portcullis) if setting.portcullis.exists() else None,
        "nginx": shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin"),
        "haproxy": shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin"),
        "envoy": str(envoys[0]) if envoys else None,
    }


def portcullis(
    label: str, *, app_check: str, log_to: str | None = None, tls: bool = False, **options
) -> Contestant:
    """Portcullis; `options` are those of `configurations.portcullis`."""
    return Contestant(
        label,
        "portcullis",
        lambda run, setting: configurations.portcullis(
            run,
            PORT,
            setting.tokens,
            app_check=app_check,
            certificate=setting.certificate if tls else None,
            **options,
        ),
        verifies=app_check == "enforce",
        claims="claims" in options,
        log_to=log_to,
    )


def nginx(
    label: str = "nginx, plain",
    location: str = "proxy_pass http://backend;",
    log: str = "",
    *,
    tls: bool = False,
    grpc: bool = False,
    connections: int = configurations.CONNECTIONS,
) -> Contestant:
    """nginx; `log` names a log format, written to a file in the run's folder."""

    def configuration(run: Path, setting: Setting) -> str:
        access_log = f"access_log {run}/access.log {log};" if log else "access_log off;"
        certificate = setting.certificate if tls else None
        return configurations.nginx(
            run, PORT, location, access_log, certificate, grpc=grpc, connections=connections
        )

    return Contestant(label, "nginx", configuration)


def haproxy(
    label: str = "HAProxy", bits: int | None = None, *, tls: bool = False, grpc: bool = False
) -> Contestant:
    """HAProxy, verifying by the key of `bits` when given."""

    def configuration(run: Path, setting: Setting) -> str:
        rules = configurations.haproxy_token_rules(setting.tokens, bits) if bits else ""
        certificate = setting.certificate if tls else None
        return configurations.haproxy(PORT, rules, certificate, grpc=grpc)

    return Contestant(label, "haproxy", configuration, verifies=bits is not None)


def envoy(
    label: str = "Envoy",
    *,
    verifies: bool = False,
    cache: int = 0,
    tls: bool = False,
    grpc: bool = False,
) -> Contestant:
    """Envoy, with jwt_authn when it `verifies`, and a cache of that many tokens when not 0."""

    def configuration(run: Path, setting: Setting) -> str:
        return configurations.envoy(
            PORT,
            setting.tokens if verifies else None,
            cache,
            setting.certificate if tls else None,
            grpc=grpc,
        )

    return Contestant(label, "envoy", configuration, verifies=verifies)
