public import Configuration
public import Proxy
internal import Reactor
internal import Replay

extension StatusReport.ProcessPart {
    /// This process.
    ///
    /// - Parameters:
    ///   - startedAt: Seconds since 1970.
    ///   - uptime: Since the start.
    ///   - silentLoops: Event loops that do not answer.
    public init(
        version: String, startedAt: Int64, uptime: Duration, readiness: Readiness,
        log: LogWriter, memory: MemoryReport, loops: Int, silentLoops: [Int]
    ) {
        let reasons = readiness.reasons()
        self.init(
            version: version, pid: Syscalls.processIdentifier(),
            startedAt: InternetTime.text(startedAt), uptimeSeconds: uptime.components.seconds,
            phase: readiness.current.rawValue, ready: reasons.isEmpty, loops: loops)
        notReady = reasons
        self.silentLoops = silentLoops
        residentBytes = ProcessStatistics.residentBytes
        memoryLimitBytes = memory.status.limit
        openDescriptors = ProcessStatistics.openDescriptors
        let limit = Syscalls.descriptorLimit()
        descriptorLimit = limit > 0 ? limit : nil
        droppedLogLines = log.droppedLines
    }
}

extension StatusReport.ListenerPart {
    /// The listeners of a configuration.
    public static func all(_ listeners: [Listener], _ loops: [LoopMetrics]) -> [Self] {
        let preferences: [ClientProtocol] = [.http2, .http1]
        return listeners.map { listener in
            let counters = loops.compactMap { $0.allListeners[listener.name] }
            var part = Self(
                name: listener.name,
                protocols: preferences.filter(listener.protocols.contains).map(\.rawValue),
                tls: listener.tls != nil)
            part.active = max(0, counters.reduce(0) { $0 &+ $1.active.level })
            part.idle = max(0, counters.reduce(0) { $0 &+ $1.idle.level })
            part.accepted = counters.reduce(0) { $0 &+ $1.accepted.total }
            return part
        }
    }
}

extension StatusReport.KeySetPart {
    /// One project's keys.
    public init(_ keys: KeySetStatus) {
        self.init(
            project: keys.project, usable: keys.isUsable, keys: keys.keyCount,
            skipped: keys.skippedCount, ageSeconds: keys.ageSeconds.flatMap(Self.whole),
            nextRefreshSeconds: keys.nextAttemptSeconds.flatMap(Self.whole),
            lastError: keys.lastError)
    }

    private static func whole(_ seconds: Double) -> Int64? { Int64(exactly: seconds.rounded()) }
}

extension StatusReport.ReplayPart {
    /// The store.
    public init(_ store: ClaimStoreStatus) {
        self.init(
            store: "\(store.name)", entries: store.statistics.entries,
            entryLimit: store.statistics.entryLimit, breaker: store.statistics.breaker?.rawValue)
    }
}

extension StatusReport {
    /// Derives what is wrong, now that everything else is there.
    public mutating func findProblems() {
        problems = derivedProblems
    }
}
