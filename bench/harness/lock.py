"""Only one benchmark at a time."""

import fcntl
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(wait: bool):
    """Holds the machine's lock, because two benchmarks at once measure each other; else ends the process."""
    path = Path(tempfile.gettempdir()) / "portcullis-bench.lock"
    with open(path, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            sys.exit(f"Another benchmark is running ({path} is locked); --wait waits for it.")
        yield
