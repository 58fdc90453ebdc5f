internal import Synchronization

/// How reloads of the configuration went, for the metrics.
public final class ReloadStatus: Sendable {
    private struct State {
        /// Reloads that took effect.
        var succeeded: UInt64 = 0
        /// Reloads that changed nothing.
        var failed: UInt64 = 0
        /// The configuration in use is the one in the file, as far as is known.
        var isLastSuccessful = true
    }

    private let state = Mutex(State())

    public init() {}

    /// A reload ended: `succeeded` when the new configuration serves now.
    public func ended(succeeded: Bool) {
        state.withLock { state in
            if succeeded { state.succeeded += 1 } else { state.failed += 1 }
            state.isLastSuccessful = succeeded
        }
    }

    var succeeded: UInt64 { state.withLock { $0.succeeded } }
    var failed: UInt64 { state.withLock { $0.failed } }
    var isLastSuccessful: Bool { state.withLock { $0.isLastSuccessful } }
}
