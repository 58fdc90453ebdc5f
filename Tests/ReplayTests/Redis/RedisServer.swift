import Foundation
import Reactor
import Synchronization
import TestKit

/// A real server for one test: of its own, on loopback, without a disk.
final class RedisServer: Sendable {
    /// The program, or nil where it is not installed.
    static let program: String? = [
        "/usr/bin/redis-server", "/usr/local/bin/redis-server", "/usr/bin/valkey-server",
    ].first { FileManager.default.isExecutableFile(atPath: $0) }

    /// For `@Suite(.enabled(if:))`: says once why tests are skipped.
    static let isInstalled: Bool = {
        if program == nil { print("skipped: redis-server is not installed") }
        return program != nil
    }()

    let folder: TemporaryFolder
    /// 0 for a server that has a socket in the file system alone.
    let port: UInt16
    private let arguments: [String]
    private let process: Mutex<Process?>

    /// Starts a server and waits until it answers.
    ///
    /// - Parameter options: Lines of its configuration. `PORT` and `FOLDER` are replaced.
    init(port: UInt16? = nil, isSentinel: Bool = false, _ options: [String] = []) async throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        let port = try port ?? Self.freePort()
        self.port = port
        let base = [
            "port PORT", "bind 127.0.0.1", "save \"\"", "appendonly no", "dir FOLDER",
            "logfile FOLDER/log", "unixsocket FOLDER/socket",
        ]
        let sentinel = ["port PORT", "bind 127.0.0.1", "dir FOLDER", "logfile FOLDER/log"]
        let lines = ((isSentinel ? sentinel : base) + options).map {
            $0.replacing("PORT", with: "\(port)").replacing("FOLDER", with: folder.path)
        }
        let file = try folder.write(lines.joined(separator: "\n") + "\n", to: "server.conf")
        arguments = [file] + (isSentinel ? ["--sentinel"] : [])
        process = Mutex(nil)
        try await start()
    }

    deinit {
        kill()
    }

    var socketPath: String { folder.path(of: "socket") }

    /// What it logged.
    var log: String {
        (try? folder.read("log")).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Starts it (again), with an empty memory.
    func start() async throws {
        guard let program = Self.program else { throw Errno.noSuchFile }
        let started = Process()
        started.executableURL = URL(filePath: program)
        started.arguments = arguments
        started.standardOutput = FileHandle.nullDevice
        started.standardError = FileHandle.nullDevice
        try started.run()
        process.withLock { $0 = started }
        try await until("it is ready:\n\(log)") {
            self.log.contains("Ready to accept connections")
                || self.log.contains("monitor master")
        }
    }

    /// Ends it at once, as a crash would.
    func kill() {
        process.withLock { process in
            guard let running = process else { return }
            Glibc.kill(running.processIdentifier, SIGKILL)
            running.waitUntilExit()
            process = nil
        }
        _ = try? folder.write("", to: "log")
    }

    /// Stops it from running, or lets it go on: it keeps its connections and answers nothing.
    func pause(_ isPaused: Bool) {
        process.withLock { process in
            guard let process else { return }
            Glibc.kill(process.processIdentifier, isPaused ? SIGSTOP : SIGCONT)
        }
    }

    /// What `redis-cli` prints for a command.
    @discardableResult
    func cli(_ words: String...) throws -> String {
        try cli(words)
    }

    /// What `redis-cli` prints for a command.
    func cli(_ words: [String]) throws -> String {
        let command = Process()
        command.executableURL = URL(filePath: "/usr/bin/redis-cli")
        let place = port == 0 ? ["-s", socketPath] : ["-p", "\(port)"]
        command.arguments = place + words
        let output = Pipe()
        command.standardOutput = output
        command.standardError = output
        try command.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        command.waitUntilExit()
        return String(decoding: text, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// A port that nobody listens on, nor on the one 10,000 above, where a cluster node talks.
    static func freePort() throws -> UInt16 {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000...32_000)
            guard let address = SocketAddress(literal: "127.0.0.1", port: port),
                let bus = SocketAddress(literal: "127.0.0.1", port: port + 10_000)
            else { continue }
            if (try? ListeningDescriptor(address, isShared: false)) != nil,
                (try? ListeningDescriptor(bus, isShared: false)) != nil
            {
                return port
            }
        }
        throw Errno.addressInUse
    }
}

/// What a test waited for did not come.
struct NeverHappened: Error, CustomStringConvertible {
    let description: String
}

/// Waits until something holds that takes its time, as starting a process does.
func until(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(15),
    _ holds: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + limit
    while try await !holds() {
        if ContinuousClock.now > end { throw NeverHappened(description: what()) }
        try await Task.sleep(for: .milliseconds(10))
    }
}
