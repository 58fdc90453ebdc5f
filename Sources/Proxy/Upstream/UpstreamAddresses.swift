public import Configuration
public import Reactor

/// The addresses behind the names of a configuration's upstreams.
public enum UpstreamAddresses {
    /// Resolves every server of every upstream, in the order of the configuration. A name with
    /// several addresses gives several servers; one that does not resolve gives none, and a line in
    /// the log.
    public static func resolve(_ configuration: Configuration, log: any EventLog) async
        -> [[SocketAddress]]
    {
        var all: [[SocketAddress]] = []
        for upstream in configuration.upstreams {
            var addresses: [SocketAddress] = []
            for server in upstream.servers {
                addresses += await resolve(server, of: upstream, log)
            }
            all.append(addresses)
        }
        return all
    }

    private static func resolve(_ server: ListenAddress, of upstream: Upstream, _ log: any EventLog)
        async -> [SocketAddress]
    {
        switch server {
        case .unix(let path):
            // The configuration checked the length of the path.
            return SocketAddress(unixPath: path).map { [$0] } ?? []
        case .tcp(let host, let port):
            do throws(ResolutionError) {
                return try await NameResolver.resolve(host, port: port)
            } catch {
                log.log(
                    .error, "an upstream server has no address; its requests are answered with 502",
                    [("upstream", upstream.name), ("server", "\(server)"), ("error", "\(error)")])
                return []
            }
        }
    }
}
