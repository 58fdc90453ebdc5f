"""What the integration tests stand on: an origin server, a client, keys, and the proxy itself as a process."""
