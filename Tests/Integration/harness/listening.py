"""What the small servers of the tests have in common: a port on loopback, and a thread for each connection."""

import socket
import threading


class Server:
    """Listens from the end of its `__init__` on; what `_serve` needs must be there before."""

    def __init__(self, port: int = 0):
        self.listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        """Refuses new connections."""
        # A thread in accept() keeps the listening socket alive; shutting it down wakes that thread.
        if self.listener.fileno() >= 0:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self._take(sock)

    def _take(self, sock: socket.socket):
        """Called for each connection as it comes in, one after the other."""
        threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket):
        raise NotImplementedError
