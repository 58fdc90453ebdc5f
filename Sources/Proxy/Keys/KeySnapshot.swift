public import Attestation
public import Reactor

/// One project's keys at one moment.
public struct ProjectKeys: Sendable {
    /// The project's name in the configuration.
    public let project: String
    /// The last good keys, or nil when there never were any. Ask `usable(at:)` before verifying
    /// with them.
    public let keySet: KeySet?
    /// When the keys were asked for.
    public let fetchedAt: MonotonicInstant
    /// The keys must not be used from this instant on; `never` for a file.
    public let usableUntil: MonotonicInstant
    /// Changes whenever the keys do, and only then: what was verified under another generation
    /// has to be verified again (pitfall K7).
    public let generation: UInt64
    /// Attempts that have ended, well or not. Who waits for a refetch waits until this grows.
    public let attempts: UInt64

    /// The keys, or nil when there are none that may be used at `now`: verdict `unavailable/keys`.
    public func usable(at now: MonotonicInstant) -> KeySet? {
        now < usableUntil ? keySet : nil
    }
}

/// The keys of every project at one moment, in the order of the configuration. Immutable: each
/// event loop gets a copy.
public struct KeySnapshot: Sendable {
    /// By index of the project.
    public let sets: [ProjectKeys]
    /// Counts the configurations: projects are known by their place, so these keys belong to the
    /// configuration that they were made for and to no other.
    public let edition: UInt64
    /// Counts the changes: of two snapshots the one with the higher count is the newer one.
    public let change: UInt64

    /// A snapshot; tests leave out the counts.
    public init(sets: [ProjectKeys], edition: UInt64 = 0, change: UInt64 = 0) {
        self.sets = sets
        self.edition = edition
        self.change = change
    }

    /// Whether a loop that has these keys may change over to `next`: snapshots travel to the loops
    /// on ways of their own, so one can arrive late, or before the configuration that it is for.
    public func isReplaced(by next: KeySnapshot) -> Bool {
        next.edition == edition && next.change >= change
    }

    /// The keys of a project, by its index in the configuration that this snapshot was made for.
    public func usableKeys(ofProject index: Int, at now: MonotonicInstant) -> KeySet? {
        sets.indices.contains(index) ? sets[index].usable(at: now) : nil
    }
}
