import Attestation
import Reactor
import TestKit
import Testing

@testable import Replay

@Suite("Google store")
struct GoogleStoreTests {
    private static func error(
        _ code: Int, _ status: String, _ message: String, details: String = ""
    ) -> String {
        let details = details.isEmpty ? "" : ",\"details\":[\(details)]"
        return
            "{\"error\":{\"code\":\(code),\"message\":\"\(message)\",\"status\":\"\(status)\"\(details)}}"
    }

    private static func info(_ reason: String, _ domain: String = "googleapis.com") -> String {
        "{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"\(reason)\","
            + "\"domain\":\"\(domain)\",\"metadata\":{}}"
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var status: Int
        var body: String
        var outcome: ClaimOutcome
        /// Words of the event; empty: no event.
        var words = ""

        var testDescription: String { "\(status) \(body.prefix(80))" }
    }

    static let rows: [Row] = [
        Row(status: 200, body: "{}", outcome: .claimed),
        Row(status: 200, body: "{\"alreadyConsumed\":false}", outcome: .claimed),
        Row(status: 200, body: " {\"alreadyConsumed\" : true}\n", outcome: .reused),
        Row(status: 200, body: "", outcome: .unavailable(.protocolError), words: "no sense"),
        Row(status: 200, body: "<html>", outcome: .unavailable(.protocolError), words: "no sense"),
        Row(status: 200, body: "[]", outcome: .unavailable(.protocolError), words: "no sense"),
        Row(
            status: 200, body: "{\"alreadyConsumed\":\"true\"}",
            outcome: .unavailable(.protocolError), words: "no sense"),
        Row(
            status: 200, body: "{\"alreadyConsumed\":false,\"alreadyConsumed\":true}",
            outcome: .unavailable(.protocolError), words: "no sense"),
        Row(
            status: 200, body: error(500, "INTERNAL", "x"),
            outcome: .unavailable(.protocolError), words: "no sense"),
        Row(
            status: 403, body: error(403, "PERMISSION_DENIED", "App attestation failed."),
            outcome: .refused),
        Row(
            status: 403, body: error(403, "PERMISSION_DENIED", "App Check token is invalid."),
            outcome: .refused),
        Row(
            status: 403,
            body: error(
                403, "PERMISSION_DENIED", "No.",
                details: info("INVALID", "firebaseappcheck.googleapis.com")), outcome: .refused),
        Row(
            status: 403,
            body: error(
                403, "PERMISSION_DENIED",
                "Permission 'firebaseappcheck.appCheckTokens.verify' denied on resource '//x'.",
                details: info("IAM_PERMISSION_DENIED", "iam.googleapis.com")),
            outcome: .unavailable(.denied), words: "roles/firebaseappcheck.tokenVerifier"),
        Row(
            status: 403,
            body: error(403, "PERMISSION_DENIED", "The caller does not have permission"),
            outcome: .unavailable(.denied), words: "roles/firebaseappcheck.tokenVerifier"),
        Row(
            status: 403,
            body: error(
                403, "PERMISSION_DENIED", "App Check has not been used in project 1 before.",
                details: info("SERVICE_DISABLED")), outcome: .unavailable(.denied),
            words: "firebaseappcheck.googleapis.com"),
        Row(
            status: 403,
            body: error(
                403, "PERMISSION_DENIED", "App Check token", details: info("CONSUMER_INVALID")),
            outcome: .unavailable(.denied), words: "CONSUMER_INVALID"),
        Row(
            status: 403,
            body: error(
                403, "PERMISSION_DENIED", "Request had insufficient token scopes.",
                details: info("ACCESS_TOKEN_SCOPE_INSUFFICIENT")), outcome: .unavailable(.denied),
            words: "SCOPE_INSUFFICIENT"),
        Row(
            status: 403, body: "<html>Forbidden token</html>", outcome: .unavailable(.denied),
            words: "403"),
        Row(
            status: 403, body: error(403, "PERMISSION_DENIED", "Forbidden"),
            outcome: .unavailable(.denied), words: "Forbidden"),
        Row(
            status: 400,
            body: error(400, "FAILED_PRECONDITION", "Attestation provider is not supported."),
            outcome: .unsupported),
        Row(
            status: 400,
            body: error(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
            outcome: .unsupported),
        Row(
            status: 400,
            body: error(
                400, "INVALID_ARGUMENT", "API key not valid.", details: info("API_KEY_INVALID")),
            outcome: .unavailable(.protocolError), words: "API_KEY_INVALID"),
        Row(
            status: 400,
            body: error(
                400, "INVALID_ARGUMENT", "Bad.",
                details: "{\"fieldViolations\":[{\"field\":\"project\",\"description\":\"x\"}]}"),
            outcome: .unavailable(.protocolError), words: "400"),
        Row(
            status: 400, body: "Bad Request", outcome: .unavailable(.protocolError), words: "400"),
        Row(
            status: 404, body: error(404, "NOT_FOUND", "Method not found."),
            outcome: .unavailable(.protocolError), words: "NOT_FOUND"),
        Row(
            status: 429, body: error(429, "RESOURCE_EXHAUSTED", "Quota exceeded"),
            outcome: .unavailable(.overloaded), words: "quota"),
        Row(
            status: 500, body: error(500, "INTERNAL", "App Check token is invalid."),
            outcome: .unavailable(.protocolError), words: "500"),
        Row(status: 503, body: "", outcome: .unavailable(.protocolError), words: "503"),
        Row(
            status: 504, body: error(504, "DEADLINE_EXCEEDED", "Late"),
            outcome: .unavailable(.timeout), words: "504"),
        Row(status: 302, body: "", outcome: .unavailable(.protocolError), words: "302"),
        Row(status: 204, body: "", outcome: .unavailable(.protocolError), words: "204"),
    ]

    @Test("R16: holds against a token only what is about the token", arguments: rows)
    func mapping(row: Row) async throws {
        let google = try await FakeGoogle(method: { _ in FakeGoogle.json(row.status, row.body) })
        #expect(try await google.claimOnce() == [row.outcome])
        let events = google.events.texts
        if row.words.isEmpty {
            #expect(events == [])
        } else {
            #expect(events.count == 1)
            #expect(events.first?.contains(row.words) == true, "\(events)")
        }
        #expect(await google.claims.count == 1)
    }

    @Test("asks as the documentation has it, on one connection")
    func request() async throws {
        let google = try await FakeGoogle()
        #expect(try await google.claimOnce(times: 3) == [.claimed, .claimed, .claimed])
        let port = google.server.port
        let body = "{\"appCheckToken\":\"\(FakeGoogle.appToken)\"}"
        #expect(
            await google.claims.first
                == "POST /v1beta/projects/123456:verifyAppCheckToken HTTP/1.1\r\n"
                + "Host: 127.0.0.1:\(port)\r\nUser-Agent: portcullis/1.2.3\r\n"
                + "Accept: application/json\r\nAccept-Encoding: identity\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
                + "Authorization: Bearer \(FakeGoogle.accessToken)\r\n\r\n\(body)")
        #expect(await google.tokenRequests.count == 1)
        // One for the access token, one for all claims.
        #expect(await google.server.connectionCount == 2)
    }

