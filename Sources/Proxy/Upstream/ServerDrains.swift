public import Configuration
public import Reactor

/// What operators took out of service, by upstream and server. Lives on the control loop; loops get
/// snapshots (docs/decisions/0087-draining-a-server.md).
///
/// A server is drained as the configuration writes it (then all of its addresses are, also those
/// that its name gets later), or by one of its addresses. It stays drained until it is taken back,
/// leaves the configuration, or the process ends; one that takes its place goes on
/// with it.
public struct ServerDrains: Sendable {
    /// One server, or one address of it.
    public struct Drain: Sendable, Equatable {
        /// The upstream's name in the configuration.
        public let upstream: String
        /// As the configuration writes it.
        public let server: ListenAddress
        /// One of its addresses as text; nil: all of them.
        public let address: String?
        /// Who asked for it.
        public let by: String
        /// Seconds since 1970.
        public let since: Int64
        /// What it comes to, now and before the last change of addresses: while loops change over,
        /// some still choose among the earlier ones.
        fileprivate(set) var labels: Set<String> = []
        private var earlier: Set<String> = []

        fileprivate init(
            _ upstream: String, _ server: ListenAddress, _ address: String?, by: String,
            since: Int64
        ) {
            self.upstream = upstream
            self.server = server
            self.address = address
            self.by = by
            self.since = since
        }

        fileprivate mutating func update(_ current: Set<String>) {
            labels = earlier.union(current)
            earlier = current
        }

        /// Whether it drains this address.
        public func covers(_ label: String, of upstream: String) -> Bool {
            self.upstream == upstream && labels.contains(label)
        }
    }

    /// Which servers a text means.
    public struct Subject: Sendable, Equatable {
        /// As the configuration writes it.
        public let server: ListenAddress
        /// One of its addresses; nil: all of them.
        public let address: String?
        /// What that comes to now.
        public let labels: [String]
    }

    /// Everything that is drained.
    public private(set) var all: [Drain] = []
    private var change: UInt64 = 0

    public init() {}

    /// The server of an upstream that a text names, as the configuration or as `status` writes it.
    ///
    /// - Parameter addresses: What a server's name means now.
    public static func subject(
        _ text: String, of upstream: Upstream, addresses: (ListenAddress) -> [SocketAddress]
    ) -> Subject? {
        for server in upstream.servers where server.description == text {
            let labels = addresses(server).map(\.description)
            return Subject(server: server, address: nil, labels: labels)
        }
        for server in upstream.servers
        where addresses(server).contains(where: { $0.description == text }) {
            return Subject(server: server, address: text, labels: [text])
        }
        return nil
    }

    /// Takes a server out of service.
    ///
    /// - Returns: whether that is new.
    public mutating func drain(
        _ subject: Subject, of upstream: String, by: String, since: Int64
    ) -> Bool {
        if let address = subject.address, isDraining(address, of: upstream) { return false }
        if all.contains(where: { $0.isAbout(subject, of: upstream) }) { return false }
        var drain = Drain(upstream, subject.server, subject.address, by: by, since: since)
        drain.update(Set(subject.labels))
        all.append(drain)
        change += 1
        return true
    }

    /// Gives a server requests again. One address of a server that was drained as a whole comes
    /// back alone; the others stay drained.
    ///
    /// - Returns: whether that is new.
    public mutating func undrain(_ subject: Subject, of upstream: String) -> Bool {
        let isMet = { (drain: Drain) in
            drain.upstream == upstream && drain.server == subject.server
                && (subject.address == nil || drain.address == nil
                    || drain.address == subject.address)
        }
        let ended = all.filter(isMet)
        if ended.isEmpty { return false }
        all.removeAll(where: isMet)
        change += 1
        for drain in ended where drain.address == nil {
            guard let address = subject.address else { continue }
            for label in drain.labels where label != address {
                var rest = Drain(upstream, drain.server, label, by: drain.by, since: drain.since)
                rest.update([label])
                all.append(rest)
            }
        }
        return true
    }

    /// Names mean these addresses from now on. Call it before loops change over to them, and again
    /// behind it.
    public mutating func update(addresses: (ListenAddress) -> [SocketAddress]) {
        for index in all.indices {
            let labels =
                all[index].address.map { [$0] }
                ?? addresses(all[index].server).map(\.description)
            all[index].update(Set(labels))
        }
        change += 1
    }

    /// Forgets servers that this configuration does not have. Call it when no loop has them any
    /// more.
    ///
    /// - Returns: what was forgotten.
    public mutating func keepOnly(_ configuration: Configuration) -> [Drain] {
        let isConfigured = { (drain: Drain) in
            configuration.upstreams.contains {
                $0.name == drain.upstream && $0.servers.contains(drain.server)
            }
        }
        let forgotten = all.filter { !isConfigured($0) }
        all.removeAll { !isConfigured($0) }
        change += 1
        return forgotten
    }

    /// What loops need to know.
    public var snapshot: DrainSnapshot {
        DrainSnapshot(
            change: change,
            servers: Set(
                all.flatMap { drain in
                    drain.labels.map { .init(upstream: drain.upstream, label: $0) }
                }))
    }

    /// Whether an address gets no new requests.
    public func isDraining(_ label: String, of upstream: String) -> Bool {
        all.contains { $0.covers(label, of: upstream) }
    }
}

extension ServerDrains.Drain {
    fileprivate func isAbout(_ subject: ServerDrains.Subject, of upstream: String) -> Bool {
        self.upstream == upstream && server == subject.server && address == subject.address
    }
}
