internal import Attestation
internal import Configuration
internal import Proxy
internal import Reactor
internal import Synchronization

/// Key sets from where the proxy itself would get them, asked for once.
struct FetchedKeySets: KeySetSource {
    /// Blocks the calling thread, which becomes the event loop, until the fetch has ended.
    func keySet(of project: ProjectSource) -> Result<KeySet, KeysNotLoaded> {
        guard let loop = try? EventLoop() else {
            return .failure(KeysNotLoaded(reason: "no event loop can be had"))
        }
        let log = LastWord()
        let outcome = Mutex<KeySet?>(nil)
        // Keys of earlier runs are not asked for: whoever explains wants to know how it is now.
        let keeper = KeySetKeeper(
            loop: loop, projects: [project], stateDirectory: nil, version: Help.version, log: log
        ) { [loop] snapshot in
            guard let keys = snapshot.sets.first, keys.attempts > 0 else { return }
            outcome.withLock { $0 = keys.keySet }
            loop.stop()
        }
        Task(executorPreference: loop) { await keeper.start() }
        loop.run()
        if let keySet = outcome.withLock({ $0 }) { return .success(keySet) }
        return .failure(KeysNotLoaded(reason: log.text ?? "they could not be fetched"))
    }
}

/// Remembers the last thing that went wrong.
private final class LastWord: EventLog {
    private let last = Mutex<String?>(nil)

    var text: String? { last.withLock { $0 } }

    func log(_ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)]) {
        if level <= .warning { last.withLock { $0 = message } }
    }
}
