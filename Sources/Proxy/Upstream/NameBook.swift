public import Configuration
internal import HTTP
public import Reactor

/// The addresses behind the names of upstream servers. Each name is looked up again when the time to
/// live of its records is over, and at its upstream's interval at the latest. It keeps its last
/// addresses when the resolver fails, is silent or hangs: nobody waits for a look-up but who wants to,
/// and for as long as he wants to.
///
/// Belongs to one loop.
public final class NameBook {
    /// Where the task sleeps that calls `advance`.
    public let waiter: Waiter

    /// Records may say that they live for no time at all.
    private static let shortestInterval = Duration.seconds(1)

    private let loop: EventLoop
    private let log: any EventLog
    private var entries: [ListenAddress: Entry] = [:]

    private struct Entry {
        /// As in the configuration.
        let upstream: String
        var interval: Duration
        /// What was found last, sorted by text: resolvers take turns with the order.
        var addresses: [SocketAddress] = []
        /// The one under way.
        var lookup: NameLookup?
        /// The question how long what is found holds, while it is under way.
        var query: NameLifetimeQuery?
        /// The last answer to it.
        var lifetime: Duration?
        /// When the last look-up ended.
        var foundAt = MonotonicInstant.never
        var dueAt: MonotonicInstant
        /// At least one look-up has ended.
        var isAsked = false
        var isFailing = false

        var nextDue: MonotonicInstant {
            let lifetime = lifetime.map { max($0, NameBook.shortestInterval) }
            return foundAt.advanced(by: min(lifetime ?? interval, interval))
        }
    }

    public init(loop: EventLoop, log: any EventLog) {
        self.loop = loop
        self.log = log
        waiter = Waiter(loop: loop)
    }

    /// Looks up the names of `configuration` as well as those that are known, each as soon as
    /// possible. Addresses that are known stay in use meanwhile.
    public func add(_ configuration: Configuration) {
        for upstream in configuration.upstreams {
            for server in upstream.servers where Self.literal(server) == nil {
                guard case .tcp = server else { continue }
                var entry =
                    entries[server]
                    ?? Entry(upstream: upstream.name, interval: .zero, dueAt: loop.now)
                entry.interval = upstream.resolveInterval
                entry.dueAt = loop.now
                entries[server] = entry
            }
        }
        waiter.wake()
    }

    /// What names mean as far as is known, for the process that takes the place of this one.
    public var known: [ListenAddress: [SocketAddress]] {
        entries.mapValues(\.addresses).filter { !$0.value.isEmpty }
    }

    /// Takes over what somebody else has found out about a name of the configuration: good enough
    /// until it was looked up here, and for longer if the resolver fails.
    public func remember(_ addresses: [SocketAddress], of server: ListenAddress) {
        guard var entry = entries[server], entry.addresses.isEmpty, !addresses.isEmpty else {
            return
        }
        entry.addresses = addresses.sorted { $0.description < $1.description }
        entry.isAsked = true
        entries[server] = entry
    }

    /// Forgets the names that `configuration` does not have.
    public func keepOnly(_ configuration: Configuration) {
        let named = Set(configuration.upstreams.flatMap(\.servers))
        entries = entries.filter { named.contains($0.key) }
    }

    /// Whether every name of `configuration` was looked up, with or without success.
    public func knows(_ configuration: Configuration) -> Bool {
        configuration.upstreams.flatMap(\.servers).allSatisfy { entries[$0]?.isAsked ?? true }
    }

    /// The addresses of every upstream, in the order of the configuration. An address that several
    /// names have is there once; a name that was never found has none.
    public func addresses(of configuration: Configuration) -> [[SocketAddress]] {
        configuration.upstreams.map { upstream in
            var seen: Set<String> = []
            return upstream.servers.flatMap(addresses).filter {
                seen.insert($0.description).inserted
            }
        }
    }

    /// What a server of the configuration means now.
    public func addresses(of server: ListenAddress) -> [SocketAddress] {
        Self.literal(server).map { [$0] } ?? entries[server]?.addresses ?? []
    }

    /// Takes the results of look-ups that have ended, and starts those that are due.
    ///
    /// - Returns: whether any address is another one now.
    public func advance() -> Bool {
        var isChanged = false
        for (server, var entry) in entries {
            if let result = entry.lookup?.result {
                entry.lookup = nil
                entry.isAsked = true
                entry.foundAt = loop.now
                if take(result, server, &entry) { isChanged = true }
                entry.dueAt = entry.nextDue
            }
            if let outcome = entry.query?.outcome {
                entry.query = nil
                entry.lifetime = if case .known(let lifetime) = outcome { lifetime } else { nil }
                // A reload may want it sooner.
                if entry.lookup == nil, entry.dueAt > loop.now { entry.dueAt = entry.nextDue }
            }
            // What hangs keeps its thread; it gets no second one.
            if entry.lookup == nil, entry.dueAt <= loop.now, case .tcp(let host, let port) = server
            {
                entry.lookup = NameLookup(host, port: port, loop: loop, waiter: waiter)
                if entry.query == nil {
                    entry.query = NameLifetimeQuery(host, loop: loop, waiter: waiter)
                }
            }
            entries[server] = entry
        }
        return isChanged
    }

    /// When `advance` has something to do even if no look-up ends.
    public var nextDue: MonotonicInstant {
        entries.values.filter { $0.lookup == nil }.map(\.dueAt).min() ?? .never
    }

    private func take(
        _ result: NameLookup.Outcome, _ server: ListenAddress, _ entry: inout Entry
    ) -> Bool {
        let fields = [
            (name: "upstream", value: entry.upstream), (name: "server", value: "\(server)"),
        ]
        switch result {
        case .success(let found):
            let addresses = found.sorted { $0.description < $1.description }
            let isSame = addresses.map(\.description) == entry.addresses.map(\.description)
            let after = addresses.map(\.description).joined(separator: " ")
            if !isSame && (entry.isFailing || !entry.addresses.isEmpty) {
                let before = entry.addresses.map(\.description).joined(separator: " ")
                log.log(
                    .info, "an upstream server has other addresses",
                    fields + [(name: "before", value: before), (name: "after", value: after)])
            } else if entry.isFailing {
                log.log(.info, "an upstream server's name is found again", fields)
            }
            entry.isFailing = false
            entry.addresses = addresses
            return !isSame
        case .failure(let failure):
            if !entry.isFailing {
                let message =
                    entry.addresses.isEmpty
                    ? "an upstream server has no address; it gets no requests"
                    : "an upstream server's name is not found; its last addresses stay in use"
                log.log(.error, message, fields + [(name: "error", value: failure.reason)])
            }
            entry.isFailing = true
            entry.lifetime = nil
            return false
        }
    }

    /// The address of a server that has no name.
    private static func literal(_ server: ListenAddress) -> SocketAddress? {
        switch server {
        case .unix(let path): SocketAddress(unixPath: path)
        case .tcp(let host, let port): SocketAddress(literal: host, port: port)
        }
    }
}
