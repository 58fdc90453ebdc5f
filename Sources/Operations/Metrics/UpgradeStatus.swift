internal import Synchronization

/// How binary upgrades went, for the metrics. The counts go from each process to the one that takes
/// its place.
public final class UpgradeStatus: Sendable {
    /// Counts since the first process of the line.
    public struct Counts: Sendable, Equatable {
        /// Processes that handed over to another one.
        public var succeeded: UInt64
        /// Attempts that changed nothing.
        public var failed: UInt64

        public init(succeeded: UInt64 = 0, failed: UInt64 = 0) {
            self.succeeded = succeeded
            self.failed = failed
        }
    }

    private let latest: Mutex<Counts>

    /// - Parameter counts: What the process before this one has counted.
    public init(_ counts: Counts = Counts()) {
        latest = Mutex(counts)
    }

    /// The counts now.
    public var counts: Counts { latest.withLock { $0 } }

    /// An attempt failed, and this process serves on.
    public func failed() {
        latest.withLock { $0.failed &+= 1 }
    }

    /// This process took another one's place.
    public func succeeded() {
        latest.withLock { $0.succeeded &+= 1 }
    }
}

extension MetricsPage {
    func appendUpgrades(_ counts: UpgradeStatus.Counts, to text: inout MetricsText) {
        text.family(
            "portcullis_upgrades_total", .counter,
            "Attempts to hand the listeners over to a new binary.")
        text.sample([("result", "success")], counts.succeeded)
        text.sample([("result", "failure")], counts.failed)
    }
}
