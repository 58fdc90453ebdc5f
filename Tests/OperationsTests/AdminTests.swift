import Configuration
import FoundationEssentials
import Glibc
import HTTP
import Proxy
import Reactor
import Synchronization
import Testing

@testable import Operations

/// Key sets that a test changes.
private final class KeySets: Sendable {
    private let states = Mutex<[KeySetStatus]>([])

    func set(_ project: String, isUsable: Bool, age: Double?, error: String? = nil) {
        states.withLock { states in
            states.removeAll { $0.project == project }
            states.append(
                KeySetStatus(
                    project: project, isUsable: isUsable, ageSeconds: age, keyCount: 0,
                    skippedCount: 0, refreshes: [], lastError: error))
        }
    }

    var all: [KeySetStatus] { states.withLock { $0 } }
}

/// What the admin pages are made of.
private struct Process {
    let keySets = KeySets()
    let readiness: Readiness
    let access = AdminAccess()
    let events = EventRecorder()
    let pages: AdminPages

    init(control: (any AdminControl)? = nil) throws {
        let keySets = keySets
        let log = try LogWriter { _ in [] }
        readiness = Readiness { keySets.all }
        pages = AdminPages(
            metrics: MetricsPage(
                version: "1", loops: [], log: log, reloads: ReloadStatus(),
                keySets: { keySets.all }),
            readiness: readiness, access: access, control: control, events: events)
    }
}

@Suite("Admin pages")
struct AdminPagesTests {
    private struct Ready: Decodable, Equatable {
        var ready: Bool
        var reasons: [String]
    }

    private func ready(_ answer: AdminAnswer) throws -> Ready {
        try JSONDecoder().decode(Ready.self, from: Data(answer.body))
    }

    @Test("O6: readiness depends on keys and says why not; liveness does not depend on anything")
    func readiness() async throws {
        let process = try Process()
        process.keySets.set("production", isUsable: false, age: nil, error: "connection refused")
        process.keySets.set("staging", isUsable: false, age: 90_000)
        var answer = await process.pages.answer(AdminRequest(.get, "/readyz"))
        #expect(answer.status == 503)
        #expect(
            try ready(answer)
                == Ready(
                    ready: false,
                    reasons: [
                        "the configuration is not serving yet",
                        "the keys of project production were never loaded: connection refused",
                        "the keys of project staging are too old to be used",
                    ]))
        #expect(await process.pages.answer(AdminRequest(.get, "/healthz")).status == 200)

        process.readiness.enter(.serving)
        process.keySets.set("production", isUsable: true, age: 1, error: "last refresh failed")
        process.keySets.set("staging", isUsable: true, age: 1)
        answer = await process.pages.answer(AdminRequest(.get, "/readyz"))
        #expect(answer.status == 200)
        #expect(try ready(answer) == Ready(ready: true, reasons: []))

        process.readiness.enter(.draining)
        process.readiness.enter(.serving)
        answer = await process.pages.answer(AdminRequest(.get, "/readyz"))
        #expect(answer.status == 503)
        #expect(try ready(answer).reasons == ["the process is draining"])
        #expect(await process.pages.answer(AdminRequest(.get, "/healthz")).status == 200)
    }

    @Test(
        "are three, and can only be read",
        arguments: [
            (.get, "/metrics", 200), (.head, "/metrics", 200), (.get, "/healthz", 200),
            (.head, "/readyz", 503), (.post, "/metrics", 405), (.delete, "/healthz", 405),
            (.other, "/readyz", 405), (.get, "/", 404), (.get, "/metrics/", 404),
            (.get, "/Healthz", 404), (.post, "/nothing", 404),
        ] as [(HTTP.Method, String, UInt16)])
    func table(_ method: HTTP.Method, _ path: String, _ status: UInt16) async throws {
        let answer = await (try Process()).pages.answer(AdminRequest(method, path))
        #expect(answer.status == status)
        #expect((answer.allow != nil) == (status == 405))
    }

    @Test(
        "tell the time as HTTP wants it",
        arguments: [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (-1, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_709_208_000, "Thu, 29 Feb 2024 12:00:00 GMT"),
            (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] as [(Int64, String)])
    func date(_ seconds: Int64, _ expected: String) {
        #expect(HTTPDate(seconds: seconds).description == expected)
    }
}

@Suite("Admin server", .timeLimit(.minutes(1)))
struct AdminServerTests {
    /// A server on a loop and a port of its own, for as long as `body` runs.
    private func withServer(
        unixPath: String? = nil, _ body: (Process, ServerAddress) async throws -> Void
    ) async throws {
        let process = try Process()
        let any = try #require(
            unixPath.map { SocketAddress(unixPath: $0) }
                ?? SocketAddress(literal: "127.0.0.1", port: 0))
        let listening = try ListeningDescriptor(any, unixPath: unixPath, isShared: false)
        let loop = try EventLoop()
        Thread.start(named: "admin") { loop.run() }
        defer { loop.stop() }
        let server = AdminServer(loop: loop, pages: process.pages, events: EventRecorder())
        async let running: Void = server.run(listening)
        do {
            try await body(process, ServerAddress(port: listening.address.port, unixPath: unixPath))
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        try await running
    }

    /// Connects, sends, and reads to the end of the connection.
    private func exchange(_ address: ServerAddress, _ request: String) async throws -> String {
        let client = try Client(address)
        client.send(request)
        return await client.readToEnd()
    }

