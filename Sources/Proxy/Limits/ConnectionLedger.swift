internal import Configuration
internal import Policy
internal import Reactor
internal import Synchronization

/// How many client connections the process has, over all loops and listeners.
///
/// The kernel spreads connections over the loops as it likes, so a share of each loop would refuse
/// clients while there is room. Accepting costs ten system calls' time; an atomic addition is none.
public final class ConnectionLedger: Sendable {
    /// Descriptors that are never for clients: listeners, loops, the log, the admin listener's 64
    /// connections.
    private static let reserve = 128

    private let open = Atomic<Int>(0)
    private let ceiling = Atomic<Int>(Int.max)
    private let listeners = Mutex<[ListenAddress: ListenerLedger]>([:])

    public init() {}

    /// Client connections that are open.
    var count: Int { open.load(ordering: .relaxed) }

    /// Takes over the ceiling of a configuration.
    func adopt(ceiling: Int) {
        self.ceiling.store(ceiling, ordering: .relaxed)
    }

    /// The ceiling that fits a limit of open files: a quarter of them stays for connections to
    /// upstreams, of which an idle client has none and a busy one has one.
    static func ceiling(descriptors: UInt64) -> Int {
        let limit = Int(clamping: descriptors)
        return max(16, limit - max(Self.reserve, limit / 4))
    }

    /// The account of a listener; it outlives configurations that keep the address.
    func listener(_ address: ListenAddress) -> ListenerLedger {
        listeners.withLock { listeners in
            if let ledger = listeners[address] { return ledger }
            let ledger = ListenerLedger()
            listeners[address] = ledger
            return ledger
        }
    }

    /// Counts one connection more.
    ///
    /// - Returns: false when there is no room; nothing was counted then.
    func enter() -> Bool {
        open.take(upTo: ceiling.load(ordering: .relaxed))
    }

    /// Counts one less.
    func leave() {
        open.wrappingSubtract(1, ordering: .relaxed)
    }
}

/// How many connections one listener has, over all loops, and each network of its clients.
final class ListenerLedger: Sendable {
    private let open = Atomic<Int>(0)
    private let networks = NetworkCounts()

    /// Connections that are open.
    var count: Int { open.load(ordering: .relaxed) }

    /// Counts one connection more.
    ///
    /// - Parameters:
    ///   - limit: How many there may be; nil for any number.
    ///   - network: Who connects, with how many connections they may have.
    /// - Returns: the limit that is in the way; nil when the connection was counted.
    func enter(limit: Int?, network: (address: IPAddress, limit: Int)?) -> Limit? {
        if let network, !networks.add(network.address, limit: network.limit) {
            return .connectionsPerNetwork
        }
        if open.take(upTo: limit ?? .max) { return nil }
        if let network { networks.remove(network.address) }
        return .connections
    }

    /// Counts a connection that was counted without a network for one, when it turns out whose it is.
    ///
    /// - Returns: false when that network has `limit` connections already; nothing changed then.
    func assign(_ network: IPAddress, limit: Int) -> Bool {
        networks.add(network, limit: limit)
    }

    /// Counts one less.
    ///
    /// - Parameter network: What the connection was counted for when it came.
    func leave(network: IPAddress?) {
        open.wrappingSubtract(1, ordering: .relaxed)
        if let network { networks.remove(network) }
    }
}

extension Atomic<Int> {
    /// Adds one, unless that would be more than `limit`.
    fileprivate borrowing func take(upTo limit: Int) -> Bool {
        if wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
        wrappingSubtract(1, ordering: .relaxed)
        return false
    }
}
