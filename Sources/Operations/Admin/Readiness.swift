public import Proxy
internal import Synchronization

/// Whether this process should get traffic, and why not. Shared by all threads.
///
/// It depends on keys and on the life of the process; that the process lives does not depend on it
/// (pitfall O6).
public final class Readiness: Sendable {
    /// Where the process is in its life.
    public enum Phase: String, Sendable {
        case starting, serving, draining
    }

    private let phase = Mutex(Phase.starting)
    private let keySets: @Sendable () -> [KeySetStatus]
    private let memory: MemoryReport

    /// Makes the state of a process that is starting.
    ///
    /// - Parameters:
    ///   - memory: What is known about the memory of the process.
    ///   - keySets: What is known about the keys of each project; asked each time.
    public init(
        memory: MemoryReport = MemoryReport(), keySets: @escaping @Sendable () -> [KeySetStatus]
    ) {
        self.memory = memory
        self.keySets = keySets
    }

    /// The process reached another phase. From `draining` there is no way back.
    public func enter(_ newPhase: Phase) {
        phase.withLock { if $0 != .draining { $0 = newPhase } }
    }

    /// Where the process is.
    var current: Phase { phase.withLock { $0 } }

    /// Why the process is not ready; empty when it is.
    public func reasons() -> [String] {
        var reasons: [String] = []
        switch current {
        case .starting: reasons.append("the configuration is not serving yet")
        case .serving: break
        case .draining: reasons.append("the process is draining")
        }
        let memory = memory.status
        if memory.isShedding {
            reasons.append(
                "memory is short: \(memory.used) of \(memory.limit ?? 0) bytes are taken, and load is "
                    + "shed")
        }
        return reasons + keySetReasons()
    }

    /// Names of the projects whose tokens can be verified now.
    public func usableProjects() -> [String] {
        keySets().filter(\.isUsable).map(\.project)
    }

    /// What is wrong with the keys of projects, or of those of these names.
    public func keySetReasons(among projects: [String]? = nil) -> [String] {
        var reasons: [String] = []
        for keys in keySets() where projects?.contains(keys.project) != false && !keys.isUsable {
            let state = keys.ageSeconds == nil ? "were never loaded" : "are too old to be used"
            let cause = keys.lastError.map { ": \($0)" } ?? ""
            reasons.append("the keys of project \(keys.project) \(state)\(cause)")
        }
        return reasons
    }
}
