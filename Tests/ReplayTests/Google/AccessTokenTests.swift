import Reactor
import TestKit
import Testing

@testable import Attestation
@testable import Replay

@Suite("Google access tokens")
struct AccessTokenTests {
    /// So many claims at once on one loop.
    ///
    /// Safe to be Sendable: everything happens on the session's loop.
    private final class Crowd: @unchecked Sendable {
        let session: any ClaimSession
        let loop: EventLoop
        var outcomes: [ClaimOutcome] = []

        init(_ session: any ClaimSession, _ loop: EventLoop) {
            self.session = session
            self.loop = loop
        }

        func run(_ count: Int) async -> [ClaimOutcome] {
            let tasks = (0..<count).map { _ in
                Task(executorPreference: self.loop) {
                    let waiter = Waiter(loop: self.loop)
                    self.outcomes.append(
                        await self.session.claim(
                            FakeGoogle.claim(), waiter: waiter,
                            until: .now.advanced(by: .seconds(5))))
                    waiter.invalidate()
                }
            }
            for task in tasks { await task.value }
            return outcomes
        }
    }

    private func crowd(_ google: FakeGoogle, _ count: Int) async throws -> [ClaimOutcome] {
        let store = try google.open()
        return try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            return await Crowd(session, resident.loop).run(count)
        }
    }

    @Test("50 claims at once bring about one fetch")
    func singleFlight() async throws {
        let google = try await FakeGoogle(tokens: { _ in
            FakeGoogle.grant(after: .milliseconds(50))
        })
        #expect(
            try await crowd(google, 50) == [ClaimOutcome](repeating: .claimed, count: 50))
        #expect(await google.tokenRequests.count == 1)
    }

    @Test("an access token that Google refuses is thrown away once, for all claims together")
    func refusedToken() async throws {
        let google = try await FakeGoogle(
            tokens: { index in FakeGoogle.grant("token-\(index)") },
            method: { _ in FakeGoogle.json(401, "{}") })
        #expect(
            try await crowd(google, 3)
                == [ClaimOutcome](repeating: .unavailable(.denied), count: 3))
        #expect(await google.tokenRequests.count == 2)
        let claims = await google.claims
        // Whoever was slow to begin has never seen the first token.
        #expect((4...6).contains(claims.count))
        #expect(claims.filter { $0.contains("Bearer token-1\r\n") }.count == 3)
    }

    @Test("a claim that was made with a token just revoked is made again with a fresh one")
    func freshToken() async throws {
        let google = try await FakeGoogle(
            tokens: { index in FakeGoogle.grant("token-\(index)") },
            method: { index in FakeGoogle.json(index == 0 ? 401 : 200, "{}") })
        #expect(try await google.claimOnce() == [.claimed])
        #expect(await google.claims.count == 2)
    }

    @Test("a token is renewed before its end, and claims never wait for it")
    func renewal() async throws {
        let google = try await FakeGoogle(tokens: { index in
            FakeGoogle.grant("token-\(index)", seconds: index == 0 ? 1 : 3600)
        })
        let store = try google.open()
        try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            await google.server.received(atLeast: 2)
            let outcome = await session.claim(
                FakeGoogle.claim(), waiter: Waiter(loop: resident.loop),
                until: .now.advanced(by: .seconds(5)))
            #expect(outcome == .claimed)
        }
        #expect(await google.claims.count == 1)
        #expect(await google.tokenRequests.count == 2)
    }

    @Test("R16: without an access token nothing is claimed, and no token is to blame")
    func refusedAccount() async throws {
        let google = try await FakeGoogle(tokens: { _ in
            FakeGoogle.json(
                400,
                "{\"error\":\"invalid_grant\",\"error_description\":\"Invalid JWT Signature.\"}")
        })
        #expect(
            try await google.claimOnce(times: 2) == [.unavailable(.denied), .unavailable(.denied)])
        #expect(await google.claims.isEmpty)
        let events = google.events.texts
        #expect(events.count == 1)
        #expect(events.first?.contains("invalid_grant: Invalid JWT Signature.") == true)
        #expect(events.first?.contains(FakeGoogle.email) == true)
    }

    @Test("after a failure it is tried again, with pauses, and then said that it works")
    func backOff() async throws {
        let google = try await FakeGoogle(tokens: { index in
            index < 3 ? FakeGoogle.json(503, "") : FakeGoogle.grant()
        })
        var intervals = AccessTokenKeeper.Intervals()
        intervals.firstPause = .milliseconds(20)
        let store = try google.open(intervals)
        let outcomes = try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            let waiter = Waiter(loop: resident.loop)
            let deadline = MonotonicInstant.now.advanced(by: .seconds(60))
            var outcomes: [ClaimOutcome] = []
            while outcomes.last != .claimed, MonotonicInstant.now < deadline {
                outcomes.append(
                    await session.claim(FakeGoogle.claim(), waiter: waiter, until: deadline))
                _ = await waiter.wait(until: resident.loop.now.advanced(by: .milliseconds(10)))
            }
            return outcomes
        }
        #expect(outcomes.first == .unavailable(.protocolError))
        #expect(outcomes.last == .claimed)
        #expect(await google.tokenRequests.count == 4)
        #expect(google.events.texts.count == 2)
        #expect(google.events.texts.last?.contains("available again") == true)
    }

    @Test("the assertion is what Google asks for")
    func assertion() async throws {
        let google = try await FakeGoogle()
        _ = try await google.claimOnce()
        let request = try #require(await google.tokenRequests.first)
        let prefix =
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        let body = try #require(request.split(separator: "\r\n").last)
        #expect(request.contains("Content-Type: application/x-www-form-urlencoded\r\n"))
        #expect(body.hasPrefix(prefix))
        let assertion = String(body.dropFirst(prefix.count))
        let texts = assertion.split(separator: ".").prefix(2).map { part in
            String(decoding: Base64.url.decode(Array(part.utf8).span) ?? [], as: UTF8.self)
        }
        let header = try #require(texts.first)
        #expect(header == "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"0123abcd\"}")
        let payload = try #require(texts.last)
        let start =
            "{\"iss\":\"\(FakeGoogle.email)\","
            + "\"scope\":\"https://www.googleapis.com/auth/firebase\","
            + "\"aud\":\"http://127.0.0.1:\(google.server.port)/token\",\"iat\":"
        #expect(payload.hasPrefix(start))
        let times = payload.dropFirst(start.count).split { !$0.isNumber }.compactMap { Int64($0) }
        #expect(times.count == 2)
        #expect(times.last.flatMap { last in times.first.map { last - $0 } } == 3600)
        // This kind of signature has no randomness.
        #expect(try FakeGoogle.key.compactJWS(header: header, payload: payload) == assertion)
    }
}
