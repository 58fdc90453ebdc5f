internal import Configuration
internal import Reactor
internal import Replay
internal import Synchronization

/// Looks into the stores that processes and machines share, through a session of its own.
struct StoreInspector: ClaimInspector {
    /// A person waits: longer than any request would.
    private static let patience = Duration.seconds(3)

    func inspect(_ claim: Claim, in configuration: Configuration) -> ClaimInspection {
        switch configuration.replay.store {
        case .memory:
            return .unknown("only the running process knows, its claims are in its memory")
        case .google:
            return .unknown("only Google knows, and asking there would use the token")
        case .file: return inspectFile(claim, configuration)
        case .redis(let server):
            let trouble = Trouble()
            let store = RedisStore(settings: RedisSettings(server)) { trouble.note($0) }
            if let outcome = ask(store, claim) { return .answered(outcome) }
            return .failed(trouble.text ?? "it did not answer in time")
        }
    }

    private func inspectFile(
        _ claim: Claim, _ configuration: Configuration
    ) -> ClaimInspection {
        let directory = configuration.server.claimsDirectory
        do throws(StoreOpenError) {
            let store = try FileStore.openForInspection(
                directory: directory, entryLimit: configuration.replay.maxEntries, now: claim.at,
                boot: .current())
            guard let store else {
                return .unknown(
                    "\(directory) has no claims since this machine booted; ask where the proxy runs"
                )
            }
            defer { store.close() }
            if let outcome = ask(store, claim) { return .answered(outcome) }
            return .unknown("the claims in \(directory) cannot be read")
        } catch {
            return .unknown("\(error.message); \(error.hint)")
        }
    }

    /// Blocks the calling thread, which becomes the event loop, until there is an answer.
    private func ask(_ store: any ClaimStore, _ claim: Claim) -> ClaimOutcome? {
        guard let loop = try? EventLoop() else { return .unavailable(.system) }
        let answer = Mutex<ClaimOutcome?>(nil)
        Task(executorPreference: loop) {
            let session = store.makeSession(on: loop)
            let waiter = Waiter(loop: loop)
            let deadline = loop.now.advanced(by: Self.patience)
            await session.warmUp(waiter: waiter, until: deadline)
            let outcome = await session.inspect(claim, waiter: waiter, until: deadline)
            session.close()
            waiter.invalidate()
            answer.withLock { $0 = outcome }
            loop.stop()
        }
        loop.run()
        return answer.withLock { $0 }
    }
}

/// Remembers the last thing that went wrong with a store.
private final class Trouble: Sendable {
    private let last = Mutex<String?>(nil)

    var text: String? { last.withLock { $0 } }

    func note(_ event: StoreEvent) {
        guard event.severity == .error || event.severity == .warning else { return }
        let field = { name in event.fields.first { $0.name == name }?.value }
        let reason = [field("server"), field("error") ?? event.message].compactMap(\.self)
        let parts = [reason.joined(separator: ": "), field("hint")].compactMap(\.self)
        last.withLock { $0 = parts.joined(separator: "; ") }
    }
}
