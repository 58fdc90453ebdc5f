import Attestation
import Reactor
import Synchronization
import TestKit

@testable import Replay

/// Google on loopback: the place where access tokens come from, and the method.
final class FakeGoogle: Sendable {
    typealias Answer = ScriptedServer.Answer

    static let accessToken = "ya29.secret-access-token-of-the-first-hour-0123456789abcdef"
    static let appToken =
        "eyJhbGciOiJSUzI1NiJ9.eyJqdGkiOiJzZWNyZXQtYXBwLXRva2VuLTEyMzQ1Njc4OTAifQ.c2ln"
    static let email = "portcullis@demo.iam.gserviceaccount.com"
    static let key = TestIssuer.standard.mint.key

    let server: ScriptedServer
    let folder: TemporaryFolder
    let credentials: String
    let events = Events()

    /// - Parameters:
    ///   - tokens: Answers of the token endpoint, by how many it gave before.
    ///   - method: Answers of `verifyAppCheckToken`, by how many it gave before.
    convenience init(
        tokens: @escaping @Sendable (Int) -> Answer? = { _ in FakeGoogle.grant() },
        method: @escaping @Sendable (Int) -> Answer? = { _ in FakeGoogle.json(200, "{}") }
    ) async throws {
        let methodCount = Counter()
        try await self.init(tokens: tokens, toEach: { _ in method(methodCount.next()) })
    }

    /// - Parameter answer: The answer of `verifyAppCheckToken` to a request.
    private init(
        tokens: @escaping @Sendable (Int) -> Answer?,
        toEach answer: @escaping @Sendable (String) -> Answer?
    ) async throws {
        let tokenCount = Counter()
        server = try await ScriptedServer.start { request, _ in
            request.hasPrefix("POST /token ")
                ? tokens(tokenCount.next())
                : answer(request)
        }
        folder = try TemporaryFolder()
        credentials = folder.path(of: "key.json")
        _ = try folder.write(
            Self.keyFile(tokenURI: "http://127.0.0.1:\(server.port)/token"), to: "key.json")
    }

    /// One that spends each token once, as Google does.
    static func spending() async throws -> FakeGoogle {
        let spent = Mutex<Set<Substring>>([])
        return try await FakeGoogle(tokens: { _ in grant() }) { request in
            guard let end = request.firstRange(of: "\r\n\r\n") else { return json(400, "{}") }
            let isNew = spent.withLock { $0.insert(request[end.upperBound...]).inserted }
            return json(200, isNew ? "{}" : "{\"alreadyConsumed\":true}")
        }
    }

    static func keyFile(
        tokenURI: String = "https://oauth2.googleapis.com/token", replacing: [String: String?] = [:]
    ) throws -> String {
        TestIssuer.object(
            [
                ("type", "\"service_account\""), ("project_id", "\"demo\""),
                ("private_key_id", "\"0123abcd\""),
                (
                    "private_key",
                    try key.pem().split(separator: "\n").joined(separator: "\\n").quoted
                ),
                ("client_email", email.quoted), ("token_uri", tokenURI.quoted),
            ], replacing: replacing)
    }

    static func json(_ status: Int, _ body: String, after delay: Duration = .zero) -> Answer {
        Answer(
            "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)", then: .another, after: delay)
    }

    static func grant(
        _ token: String = accessToken, seconds: Int = 3599, after delay: Duration = .zero
    ) -> Answer {
        json(
            200,
            "{\"access_token\":\"\(token)\",\"expires_in\":\(seconds),\"token_type\":\"Bearer\"}",
            after: delay)
    }

    func open(
        _ intervals: AccessTokenKeeper.Intervals = .init(), patience: Duration = .zero
    ) throws(StoreOpenError) -> GoogleStore {
        var settings = GoogleSettings(credentials: credentials)
        settings.url = "http://127.0.0.1:\(server.port)/v1beta"
        settings.version = "1.2.3"
        settings.patience = patience
        return try GoogleStore.open(
            settings: settings, intervals: intervals, events: events.take)
    }

    static func claim(project: String = "123456") -> Claim {
        Claim(
            key: ClaimKey(high: 1, low: 2), issuedAt: 0, retainedUntil: 1000,
            at: ClaimInstant(wallMicroseconds: 0, monotonic: .now), token: Array(appToken.utf8),
            project: project)
    }

    /// Claims once, on a loop of its own.
    ///
    /// - Parameter warmsUp: The access token is there, and the connection, before it claims.
    func claimOnce(
        patience: Duration = .seconds(60), times: Int = 1, warmsUp: Bool = false
    ) async throws -> [ClaimOutcome] {
        let store = try open()
        return try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            defer { session.close() }
            let waiter = Waiter(loop: resident.loop)
            if warmsUp {
                await session.warmUp(waiter: waiter, until: .now.advanced(by: .seconds(60)))
            }
            var outcomes: [ClaimOutcome] = []
            for _ in 0..<times {
                outcomes.append(
                    await session.claim(
                        Self.claim(), waiter: waiter, until: .now.advanced(by: patience)))
            }
            return outcomes
        }
    }

    /// Requests of the token endpoint.
    var tokenRequests: [String] {
        get async { await server.requests.filter { $0.hasPrefix("POST /token ") } }
    }

    /// Requests of the method.
    var claims: [String] {
        get async { await server.requests.filter { !$0.hasPrefix("POST /token ") } }
    }
}

/// Counts from 0.
final class Counter: Sendable {
    private let count = Atomic(0)

    func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
}

/// The events of a store.
final class Events: Sendable {
    private let list = Mutex<[StoreEvent]>([])

    func take(_ event: StoreEvent) {
        list.withLock { $0.append(event) }
    }

    /// Each as one text.
    var texts: [String] {
        list.withLock { list in
            list.map { event in
                event.message + event.fields.map { " \($0.name)=\($0.value)" }.joined()
            }
        }
    }
}

extension String {
    fileprivate var quoted: String { "\"\(self)\"" }
}
