import Attestation
import Configuration
import HTTP
import Policy
import Reactor
import Replay
import Synchronization
import TestKit
import Testing

@testable import Proxy

/// A store that says what it is told to, and keeps what it was asked.
private final class ScriptedStore: ClaimStore, Sendable {
    struct Asked: Sendable {
        var claims: [Claim] = []
        var releases: [Claim] = []
        var patience: [Int64] = []
    }

    let asked = Mutex(Asked())
    let outcome: ClaimOutcome
    let releases: Bool
    let needsToken: Bool

    init(_ outcome: ClaimOutcome, releases: Bool = true, needsToken: Bool = false) {
        self.outcome = outcome
        self.releases = releases
        self.needsToken = needsToken
    }

    var name: StaticString { "scripted" }
    var isRemote: Bool { true }
    var reliableSince: Int64 { 0 }
    var statistics: StoreStatistics { StoreStatistics() }

    func makeSession(on loop: EventLoop) -> any ClaimSession { Session(store: self) }
    func purge(at now: ClaimInstant) -> Bool { false }

    private final class Session: ClaimSession {
        let store: ScriptedStore

        init(store: ScriptedStore) {
            self.store = store
        }

        func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
            -> ClaimOutcome
        {
            store.asked.withLock {
                $0.claims.append(claim)
                $0.patience.append(deadline.microseconds(since: .now) / 1000)
            }
            return store.outcome
        }

        func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool
        {
            store.asked.withLock { $0.releases.append(claim) }
            return store.releases
        }

        func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
            -> ClaimOutcome?
        { nil }

        func close() {}
    }
}

/// One claim of one exchange.
private struct ClaimRig {
    static let token = VerifiedToken(
        project: 0, appID: "app", app: nil, issuedAt: 1000, expiresAt: 1300, tokenID: "the id",
        provider: nil, keyID: "k", acceptedUntil: 1360)

    var appCheck = Route.Mode.enforce
    var replay = Route.Mode.enforce
    var whenUnavailable = WhenUnavailable.reject
    var token = Self.token

    /// Claims the token of a request at `store`, and looks at what the exchange knows then.
    func claim<Result: Sendable>(
        at store: ScriptedStore?,
        _ look: @escaping @Sendable (Exchange, ClientConnection, Verdict, Decision) async -> Result
    ) async throws -> Result {
        let rig = self
        return try await TestLoop().run { loop in
            try await rig.claim(at: store, on: loop.loop, look)
        }
    }

    private func claim<Result: Sendable>(
        at store: ScriptedStore?, on loop: EventLoop,
        _ look: @Sendable (Exchange, ClientConnection, Verdict, Decision) async -> Result
    ) async throws -> Result {
        var route = Route(name: "all", path: "/*", upstream: 0)
        route.mode = appCheck
        route.replay = replay
        route.whenUnavailable = whenUnavailable
        var configuration = Configuration(routes: try RouteTable([route]))
        configuration.projects = [
            ProjectSource(project: TestIssuer.project, keys: .file("keys.json"))
        ]
        configuration.replay.timeout = .seconds(100)
        configuration.replay.monitorPatience = .seconds(10)
        let state = LoopState(serving: configuration, loop: loop)
        defer { state.abortAll() }
        if let store { state.open(store, health: StoreHealth(store, log: LogCollector())) }
        let pair = try await SocketPair.connect(loop: loop, waiter: Waiter(loop: loop))
        let peer = try #require(SocketAddress(literal: "127.0.0.1", port: 4711))
        let listener = Listener(name: "l", listen: .tcp(host: "127.0.0.1", port: 1))
        let client = ClientConnection(
            pair.far, peer: peer, listener: ServedListener(listener), state: state)

        let exchange = Exchange(state)
        exchange.input.append("GET / HTTP/1.1\r\nHost: a\r\nX-Firebase-AppCheck: h.p.s\r\n\r\n")
        var parser = RequestParser(limits: HeadLimits())
        let input = exchange.input
        #expect(try parser.parse(input.bytes, into: &exchange.head))
        input.pin(exchange.head.length)
        exchange.record.token = token
        let served = exchange.serving.routes[0]
        let verdict = await exchange.claim(client, served)
        let decision = served.claimEnforcement.decide(verdict) { true }
        return await look(exchange, client, verdict, decision)
    }
}

