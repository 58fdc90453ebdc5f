internal import Configuration
internal import Proxy
internal import Reactor
internal import Replay
internal import Synchronization

/// The process's one claim store: opened when the first route wants it, and kept until the process
/// ends, whatever is reloaded. Two stores, be it for a moment, would let a token pass twice (pitfall
/// R14).
final class ClaimAuthority: Sendable {
    private static let purgeInterval = Duration.seconds(1)

    private struct Opened {
        let store: any ClaimStore
        let settings: ReplaySettings
        let place: String
    }

    private let opened = Mutex<Opened?>(nil)
    private let log: any EventLog
    private let keepsState: Bool
    /// The place where the process claims whose place this one takes; nil when it claims nowhere.
    private let earlierPlace: String?

    /// - Parameters:
    ///   - keepsState: What is written to the state directory outlives the process.
    ///   - earlierPlace: Where a process claims that still serves while this one does.
    init(keepsState: Bool, earlierPlace: String? = nil, log: any EventLog) {
        self.keepsState = keepsState
        self.earlierPlace = earlierPlace
        self.log = log
    }

    /// The store, once it is open.
    var store: (any ClaimStore)? { opened.withLock { $0?.store } }

    /// Where claims are made; nil while they are made nowhere.
    var place: String? { opened.withLock { $0?.place } }

    /// Claims are in this process's memory, where no other process finds them.
    var isConfined: Bool { opened.withLock { $0?.settings.store == .memory } }

    /// Opens the store of a configuration.
    ///
    /// - Returns: the store when it was opened by this call; nil when it is open already, or when no
    ///   route asks for one.
    /// - Throws: why it cannot be used. Nothing has changed then.
    func open(for configuration: Configuration) throws(StoreOpenError) -> (any ClaimStore)? {
        guard configuration.claimsTokens, store == nil else { return nil }
        let settings = configuration.replay
        if let earlierPlace, earlierPlace != StoreWording(configuration).location {
            throw StoreOpenError(
                "the running process claims tokens in another store (\(earlierPlace)), and a token "
                    + "could pass in both",
                hint: "restart instead of upgrading")
        }
        if settings.store == .file, keepsState {
            try Self.makeWritable(configuration.server.stateDirectory)
        }
        let store = try StoreFactory.open(configuration, log: log)
        let place = StoreWording(configuration).location
        opened.withLock { $0 = Opened(store: store, settings: settings, place: place) }
        log.log(.info, "replay store opened", [("store", "\(store.name)")])
        return store
    }

    /// Goes by the settings of a configuration that need no other store.
    func adopt(_ settings: ReplaySettings) {
        store?.adopt(patience: settings.timeout)
    }

    /// Whether the configuration asks for another store than the one that is open.
    func differs(from settings: ReplaySettings) -> Bool {
        guard let opened = opened.withLock({ $0 }) else { return false }
        return opened.settings.store != settings.store
            || opened.settings.maxEntries != settings.maxEntries
    }

    /// Has the store forget what has expired, for as long as `isWanted`. Off the request path, and
    /// also when no request comes.
    nonisolated(nonsending)
        func purgeRegularly(on loop: EventLoop, while isWanted: () -> Bool) async
    {
        let waiter = Waiter(loop: loop)
        while isWanted() {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.purgeInterval))
            guard let store else { continue }
            // A step at a time: probes and signals are answered in between.
            while isWanted() && store.purge(at: .now) { await Task.yield() }
        }
        waiter.invalidate()
    }

    private static func makeWritable(_ directory: String) throws(StoreOpenError) {
        try? Syscalls.makeDirectory(directory, mode: 0o700)
        if Syscalls.isWritable(directory) { return }
        throw StoreOpenError(
            "the state directory \(directory) cannot be written, and the replay store \"file\" lies "
                + "there",
            hint: "create it for this user, set [server] state_directory, or choose another "
                + "[replay] store")
    }
}
