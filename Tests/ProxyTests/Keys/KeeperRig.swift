import Attestation
import Configuration
import Reactor
import Synchronization
import TestKit
import Testing

@testable import Proxy

/// Remembers what was logged.
final class LogCollector: EventLog {
    struct Line: Sendable {
        let level: Log.Level
        let message: String
        let fields: [String: String]
    }

    private let collected = Mutex<[Line]>([])

    var lines: [Line] { collected.withLock { $0 } }

    /// The messages of one level.
    func messages(_ level: Log.Level) -> [String] {
        lines.filter { $0.level == level }.map(\.message)
    }

    func log(_ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)]) {
        let line = Line(
            level: level, message: message, fields: Dictionary(fields) { first, _ in first })
        collected.withLock { $0.append(line) }
    }
}

/// A keeper on a loop of its own, with everything that it says caught.
final class KeeperRig: Sendable {
    let keeper: KeySetKeeper
    let log = LogCollector()
    private let snapshots: AsyncStream<KeySnapshot>
    private let loop: EventLoop

    init(
        _ sources: [ProjectSource], stateDirectory: String? = nil,
        url: KeySchedule.Intervals = .url, file: KeySchedule.Intervals = .file
    ) throws {
        let loop = try EventLoop()
        self.loop = loop
        Thread.start(named: "test control") { loop.run() }
        let (stream, continuation) = AsyncStream.makeStream(of: KeySnapshot.self)
        snapshots = stream
        keeper = KeySetKeeper(
            loop: loop, projects: sources, stateDirectory: stateDirectory, version: "1.2.3",
            log: log, intervals: .init(url: url, file: file), publish: { continuation.yield($0) })
    }

    deinit {
        loop.stop()
    }

    /// The next published snapshot in which the only project's keys are so.
    func keys(where condition: (ProjectKeys) -> Bool) async throws -> ProjectKeys {
        for await snapshot in snapshots {
            if let keys = snapshot.sets.first, condition(keys) { return keys }
        }
        throw Errno.invalidArgument
    }

    /// The next snapshot that was published.
    func next() async -> KeySnapshot? {
        var iterator = snapshots.makeAsyncIterator()
        return await iterator.next()
    }

    /// How the only project's keys are doing.
    func status() async throws -> KeySetStatus {
        try #require(await keeper.status.first)
    }
}

extension KeySchedule.Intervals {
    /// As for a URL, but everything in milliseconds. The wheel of the loop's timers turns in
    /// steps of 64.
    static func milliseconds(
        refresh: Int64 = 3_600_000, usable: Int64 = 3_600_000, coolDown: Int64 = 30_000,
        retry: Int64 = 20
    ) -> KeySchedule.Intervals {
        KeySchedule.Intervals(
            refresh: .milliseconds(refresh), shortestRefresh: .milliseconds(1),
            usable: .milliseconds(usable), coolDown: .milliseconds(coolDown),
            firstRetry: .milliseconds(retry), longestRetryWithoutKeys: .milliseconds(retry),
            longestRetryWithKeys: .milliseconds(retry), jitter: 0.1)
    }
}

extension ProjectSource {
    /// A project whose keys come from a scripted server.
    static func url(_ server: ScriptedServer, name: String = "production") -> ProjectSource {
        var project = TestIssuer.project
        project.name = name
        return ProjectSource(project: project, keys: .url("http://127.0.0.1:\(server.port)/jwks"))
    }

    /// A project whose keys come from a file.
    static func file(_ path: String) -> ProjectSource {
        ProjectSource(project: TestIssuer.project, keys: .file(path))
    }
}

/// The `kid` of each key that may be used now.
func usableKeyIDs(_ keys: ProjectKeys) -> [String] {
    keys.usable(at: .now)?.keyIDs ?? []
}
