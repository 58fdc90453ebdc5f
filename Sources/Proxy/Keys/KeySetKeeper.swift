internal import Attestation
public import Configuration
public import Reactor
internal import Synchronization

/// Keeps every project's keys fresh, so that no request ever waits for a key set.
///
/// It lives on a control loop of its own, away from requests: it may read files there. What it
/// knows leaves it as immutable snapshots. A failure never takes good keys away; only a newer
/// good set and age do.
public actor KeySetKeeper {
    /// The control loop.
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// How often to do what; other than the defaults only in tests.
    struct Intervals: Sendable {
        var url = KeySchedule.Intervals.url
        var file = KeySchedule.Intervals.file
    }

    private let log: any EventLog
    private let stateDirectory: String?
    private let version: String
    private let intervals: Intervals
    private let publish: @Sendable (KeySnapshot) -> Void
    private let initialSources: [ProjectSource]
    /// In the order of the configuration.
    private var projects: [ProjectKeeper] = []
    private var edition: UInt64 = 0
    private var change: UInt64 = 0
    private var isStarted = false
    private var isStopped = false
    /// Projects whose refetch was asked for and has not been made. Tokens of strangers ask, as
    /// often as they like: all but the first request find the name here and cost no more.
    private nonisolated let wanted = Mutex<Set<String>>([])

    /// - Parameter loop: The control loop. It need not run yet.
    /// - Parameter stateDirectory: Where the last good key sets are kept for the next start; nil
    ///   keeps none.
    /// - Parameter version: Of this program, for its `User-Agent`.
    /// - Parameter publish: Gets each new snapshot, on the control loop: after every attempt,
    ///   well or not, and when keys become too old.
    public init(
        loop: EventLoop, projects: [ProjectSource], stateDirectory: String?, version: String,
        log: any EventLog, publish: @escaping @Sendable (KeySnapshot) -> Void
    ) {
        self.init(
            loop: loop, projects: projects, stateDirectory: stateDirectory, version: version,
            log: log,
            intervals: Intervals(), publish: publish)
    }

    init(
        loop: EventLoop, projects: [ProjectSource], stateDirectory: String?, version: String,
        log: any EventLog, intervals: Intervals,
        publish: @escaping @Sendable (KeySnapshot) -> Void
    ) {
        self.loop = loop
        self.log = log
        self.stateDirectory = stateDirectory
        self.version = version
        self.intervals = intervals
        self.publish = publish
        initialSources = projects
    }

    /// Takes over what an earlier run kept, and starts to fetch. Returns before anything is
    /// fetched.
    ///
    /// - Returns: the keys of the earlier run.
    @discardableResult
    public func start() -> KeySnapshot {
        precondition(!isStarted, "started twice")
        isStarted = true
        return update(projects: initialSources)
    }

    /// Changes over to the projects of a reloaded configuration. Projects whose name and source
    /// are the same keep their keys and schedule; the others start anew.
    ///
    /// - Returns: the snapshot that belongs to this configuration: hand out both together.
    @discardableResult
    public func update(projects sources: [ProjectSource]) -> KeySnapshot {
        precondition(isStarted, "not started")
        var old = projects
        projects = sources.map { source in
            if let index = old.firstIndex(where: { Self.isSameOrigin($0.source, source) }) {
                return old.remove(at: index)
            }
            return begin(source)
        }
        for project in old { project.stop() }
        edition += 1
        change += 1
        let snapshot = snapshot
        publish(snapshot)
        return snapshot
    }

    /// Asks for new keys because a token names a key that is not in the set. Returns at once, and
    /// may be called from any thread for any number of tokens: there is at most one fetch in a
    /// cool-down of 30 s. Its end shows in `ProjectKeys.attempts`.
    ///
    /// - Parameter project: Its name in the configuration.
    public nonisolated func refetch(_ project: String) {
        if wanted.withLock({ $0.insert(project).inserted }) {
            Task { await self.passOn(project) }
        }
    }

    /// The keys as they are now.
    public var snapshot: KeySnapshot {
        KeySnapshot(sets: projects.map(\.keys), edition: edition, change: change)
    }

    /// How each project's keys are doing, in the order of the configuration.
    public var status: [KeySetStatus] {
        projects.map(\.status)
    }

    /// Ends all fetching, also the one under way. The snapshots that were published stay valid.
    public func stop() {
        isStopped = true
        for project in projects { project.stop() }
        projects = []
    }

    private func begin(_ source: ProjectSource) -> ProjectKeeper {
        let isFile = if case .file = source.keys { true } else { false }
        let project = ProjectKeeper(
            source, loop: loop, intervals: isFile ? intervals.file : intervals.url,
            stateDirectory: stateDirectory, version: version, log: log)
        project.restore()
        if !isStopped { Task { await self.keep(project) } }
        return project
    }

    private func keep(_ project: ProjectKeeper) async {
        while await project.advance() {
            _ = wanted.withLock { $0.remove(project.source.project.name) }
            change += 1
            publish(snapshot)
        }
    }

    private func passOn(_ name: String) {
        guard let project = projects.first(where: { $0.source.project.name == name }) else {
            _ = wanted.withLock { $0.remove(name) }
            return
        }
        project.requestRefetch()
    }

    private static func isSameOrigin(_ left: ProjectSource, _ right: ProjectSource) -> Bool {
        left.project.name == right.project.name && left.keys == right.keys
            && left.keysCA == right.keysCA && left.egressProxy == right.egressProxy
            && left.keysHeaders.elementsEqual(right.keysHeaders) { $0 == $1 }
    }
}
