"""Real Redis servers: alone, as a cluster, and watched by sentinels; without a disk, on loopback."""

import pathlib
import shutil
import signal
import subprocess
import tempfile

from .origin import wait_until
from .proxy import free_port

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")
CLIENT = shutil.which("redis-cli") or shutil.which("valkey-cli")


class RedisServer:
    """One server (or sentinel) of a test; `options` are lines of its configuration."""

    def __init__(self, *options: str, sentinel: bool = False, port: int | None = None):
        self.port = port or free_port()
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", *options]
        if not sentinel:
            lines[3:3] = ['save ""', "appendonly no", f"unixsocket {self.folder}/socket"]
        self._config = self.folder / "redis.conf"
        self._config.write_text("\n".join(lines) + "\n")
        self._arguments = [PROGRAM, str(self._config)] + (["--sentinel"] if sentinel else [])
        self.process: subprocess.Popen | None = None
        self.start()

    def start(self):
        """Starts it (again), with an empty memory."""
        self.process = subprocess.Popen(self._arguments, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.cli("ping") != "", "redis answers", within=20)

    def kill(self):
        """Ends it at once, as a crash would."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def pause(self):
        """It keeps its connections and answers nothing until `resume`."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def cli(self, *words: str) -> str:
        """What the server answers; empty when it does not."""
        done = subprocess.run([CLIENT, "-p", str(self.port), *words], capture_output=True, text=True, timeout=20)
        return done.stdout.strip() if done.returncode == 0 else ""

    def close(self):
        self.kill()
        self._folder.cleanup()


def make_cluster(make) -> list[RedisServer]:
    """Two masters with half of the slots each."""
    # Their bus would else be 10,000 above their port, where somebody may be: other tests, or outgoing connections.
    buses = [free_port(), free_port()]
    nodes = [make("cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-node-timeout 2000",
                  f"cluster-port {bus}") for bus in buses]
    nodes[0].cli("cluster", "addslotsrange", "0", "8191")
    nodes[1].cli("cluster", "addslotsrange", "8192", "16383")
    nodes[0].cli("cluster", "meet", "127.0.0.1", str(nodes[1].port), str(buses[1]))

    def is_complete() -> bool:
        return all("cluster_state:ok" in node.cli("cluster", "info")
                   and all(str(other.port) in node.cli("cluster", "slots") for other in nodes)
                   for node in nodes)

    wait_until(is_complete, "the cluster is complete", within=30)
    return nodes


def make_sentinels(make) -> tuple[RedisServer, RedisServer, list[RedisServer]]:
    """A master, its replica, and three sentinels that call it "claims"."""
    master = make()
    replica = make(f"replicaof 127.0.0.1 {master.port}")
    wait_until(lambda: "master_link_status:up" in replica.cli("info", "replication"), "the replica", within=30)
    sentinels = [make(f"sentinel monitor claims 127.0.0.1 {master.port} 2",
                      "sentinel down-after-milliseconds claims 500",
                      "sentinel failover-timeout claims 3000", sentinel=True) for _ in range(3)]
    wait_until(lambda: all("slaves=1,sentinels=3" in sentinel.cli("info", "sentinel") for sentinel in sentinels),
               "the sentinels know each other", within=30)
    return master, replica, sentinels
