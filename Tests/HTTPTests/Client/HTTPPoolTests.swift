import HTTP
import Reactor
import TLS
import TestKit
import Testing

@Suite("HTTP pool")
struct HTTPPoolTests {
    private typealias Answer = ScriptedServer.Answer

    private static func pool(
        _ loop: EventLoop, _ url: String, _ limits: HTTPPool.Limits = .init(),
        trust: TLSTrust = .system
    ) throws -> HTTPPool {
        HTTPPool(
            loop: loop, origin: HTTPOrigin(try HTTPURL(url), trust: trust), version: "1.2.3",
            limits: limits)
    }

    private static func post(_ body: String = "{}", patience: Duration = .seconds(5))
        -> HTTPPostRequest
    {
        HTTPPostRequest(
            "/v1:ask", contentType: "application/json", body: Array(body.utf8),
            deadline: .now.advanced(by: patience))
    }

    /// What an exchange ends with when it fails. Stays on the caller's loop, which `#expect` with an
    /// expression that waits would not.
    private static func failure(
        of pool: HTTPPool, _ request: HTTPPostRequest = post()
    ) async -> HTTPClientError? {
        do throws(HTTPClientError) {
            _ = try await pool.post(request)
            return nil
        } catch {
            return error
        }
    }

    private static func answer(_ body: String, status: Int = 200) -> Answer {
        Answer(
            "HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
            then: .another)
    }