    @Test("R16: a claim whose answer is lost is never made again")
    func lostAnswer() async throws {
        let google = try await FakeGoogle(method: { _ in .init("", then: .cut) })
        #expect(try await google.claimOnce() == [.unavailable(.disconnected)])
        #expect(await google.claims.count == 1)
    }

    @Test("R16: a claim that is not answered in time is given up, not made again")
    func silence() async throws {
        let google = try await FakeGoogle(method: { _ in .init("", then: .silence) })
        #expect(
            try await google.claimOnce(patience: .seconds(2), warmsUp: true)
                == [.unavailable(.timeout)])
        #expect(await google.claims.count == 1)
    }

    @Test(
        "R16: a broken or endless answer is Google's fault, not the token's",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n{}",
            "SSH-2.0-OpenSSH_9.2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}",
            "HTTP/1.1 403 No\r\nContent-Length: 70000\r\n\r\n"
                + String(repeating: " ", count: 70_000),
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        ])
    func brokenAnswer(text: String) async throws {
        let google = try await FakeGoogle(method: { _ in .init(text, then: .silence) })
        #expect(try await google.claimOnce() == [.unavailable(.protocolError)])
    }

    @Test("nothing is released and nothing looked up: Google has no way to")
    func oneWay() async throws {
        let google = try await FakeGoogle()
        let store = try google.open()
        #expect(store.needsToken && store.isRemote)
        try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            let waiter = Waiter(loop: resident.loop)
            let claim = FakeGoogle.claim()
            #expect(await session.release(claim, waiter: waiter, until: .never) == false)
            #expect(await session.inspect(claim, waiter: waiter, until: .never) == nil)
            session.close()
        }
        #expect(await google.claims.isEmpty)
    }

    @Test("a failing service is left alone after a while")
    func breaker() async throws {
        let google = try await FakeGoogle(method: { _ in FakeGoogle.json(500, "") })
        let outcomes = try await google.claimOnce(times: 8)
        #expect(outcomes.prefix(5).allSatisfy { $0 == .unavailable(.protocolError) })
        #expect(outcomes.suffix(3).allSatisfy { $0 == .unavailable(.breakerOpen) })
        #expect(await google.claims.count == 5)
        #expect(google.events.texts.count == 1)
    }

    @Test(
        "M1: claims in a hurry that time out do not open the breaker for those with patience",
        arguments: [(Duration.seconds(60), false), (.zero, true)])
    func hurry(enforced: Duration, opens: Bool) async throws {
        let google = try await FakeGoogle(method: { count in
            count == 0 ? FakeGoogle.json(200, "{}") : .init("", then: .silence)
        })
        let store = try google.open(patience: enforced)
        let outcomes = try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            defer { session.close() }
            let waiter = Waiter(loop: resident.loop)
            // The first one waits for the access token.
            let patience =
                [Duration.seconds(20)] + [Duration](repeating: .milliseconds(50), count: 6)
            var outcomes: [ClaimOutcome] = []
            for patience in patience {
                outcomes.append(
                    await session.claim(
                        FakeGoogle.claim(), waiter: waiter, until: .now.advanced(by: patience)))
            }
            return outcomes
        }
        #expect(outcomes.first == .claimed)
        #expect(!outcomes.prefix(6).contains(.unavailable(.breakerOpen)))
        #expect((outcomes.last == .unavailable(.breakerOpen)) == opens)
    }

    @Test("one client's strange token does not close the service for all")
    func strangeToken() async throws {
        let google = try await FakeGoogle(method: { _ in FakeGoogle.json(400, "") })
        let outcomes = try await google.claimOnce(times: 8)
        #expect(outcomes == [ClaimOutcome](repeating: .unavailable(.protocolError), count: 8))
    }

    @Test(
        "a project that could break out of the path is not sent", arguments: ["", "1/2", "a\r\n"])
    func project(name: String) async throws {
        let google = try await FakeGoogle()
        let store = try google.open()
        let outcome = try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            return await session.claim(
                FakeGoogle.claim(project: name), waiter: Waiter(loop: resident.loop),
                until: .now.advanced(by: .seconds(5)))
        }
        #expect(outcome == .unavailable(.system))
        #expect(await google.claims.isEmpty)
    }

    @Test("no event gives a key, an access token or an App Check token away")
    func secrets() async throws {
        let key = try FakeGoogle.key.pem().split(separator: "\n").dropFirst().dropLast()
        for status in [400, 403, 500] {
            // A service that repeats everything it was sent.
            let echo = "\(FakeGoogle.appToken) \(FakeGoogle.accessToken)"
            let answer = FakeGoogle.json(status, Self.error(status, "X", echo))
            let refusal = FakeGoogle.json(
                status, "{\"error\":\"x\",\"error_description\":\"\(echo)\"}")
            for google in [
                try await FakeGoogle(method: { _ in answer }),
                try await FakeGoogle(tokens: { _ in refusal }),
            ] {
                _ = try await google.claimOnce()
                let events = google.events.texts.joined()
                #expect(!events.isEmpty)
                #expect(!events.contains(FakeGoogle.appToken))
                #expect(!events.contains(FakeGoogle.accessToken))
                for line in key { #expect(!events.contains(line)) }
            }
        }
    }
}
