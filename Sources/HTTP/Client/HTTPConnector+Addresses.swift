internal import Reactor

extension HTTPConnector {
    /// How long one address may take while there are others, and the last one too.
    private static let longestAttempt: Duration = .seconds(5)

    /// Connects to the first address of an endpoint that answers.
    func connect(
        to endpoint: HTTPEndpoint, _ patience: RequestPatience
    ) async throws(HTTPClientError) -> Socket {
        let addresses = try await addresses(of: endpoint, patience)
        var failures: [String] = []
        for (index, address) in addresses.enumerated() {
            // A silent address must not use up the time of those behind it.
            let left = patience.deadline.nanoseconds - loop.now.nanoseconds
            let share = Duration.nanoseconds(max(0, left) / Int64(addresses.count - index))
            let limit = loop.now.advanced(by: min(share, Self.longestAttempt))
            do throws(ConnectionFailure) {
                return try await connect(to: address, until: limit, patience)
            } catch {
                if case .cancelled = error {
                    throw HTTPClientError(.connect, host: endpoint.description, error)
                }
                failures.append("\(address): \(error.connectReason)")
            }
        }
        throw HTTPClientError(
            .connect, host: endpoint.description,
            failures.prefix(4).joined(separator: "; ")
                + "; check that it is up and that a firewall lets this machine reach it")
    }

    /// Connects to an address.
    func connect(
        to address: SocketAddress, until limit: MonotonicInstant, _ patience: RequestPatience
    ) async throws(ConnectionFailure) -> Socket {
        let socket: Socket
        do throws(Errno) {
            socket = try Socket.connect(to: address, loop: loop)
        } catch {
            throw .broken(error)
        }
        socket.waiter = patience.waiter
        while true {
            switch socket.connectResult() {
            case .success: return socket
            case .failure(let error): throw .broken(error)
            case nil: break
            }
            do throws(Impatience) {
                try await patience.wait(until: limit)
            } catch {
                throw ConnectionFailure(error)
            }
        }
    }

    private func addresses(
        of endpoint: HTTPEndpoint, _ patience: RequestPatience
    ) async throws(HTTPClientError) -> [SocketAddress] {
        switch endpoint {
        case .unix(let path):
            if let address = SocketAddress(unixPath: path) { return [address] }
            throw HTTPClientError(
                .resolve, host: endpoint.description, "this is no path that a socket can have")
        case .tcp(let host, let port):
            if let literal = SocketAddress(literal: host, port: port) { return [literal] }
            let lookup = NameLookup(host, port: port, loop: loop, waiter: patience.waiter)
            return try await addresses(of: lookup, endpoint, patience)
        }
    }

    private func addresses(
        of lookup: NameLookup, _ endpoint: HTTPEndpoint, _ patience: RequestPatience
    ) async throws(HTTPClientError) -> [SocketAddress] {
        let advice = "check its spelling and this machine's name servers (/etc/resolv.conf)"
        while true {
            switch lookup.result {
            case .success(let addresses): return addresses
            case .failure(let error):
                throw HTTPClientError(
                    .resolve, host: endpoint.description, "\(error.reason); \(advice)")
            case nil: break
            }
            do throws(Impatience) {
                try await patience.wait()
            } catch {
                let reason = ConnectionFailure(error).reason
                throw HTTPClientError(.resolve, host: endpoint.description, "\(reason); \(advice)")
            }
        }
    }
}

extension ConnectionFailure {
    /// As `reason`, for a connection that never came about.
    fileprivate var connectReason: String {
        if case .broken(let error) = self { return error.description }
        return reason
    }
}
