internal import HTTP
internal import Reactor
internal import Synchronization
internal import TLS

/// Opens connections to servers and sentinels.
final class RedisConnector: Sendable {
    /// How long one address of a name may take while there are others.
    private static let longestAttempt = Duration.seconds(1)

    private let isSecure: Bool
    private let trust: TLSTrust
    /// Made at the first connection, and again when a certificate was not believed: the file may
    /// have been renewed.
    private let context = Mutex<TLSContext?>(nil)

    init(_ settings: RedisSettings) {
        isSecure = settings.isSecure
        trust = settings.certificateAuthority.map { .certificates(inFile: $0) } ?? .system
    }

    /// Connects, with TLS where it is set.
    ///
    /// - Parameter waiter: Wakes for everything that happens to the connection, from now on.
    func connect(
        to address: RedisAddress, on loop: EventLoop, waiter: Waiter,
        until deadline: MonotonicInstant
    ) async throws(RedisFailure) -> RedisLink {
        let addresses = try await resolve(address, loop, waiter, deadline)
        var reason = "it has no address"
        for (index, candidate) in addresses.enumerated() {
            // A silent address must not use up the time of those behind it.
            let left = Duration.nanoseconds(max(0, deadline.nanoseconds - loop.now.nanoseconds))
            let share = left / (addresses.count - index)
            let isLast = index == addresses.count - 1
            let limit = loop.now.advanced(by: isLast ? share : min(share, Self.longestAttempt))
            do throws(Refusal) {
                let socket = try await open(candidate, loop, waiter, limit)
                return try await secure(socket, address, waiter, deadline)
            } catch {
                switch error {
                case .final(let failure): throw failure
                case .here(let text): reason = text
                }
            }
        }
        throw RedisFailure(
            .unreachable, "cannot connect: \(reason)",
            hint: "check that it is up and that a firewall lets this machine reach it")
    }

    private enum Refusal: Error {
        /// Another address may do.
        case here(String)
        case final(RedisFailure)
    }

    private func open(
        _ address: SocketAddress, _ loop: EventLoop, _ waiter: Waiter, _ limit: MonotonicInstant
    ) async throws(Refusal) -> Socket {
        let socket: Socket
        do throws(Errno) {
            socket = try Socket.connect(to: address, loop: loop)
        } catch {
            throw .here(error.description)
        }
        socket.waiter = waiter
        while true {
            switch socket.connectResult() {
            case .success: return socket
            case .failure(let error): throw .here(error.description)
            case nil: break
            }
            if await waiter.wait(until: limit) == .timedOut {
                throw .here("no answer in time")
            }
        }
    }

    private func secure(
        _ socket: Socket, _ address: RedisAddress, _ waiter: Waiter, _ deadline: MonotonicInstant
    ) async throws(Refusal) -> RedisLink {
        guard isSecure, case .tcp(let host, _) = address else {
            return RedisLink(socket, stream: nil, waiter: waiter)
        }
        do throws(TLSError) {
            let stream = try TLSStream(client: try makeContext(), socket: socket, host: host)
            try await stream.handshake(until: deadline)
            return RedisLink(socket, stream: stream, waiter: waiter)
        } catch {
            if error.kind == .certificate { context.withLock { $0 = nil } }
            if error.kind == .timedOut {
                throw .final(RedisFailure(.timeout, "TLS failed: \(error.detail)"))
            }
            throw .final(RedisFailure(.tls, "TLS failed: \(error.detail)"))
        }
    }

    private func makeContext() throws(TLSError) -> TLSContext {
        if let made = context.withLock({ $0 }) { return made }
        let made = try TLSContext.client(trust: trust)
        context.withLock { $0 = made }
        return made
    }

    private func resolve(
        _ address: RedisAddress, _ loop: EventLoop, _ waiter: Waiter,
        _ deadline: MonotonicInstant
    ) async throws(RedisFailure) -> [SocketAddress] {
        switch address {
        case .unix(let path):
            if let address = SocketAddress(unixPath: path) { return [address] }
            throw RedisFailure(.unreachable, "this is no path that a socket can have")
        case .tcp(let host, let port):
            if let literal = SocketAddress(literal: host, port: port) { return [literal] }
            let lookup = NameLookup(host, port: port, loop: loop, waiter: waiter)
            while true {
                switch lookup.result {
                case .success(let addresses): return addresses
                case .failure(let error): throw Self.unresolved(error.reason)
                case nil: break
                }
                if await waiter.wait(until: deadline) == .timedOut {
                    throw Self.unresolved("no answer in time")
                }
            }
        }
    }

    private static func unresolved(_ reason: String) -> RedisFailure {
        RedisFailure(
            .unreachable, "cannot resolve its name: \(reason)",
            hint: "check its spelling and this machine's name servers (/etc/resolv.conf)")
    }
}