extension Decision {
    /// The code of a rejection, or the action of a permit.
    fileprivate var word: String {
        switch self {
        case .reject(let code): code.rawValue
        case .forward(let permit): permit.action.rawValue
        }
    }
}

@Suite("The claim of a request")
struct ClaimTests {
    private static let outcomes: [(ClaimOutcome, Verdict, enforced: String)] = [
        (.claimed, .verified, "allow"),
        (.reused, .reused, "token_already_used"),
        (.predates, .unavailable(.replayStore), "verification_unavailable"),
        (.full, .unavailable(.replayStore), "verification_unavailable"),
        (.expired, .invalid(.expired), "token_expired"),
        (.refused, .invalid(.signature), "token_invalid"),
        (.unsupported, .notLimitedUse, "limited_use_required"),
    ]

    @Test("R11: what the store says becomes a verdict", arguments: outcomes)
    func verdicts(_ outcome: ClaimOutcome, _ expected: Verdict, _ enforced: String) async throws {
        let store = ScriptedStore(outcome)
        let seen = try await ClaimRig().claim(at: store) { exchange, _, verdict, decision in
            (verdict, decision.word, exchange.record.claim)
        }
        #expect(seen.0 == expected)
        #expect(seen.1 == enforced)
        #expect(seen.2 == ClaimResult(outcome))
        #expect(store.asked.withLock { $0.claims.count } == 1)
    }

    @Test(
        "R11: every failure of the store is 503, or passes where the route says so",
        arguments: StoreFailure.allCases)
    func failures(_ failure: StoreFailure) async throws {
        for (choice, expected) in [
            (WhenUnavailable.reject, "verification_unavailable"), (.allow, "allow"),
        ] {
            let store = ScriptedStore(.unavailable(failure))
            let rig = ClaimRig(whenUnavailable: choice)
            let seen = try await rig.claim(at: store) { exchange, _, verdict, decision in
                (verdict, decision.word, exchange.record.claim, exchange.record.claimFailure)
            }
            #expect(seen.0 == .unavailable(.replayStore))
            #expect(seen.1 == expected)
            #expect(seen.2 == .unavailable && seen.3 == failure)
        }
    }

    @Test(
        "R11: a refusal because of the store says spent where the claim may have been made",
        arguments: StoreFailure.allCases)
    func told(_ failure: StoreFailure) async throws {
        let told = try await ClaimRig().claim(at: ScriptedStore(.unavailable(failure))) {
            exchange, _, _, _ in
            exchange.prepared(for: .verificationUnavailable).problem.body
        }
        let mayBeMade: Set<StoreFailure> = [.timeout, .disconnected, .protocolError]
        let expected = mayBeMade.contains(failure) ? "spent" : "unspent"
        #expect(String(decoding: told, as: UTF8.self).contains("\"token\":\"\(expected)\""))
    }

    @Test("R11: a route with replay protection and no store lets nothing through")
    func noStore() async throws {
        let seen = try await ClaimRig().claim(at: nil) { $3.word }
        #expect(seen == "verification_unavailable")
    }

    @Test(
        "R15: with replay = \"monitor\" nothing that the store says is a reason to reject",
        arguments: outcomes, [Route.Mode.monitor, .enforce])
    func monitored(
        _ said: (ClaimOutcome, Verdict, enforced: String), _ appCheck: Route.Mode
    ) async throws {
        let rig = ClaimRig(appCheck: appCheck, replay: .monitor)
        let word = try await rig.claim(at: ScriptedStore(said.0)) { $3.word }
        #expect(word == (said.0 == .claimed ? "allow" : "would_reject"))
    }

