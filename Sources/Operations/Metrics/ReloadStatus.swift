internal import Reactor
internal import Synchronization

/// How reloads of the configuration went, for the metrics and `portcullis status`.
public final class ReloadStatus: Sendable {
    private struct State {
        /// Reloads that took effect.
        var succeeded: UInt64 = 0
        /// Reloads that changed nothing.
        var failed: UInt64 = 0
        /// The configuration in use is the one in the file, as far as is known.
        var isLastSuccessful = true
        /// When the last one ended, and why it changed nothing.
        var lastAt: Int64?
        var mistakes: [String] = []
        /// When the configuration in use was put in place; seconds since 1970, as above.
        var loadedAt = Syscalls.wallMicroseconds() / 1_000_000
    }

    private let state = Mutex(State())

    public init() {}

    /// Mistakes that are remembered of a reload; the log has them all.
    private static let mistakeLimit = 5

    /// A reload ended: `succeeded` when the new configuration serves now, and else why it does not.
    public func ended(succeeded: Bool, mistakes: [String] = []) {
        let now = Syscalls.wallMicroseconds() / 1_000_000
        state.withLock { state in
            if succeeded { state.succeeded += 1 } else { state.failed += 1 }
            state.isLastSuccessful = succeeded
            state.lastAt = now
            state.mistakes = Array(mistakes.prefix(Self.mistakeLimit))
            if succeeded { state.loadedAt = now }
        }
    }

    /// What a report says of it.
    ///
    /// - Parameter file: Where the configuration comes from.
    public func report(file: String) -> StatusReport.ConfigurationPart {
        state.withLock { state in
            var part = StatusReport.ConfigurationPart(
                file: file, loadedAt: InternetTime.text(state.loadedAt))
            part.reloads = state.succeeded
            part.failedReloads = state.failed
            part.lastReloadAt = state.lastAt.map(InternetTime.text)
            part.lastReloadErrors =
                state.isLastSuccessful
                ? [] : state.mistakes.isEmpty ? ["see the log"] : state.mistakes
            return part
        }
    }

    var succeeded: UInt64 { state.withLock { $0.succeeded } }
    var failed: UInt64 { state.withLock { $0.failed } }
    var isLastSuccessful: Bool { state.withLock { $0.isLastSuccessful } }
}