    @Test("O7: serves metrics, health and readiness on a socket of its own, keeping connections")
    func keepAlive() async throws {
        try await withServer { process, address in
            process.readiness.enter(.serving)
            let text = try await exchange(
                address,
                "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nHEAD /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "GET /metrics?x HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")
            let parts = text.components(separatedBy: "HTTP/1.1 ").dropFirst()
            try #require(parts.count == 3)
            let (health, ready, metrics) = (parts[1], parts[2], parts[3])
            #expect(health.hasPrefix("200 OK\r\nDate: ") && health.hasSuffix("\r\n\r\nok\n"))
            #expect(health.contains("\r\nContent-Length: 3\r\n"))
            #expect(!health.contains("Connection: close"))
            #expect(ready.hasPrefix("200 OK\r\n") && ready.hasSuffix("\r\n\r\n"))
            #expect(ready.contains("\r\nContent-Type: application/json\r\nContent-Length: 28\r\n"))
            #expect(metrics.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8"))
            #expect(metrics.contains("\r\nConnection: close\r\n"))
            let body = try #require(metrics.components(separatedBy: "\r\n\r\n").last)
            _ = try MetricsParser(Array(body.utf8))
        }
    }

    @Test("listens on a local socket, too")
    func localSocket() async throws {
        let path = "/tmp/portcullis-admin-\(getpid()).sock"
        try await withServer(unixPath: path) { _, address in
            let text = try await exchange(address, "GET /healthz HTTP/1.0\r\n\r\n")
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
        #expect(access(path, F_OK) == -1)
    }

    @Test(
        "refuses what is not a plain question, and closes",
        arguments: [
            Refusal("no host", "GET /metrics HTTP/1.1\r\n\r\n", 400),
            Refusal(
                "a body", "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400
            ),
            Refusal(
                "a chunked body",
                "POST /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            Refusal("TLS", "\u{16}\u{3}\u{1}\r\n\r\n", 400),
            Refusal(
                "a long target",
                "GET /\(String(repeating: "x", count: 2000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            Refusal(
                "a long head",
                "GET / HTTP/1.1\r\nX: \(String(repeating: "x", count: 9000))\r\n\r\n", 431),
            Refusal("another version", "GET /healthz HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        ])
    fileprivate func refusals(_ refusal: Refusal) async throws {
        try await withServer { _, address in
            let text = try await exchange(address, refusal.request)
            #expect(text.hasPrefix("HTTP/1.1 \(refusal.status) "), "\(text)")
            #expect(text.contains("\r\nConnection: close\r\n"))
        }
    }

    @Test("serves no more than its connections at once, and goes on when one ends")
    func connectionLimit() async throws {
        try await withServer { _, address in
            var clients = try (0..<65).map { _ in try Client(address) }
            for client in clients { client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") }
            for client in clients.prefix(64) {
                #expect(await client.read(until: "ok\n").hasSuffix("ok\n"))
            }
            #expect(clients[64].hasNothingToRead)
            clients.removeFirst()
            #expect(await clients[63].read(until: "ok\n").hasSuffix("ok\n"))
        }
    }

    @Test("answers a head that comes byte by byte, and forgets a client that leaves in the middle")
    func slowHead() async throws {
        try await withServer { _, address in
            let leaver = try Client(address)
            leaver.send("GET /healthz HT")
            leaver.finish()
            #expect(await leaver.readToEnd() == "")
            let client = try Client(address)
            for byte in "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" { client.send(String(byte)) }
            #expect(await client.read(until: "ok\n").hasSuffix("ok\n"))
        }
    }
}

/// A request that the admin listener refuses.
private struct Refusal: CustomTestStringConvertible {
    let testDescription: String
    let request: String
    let status: Int

    init(_ name: String, _ request: String, _ status: Int) {
        testDescription = name
        self.request = request
        self.status = status
    }
}

/// Where a test's server listens.
private struct ServerAddress {
    var port: UInt16?
    var unixPath: String?
}

/// A blocking client.
private final class Client: Sendable {
    private let descriptor: Int32

    init(_ address: ServerAddress) throws {
        descriptor = socket(
            address.unixPath == nil ? AF_INET : AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let status: Int32
        if let path = address.unixPath {
            var target = sockaddr_un()
            target.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: path.utf8) }
            status = Self.connect(descriptor, target)
        } else {
            var target = sockaddr_in()
            target.sin_family = sa_family_t(AF_INET)
            target.sin_port = (address.port ?? 0).bigEndian
            target.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            status = Self.connect(descriptor, target)
        }
        try #require(status == 0)
    }

    private static func connect<Address>(_ descriptor: Int32, _ address: Address) -> Int32 {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }

    deinit {
        close(descriptor)
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    func finish() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    var hasNothingToRead: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT | MSG_PEEK)) == -1
    }

    func readToEnd() async -> String {
        await read(until: "\u{0}")
    }

    /// Reads, on a thread of its own, until the text ends in `end` or the connection does.
    func read(until end: String) async -> String {
        await withCheckedContinuation { continuation in
            Thread.start(named: "client") {
                var text: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while !String(decoding: text, as: UTF8.self).hasSuffix(end) {
                    let count = recv(self.descriptor, &buffer, buffer.count, 0)
                    if count <= 0 { break }
                    text += buffer[..<count]
                }
                continuation.resume(returning: String(decoding: text, as: UTF8.self))
            }
        }
    }
}