    @Test("sends a content with its type and length, and keeps the connection")
    func requests() async throws {
        let server = try await ScriptedServer.start { _, index in Self.answer("\(index)") }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            for index in 0..<3 {
                let response = try await pool.post(Self.post("{\"n\":\(index)}"))
                #expect(response.body == Array("\(index)".utf8))
            }
            pool.close()
        }
        #expect(
            await server.requests.first
                == "POST /v1:ask HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"
                + "User-Agent: portcullis/1.2.3\r\nAccept: application/json\r\n"
                + "Accept-Encoding: identity\r\nContent-Type: application/json\r\n"
                + "Content-Length: 7\r\n\r\n{\"n\":0}")
        #expect(await server.requests.count == 3)
        #expect(await server.connectionCount == 1)
    }

    @Test("any complete answer is one, whatever its status", arguments: [200, 302, 403, 500])
    func statuses(status: Int) async throws {
        let server = try await ScriptedServer.start { _, _ in Self.answer("why", status: status) }
        let url = "http://127.0.0.1:\(server.port)"
        let response = try await TestLoop().run { resident in
            try await Self.pool(resident.loop, url).post(Self.post())
        }
        #expect(response.status == UInt16(status))
        #expect(response.body == Array("why".utf8))
    }

    @Test("keeps a connection with TLS, the tickets that come while it rests included")
    func tls() async throws {
        let folder = try TemporaryFolder()
        let mint = try CertificateMint(in: folder)
        let identity = try mint.issue(["DNS:localhost"])
        let context = try TLSContext.server(
            certificate: identity.certificate, key: identity.key)
        let server = try await ScriptedServer.start(context) { _, _ in Self.answer("{}") }
        let url = "https://localhost:\(server.port)"
        let trust = TLSTrust.certificates(inFile: mint.file)
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url, trust: trust)
            try await pool.connect(until: .now.advanced(by: .seconds(5)))
            for _ in 0..<3 { _ = try await pool.post(Self.post()) }
            pool.close()
        }
        #expect(await server.requests.count == 3)
        #expect(await server.connectionCount == 1)
    }

    @Test("more exchanges than connections take turns, and the bound holds")
    func bound() async throws {
        let server = try await ScriptedServer.start { _, _ in Self.answer("{}") }
        let url = "http://127.0.0.1:\(server.port)"
        let answers = try await TestLoop().run { resident in
            var limits = HTTPPool.Limits()
            limits.connections = 3
            let crowd = Crowd(pool: try Self.pool(resident.loop, url, limits))
            return await crowd.run(50, on: resident.loop, Self.post())
        }
        #expect(answers == [UInt16](repeating: 200, count: 50))
        #expect(await server.requests.count == 50)
        #expect(await server.connectionCount == 3)
    }

    @Test("whoever finds too many waiting is told so at once")
    func crowded() async throws {
        let server = try await ScriptedServer.start { _, _ in Answer("", then: .silence) }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            var limits = HTTPPool.Limits()
            limits.connections = 1
            limits.waiting = 0
            let pool = try Self.pool(resident.loop, url, limits)
            let crowd = Crowd(pool: pool)
            let first = crowd.start(on: resident.loop, Self.post())
            await server.received(atLeast: 1)
            let error = await Self.failure(of: pool)
            #expect(error?.cause == .crowded)
            #expect(error?.phase == .connect)
            pool.close()
            await first.value
            #expect(crowd.errors.map(\.cause) == [.cancelled])
            #expect(crowd.errors.map(\.phase) == [.receive])
        }
    }

    @Test("a service that says nothing is given up when the time is over")
    func silent() async throws {
        let server = try await ScriptedServer.start { _, _ in Answer("", then: .silence) }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            let error = await Self.failure(of: pool, Self.post(patience: .milliseconds(100)))
            #expect(error?.cause == .timedOut)
        }
    }

    @Test("a connection that the service ended while it rested is not used")
    func endedAtRest() async throws {
        let server = try await ScriptedServer.start { _, index in
            Answer(
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", then: index == 0 ? .cut : .another
            )
        }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            _ = try await pool.post(Self.post())
            while await server.openCount > 0 { await Task.yield() }
            let waiter = Waiter(loop: resident.loop)
            _ = await waiter.wait(until: resident.loop.now.advanced(by: .milliseconds(20)))
            _ = try await pool.post(Self.post())
        }
        #expect(await server.connectionCount == 2)
    }

    @Test(
        "an exchange whose answer is lost is not repeated",
        arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"])
    func lost(text: String) async throws {
        let server = try await ScriptedServer.start { _, index in
            index == 0 ? Self.answer("{}") : Answer(text, then: .cut)
        }
        let url = "http://127.0.0.1:\(server.port)"
        let error = try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            _ = try await pool.post(Self.post())
            return await Self.failure(of: pool)
        }
        #expect(error?.cause == .disconnected)
        #expect(await server.requests.count == 2)
    }

    @Test(
        "an answer that does not leave the connection clean is its last",
        arguments: [
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n",
        ])
    func unclean(text: String) async throws {
        let server = try await ScriptedServer.start { _, _ in Answer(text, then: .another) }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            for _ in 0..<2 { _ = try await pool.post(Self.post()) }
        }
        #expect(await server.connectionCount == 2)
    }

    @Test("a content beyond the bound is an error, declared or not")
    func bodyBound() async throws {
        let long = String(repeating: "x", count: 70_000)
        let server = try await ScriptedServer.start { _, index in
            index == 0
                ? Self.answer(long) : Answer("HTTP/1.1 200 OK\r\n\r\n" + long, then: .close)
        }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            for _ in 0..<2 {
                let error = await Self.failure(of: pool)
                #expect(error?.phase == .body)
                #expect(error?.cause == .answer)
            }
        }
    }

    @Test("a target or field with a line break is never sent")
    func injection() async throws {
        let server = try await ScriptedServer.start { _, _ in Self.answer("{}") }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            var request = Self.post()
            request.target = "/a HTTP/1.1\r\nX: y"
            #expect(await Self.failure(of: pool, request)?.phase == .send)
            request.target = "/a"
            request.fields = [("Authorization", "Bearer a\r\nX: y")]
            #expect(await Self.failure(of: pool, request)?.phase == .send)
        }
        #expect(await server.requests.isEmpty)
    }

    @Test("closing ends the exchange under way")
    func close() async throws {
        let server = try await ScriptedServer.start { _, _ in Answer("", then: .silence) }
        let url = "http://127.0.0.1:\(server.port)"
        try await TestLoop().run { resident in
            let pool = try Self.pool(resident.loop, url)
            let crowd = Crowd(pool: pool)
            let first = crowd.start(on: resident.loop, Self.post())
            await server.received(atLeast: 1)
            pool.close()
            await first.value
            #expect(crowd.errors.map(\.cause) == [.cancelled])
        }
    }
}

/// Tasks that use one pool at once.
///
/// Safe to be Sendable: everything happens on the pool's loop.
private final class Crowd: @unchecked Sendable {
    private let pool: HTTPPool
    private(set) var statuses: [UInt16] = []
    private(set) var errors: [HTTPClientError] = []

    init(pool: HTTPPool) {
        self.pool = pool
    }

    func start(on loop: EventLoop, _ request: HTTPPostRequest) -> Task<Void, Never> {
        Task(executorPreference: loop) {
            do throws(HTTPClientError) {
                let response = try await self.pool.post(request)
                self.statuses.append(response.status)
            } catch {
                self.errors.append(error)
            }
        }
    }

    func run(_ count: Int, on loop: EventLoop, _ request: HTTPPostRequest) async -> [UInt16] {
        let tasks = (0..<count).map { _ in start(on: loop, request) }
        for task in tasks { await task.value }
        return statuses
    }
}
