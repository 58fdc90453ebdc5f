"""What happens in the nights: signals to the proxy, backends that die and stop, certificates, names."""

import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from harness.origin import wait_until
from harness.proxy import BINARY, free_port

STREAM_PIECES = 20
# Until a request that a stopped backend has is given up, seconds; also in the configuration.
HEADER_TIMEOUT = 2.0


class Backend:
    """A backend in a process of its own."""

    def __init__(self, folder: pathlib.Path):
        self.port = free_port()
        self.notes = folder / f"posts-{self.port}"
        self.process = None
        self.start()

    def start(self):
        program = pathlib.Path(__file__).parent / "backend.py"
        self.process = subprocess.Popen([sys.executable, "-S", "-E", program, str(self.port), self.notes])
        wait_until(self._accepts, "the backend listens", within=30)

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def die(self):
        self.process.kill()
        self.process.wait()


class Log(threading.Thread):
    """Follows the file that every process of the line writes its log to."""

    def __init__(self, path: pathlib.Path):
        super().__init__(daemon=True)
        self.path = path
        self.changed = threading.Condition()
        # Lines that are not about a request, as text, and lines of requests by target, if they are worth a look.
        self.others: list[str] = []
        self.requests: list[str] = []
        self.total = 0
        self.is_over = False

    def run(self):
        rest = ""
        with open(self.path) as file:
            while True:
                was_over = self.is_over
                text = file.read(1 << 20)
                if not text:
                    if was_over:
                        return
                    time.sleep(0.02)
                    continue
                lines = (rest + text).split("\n")
                rest = lines.pop()
                with self.changed:
                    for line in lines:
                        if '"msg":"request"' not in line:
                            self.others.append(line)
                            continue
                        self.total += 1
                        if "/c/" in line or '"status":200' not in line:
                            self.requests.append(line)
                    self.changed.notify_all()

    def count(self, text: str) -> int:
        with self.changed:
            return sum(text in line for line in self.others)

    def wait(self, texts: tuple[str, ...], before: int, within: float):
        """Waits until one of these texts is there more often than before."""
        with self.changed:
            assert self.changed.wait_for(lambda: sum(map(self.count, texts)) > before, within), \
                f"never logged: {texts}; the last lines:\n" + "\n".join(self.others[-10:])


class Events:
    """Everything that happens, in threads of its own; `windows` says when a backend was not well."""

    RELOADED, TOOK_OVER = '"configuration reloaded"', '"upgrade: this process has taken over"'
    STARTED = '"upgrade: a new process starts"'
    NOT_RELOADED, FAILED = '"configuration not reloaded"', '"upgrade failed'

    def __init__(self, night, *, reloads: int, upgrades: int, restarts: int, stops: int):
        self.night = night
        self.random = random.Random(f"{night.seed} events")
        self.signals = ["reload"] * reloads + ["upgrade"] * upgrades
        self.mishaps = ["restart"] * restarts + ["stop"] * stops
        self.random.shuffle(self.signals)
        self.random.shuffle(self.mishaps)
        self.counts: dict[str, int] = {}
        # (what, begin, end), seconds since 1970.
        self.windows: list[tuple[str, float, float]] = []
        self.errors: list[str] = []
        # A certificate and its key are two files.
        self.files = threading.Lock()
        self.threads = [threading.Thread(target=self._guarded, args=(body,), daemon=True)
                        for body in (self._signal, self._harm, self._swap, self._lie)]

    def run(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads[:2]:
            thread.join(900)
        self.is_over = True
        for thread in self.threads[2:]:
            thread.join(60)

    is_over = False

    def _guarded(self, body):
        try:
            body()
        except Exception as error:
            self.errors.append(f"{body.__name__}: {error!r}")

    def _note(self, what: str):
        self.counts[what] = self.counts.get(what, 0) + 1

    def _signal(self):
        for number, what in enumerate(self.signals):
            time.sleep(self.random.random() * 0.3)
            with self.files:
                if what == "reload":
                    self._reload(number)
                else:
                    self._upgrade(with_reload=self.random.random() < 0.3)
            self._note(what)

    def _reload(self, number: int):
        night = self.night
        # Something changes each time: a listener that comes and goes, limits, another route.
        extra = f'[[listener]]\nlisten = "127.0.0.1:{night.spare_port}"\n' if number % 2 else ""
        night.config_path.write_text(night.configuration + f'''
{extra}
[[route]]
name = "extra-{number}"
path = "/extra-{number}"
upstream = "api"
app_check = "off"
''')
        before = night.log.count(self.RELOADED) + night.log.count(self.NOT_RELOADED)
        os.kill(night.pid, signal.SIGHUP)
        night.log.wait((self.RELOADED, self.NOT_RELOADED), before, 60)

    def _upgrade(self, with_reload: bool):
        night = self.night
        night.replace_program()
        taken, failed = night.log.count(self.TOOK_OVER), night.log.count(self.FAILED)
        reloaded, starts = night.log.count(self.RELOADED), night.log.count(self.STARTED)
        os.kill(night.pid, signal.SIGUSR2)
        if with_reload:
            os.kill(night.pid, signal.SIGHUP)
        night.log.wait((self.TOOK_OVER, self.FAILED), taken + failed, 60)
        assert night.log.count(self.FAILED) == failed, "an upgrade failed"
        # Two processes write to the log: the older line may come later.
        night.log.wait((self.STARTED,), starts, 60)
        started = [line for line in night.log.others if self.STARTED in line][-1]
        night.earlier.append(night.pid)
        night.pid = int(started.split('"pid":"')[1].split('"')[0])
        if with_reload:
            night.log.wait((self.RELOADED,), reloaded, 60)
            self._note("reload during an upgrade")

    def _harm(self):
        for what in self.mishaps:
            time.sleep(0.3 + self.random.random() * 0.5)
            backend = self.random.choice(self.night.backends)
            began = time.time()
            if what == "restart":
                backend.die()
                time.sleep(self.random.random() * 0.2)
                backend.start()
            else:
                backend.process.send_signal(signal.SIGSTOP)
                time.sleep(0.5 + self.random.random() * HEADER_TIMEOUT)
                backend.process.send_signal(signal.SIGCONT)
            self.windows.append((what, began, time.time()))
            self._note(what)

    def _swap(self):
        while not self.is_over:
            with self.files:
                self.night.new_certificate()
            self._note("certificate")
            for _ in range(10):
                time.sleep(0.2 if not self.is_over else 0)

    def _lie(self):
        # Of three servers at most three addresses are wrong, and one is dead: fewer than a request may try.
        answers = ["fail", "hang", "127.0.0.9 127.0.0.1", "127.0.0.1", "127.0.0.1 127.0.0.8"]
        while not self.is_over:
            self.night.names(self.random.choice(answers))
            self._note("answer of the resolver")
            time.sleep(self.random.random())
        self.night.names("127.0.0.1")


def replace_program(path: pathlib.Path):
    """Puts another copy of the program where it is, as a package manager does."""
    new = path.with_suffix(".new")
    try:
        os.link(BINARY, new)
    except OSError:
        shutil.copy(BINARY, new)
    path.unlink(missing_ok=True)
    new.rename(path)