    @Test("M1: a monitored request has its own, shorter patience")
    func patience() async throws {
        for (replay, expected) in [(Route.Mode.enforce, 100_000), (.monitor, 10_000)] {
            let store = ScriptedStore(.claimed)
            _ = try await ClaimRig(replay: replay).claim(at: store) { $3.word }
            let patience = store.asked.withLock { $0.patience[0] }
            #expect(patience <= expected && patience > Int64(expected) / 2)
        }
    }

    @Test(
        "R4: a claim outlives the token by any leeway there may be, and carries what the store needs"
    )
    func claim() async throws {
        let bare = ScriptedStore(.claimed)
        _ = try await ClaimRig().claim(at: bare) { $3.word }
        let claim = bare.asked.withLock { $0.claims[0] }
        // With the project's 60 seconds, a reload that sets 300 would open it again.
        #expect((claim.issuedAt, claim.retainedUntil) == (1000, 1600))
        #expect(claim.token.isEmpty && claim.project.isEmpty)
        #expect(
            claim.key == ClaimKey(issuer: TestIssuer.project.issuer, tokenID: "the id"))

        let needy = ScriptedStore(.claimed, needsToken: true)
        _ = try await ClaimRig().claim(at: needy) { $3.word }
        let full = needy.asked.withLock { $0.claims[0] }
        #expect(full.token == Array("h.p.s".utf8))
        #expect(full.project == TestIssuer.project.number)
    }

    @Test("R5: a token without an id is known by its header and payload")
    func signedBytes() async throws {
        let store = ScriptedStore(.claimed)
        var rig = ClaimRig()
        rig.token = VerifiedToken(
            project: 0, appID: "app", app: nil, issuedAt: 1000, expiresAt: 1300, tokenID: nil,
            provider: nil, keyID: "k")
        _ = try await rig.claim(at: store) { $3.word }
        let expected = ClaimKey(
            issuer: TestIssuer.project.issuer, signedBytes: Array("h.p".utf8).span)
        #expect(store.asked.withLock { $0.claims[0].key } == expected)
    }

    @Test("R9: what was claimed is released at most once, and only what was claimed")
    func release() async throws {
        for (outcome, expected) in [
            (ClaimOutcome.claimed, 1), (.predates, 1), (.reused, 0), (.full, 0),
            (.unavailable(.timeout), 0),
        ] {
            let store = ScriptedStore(outcome)
            let isReleased = try await ClaimRig().claim(at: store) { exchange, client, _, _ in
                await exchange.release(client)
                await exchange.release(client)
                return exchange.record.isClaimReleased
            }
            #expect(isReleased == (expected == 1))
            #expect(store.asked.withLock { $0.releases.count } == expected)
        }
    }

    @Test("R9: a release that the store does not confirm leaves the token spent")
    func unconfirmed() async throws {
        let told = try await ClaimRig().claim(at: ScriptedStore(.claimed, releases: false)) {
            exchange, client, _, _ in
            await exchange.release(client)
            return exchange.answer(to: .upstreamUnreachable).body
        }
        #expect(String(decoding: told, as: UTF8.self).contains("\"token\":\"spent\""))
    }
}

@Suite("The health of the claim store")
struct StoreHealthTests {
    private func instant(_ seconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
    }

    @Test("is told once when it fails, and once when it has worked for a while")
    func lines() {
        let log = LogCollector()
        let health = StoreHealth(ScriptedStore(.claimed), log: log)
        health.note(.claimed, at: instant(0))
        #expect(log.lines.isEmpty)
        for second in 1...3 as ClosedRange<Int64> {
            health.note(.unavailable(.timeout), at: instant(second))
            // It fails every other time: that is no recovery.
            health.note(.reused, at: instant(second))
        }
        #expect(log.messages(.error).count == 1)
        #expect(log.lines[0].fields == ["store": "scripted", "failure": "timeout"])
        health.note(.claimed, at: instant(8))
        health.note(.claimed, at: instant(9))
        #expect(log.messages(.info).count == 1)
        health.note(.full, at: instant(10))
        #expect(log.messages(.error).count == 2)
        #expect(log.lines[2].fields["failure"] == "full")
    }
}
