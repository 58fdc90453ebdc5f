"""A real browser: Chromium without a window, driven over the DevTools protocol on two pipes."""

import base64
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import select
import shutil
import signal
import time

from cryptography import x509
from cryptography.hazmat.primitives import serialization

BINARY = shutil.which("chromium") or shutil.which("chromium-browser")
# Far above what a page needs; a loaded machine may take most of the first one to start the browser.
START, PATIENCE = 40.0, 20.0


class PageError(Exception):
    """What a page threw, or what the browser says of a command."""


def public_key_hash(certificate: x509.Certificate) -> str:
    """As `--ignore-certificate-errors-spki-list` wants it: SHA-256 of the SubjectPublicKeyInfo, in base64."""
    key = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode()


class Browser:
    """One browser, to which every name is 127.0.0.1:`port`; it trusts one certificate beside the usual ones."""

    def __init__(self, folder: pathlib.Path, *, port: int, trusts: x509.Certificate, options: tuple[str, ...] = ()):
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._events: list[dict] = []
        self._errors = folder / "chromium.txt"
        arguments = [
            BINARY, "--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}",
            f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
            f"--ignore-certificate-errors-spki-list={public_key_hash(trusts)}",
            # What it would start by itself; a container's /dev/shm is often too small for it.
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-extensions", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
            "--mute-audio", *options, "about:blank"]
        self._process, self._read_end, self._write_end = self._spawn(arguments)
        try:
            self.call("Browser.getVersion", within=START)
        except BaseException:
            self.stop()
            raise

    def _spawn(self, arguments: list[str]) -> tuple[int, int, int]:
        """Starts it with the pipes where it looks for them: it reads descriptor 3 and writes 4."""
        # Above 9 first, so that putting one of them in its place cannot overwrite another.
        pipes = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
                 for pair in (os.pipe(), os.pipe()) for end in pair]
        commands, write_end, read_end, answers = pipes
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 2, str(self._errors), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                   (os.POSIX_SPAWN_DUP2, commands, 3), (os.POSIX_SPAWN_DUP2, answers, 4)]
        # A group of its own, which stop() can end whole.
        process = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=actions, setpgroup=0)
        os.close(commands)
        os.close(answers)
        return process, read_end, write_end

    def stop(self):
        try:
            os.killpg(self._process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self._process, 0)
        os.close(self._read_end)
        os.close(self._write_end)

    def open(self, url: str) -> "Page":
        """A page in a tab of its own, loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        page.call("Network.enable")
        page.call("Page.enable")
        told = page.call("Page.navigate", url=url)
        if "errorText" in told:
            raise PageError(f"{url}: {told['errorText']}")
        page.wait_for_event("Page.loadEventFired")
        return page

    def call(self, method: str, *, session: str | None = None, within: float = PATIENCE, **parameters) -> dict:
        """Sends one command and waits for its answer; events that come meanwhile are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write_end, data):]
        deadline = time.monotonic() + within
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") != number:
                self._events.append(answer)
            elif "error" in answer:
                raise PageError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def wait_for_event(self, method: str, session: str) -> dict:
        deadline = time.monotonic() + PATIENCE
        while not (found := self.events(method, session)):
            self._events.append(self._read(deadline, method))
        return found[0]

    def events(self, method: str, session: str) -> list[dict]:
        """The parameters of each such event that came so far."""
        return [event["params"] for event in self._events
                if event.get("method") == method and event.get("sessionId") == session]

    def _read(self, deadline: float, what: str) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read_end], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._read_end, 1 << 20) if ready else b""
            if not data:
                state = "says nothing" if not ready else "ended"
                raise PageError(f"{what}: the browser {state}: {self._errors.read_text()[-2000:]}")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, target: str, session: str):
        self.browser, self.target, self.session = browser, target, session

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method: str, **parameters) -> dict:
        return self.browser.call(method, session=self.session, **parameters)

    def wait_for_event(self, method: str) -> dict:
        return self.browser.wait_for_event(method, self.session)

    def run(self, function: str, *arguments):
        """Calls a function of JavaScript in the page, waits for its promise, and returns what JSON can hold of it."""
        written = ", ".join(json.dumps(argument) for argument in arguments)
        told = self.call("Runtime.evaluate", expression=f"({function})({written})",
                         awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise PageError(told["exceptionDetails"].get("exception", {}).get("description", told))
        return told["result"].get("value")

    def protocols(self) -> dict[str, str]:
        """The protocol of each answer by its address, as the network panel names it."""
        return {answer["url"]: answer.get("protocol") for answer in self.answers()}

    def answers(self) -> list[dict]:
        """What the network panel shows of each answer so far."""
        return [event["response"] for event in self.browser.events("Network.responseReceived", self.session)]
