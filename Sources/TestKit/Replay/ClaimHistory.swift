internal import FoundationEssentials
internal import Reactor
internal import Replay

/// A random history of claims, releases, purges, clock steps and crashes, played on a store and
/// compared with ``ClaimModel`` at each step. Everything random comes from the seed.
public struct ClaimHistory {
    private let subject: ClaimSubject
    private let callers: [ClaimCaller]
    private var random: SeededGenerator
    private var model: ClaimModel
    private var store: (any ClaimStore)?
    private var now: ClaimInstant
    /// Half of the histories with a clock have one that is never set: there the model knows best
    /// what must be forgotten.
    private let isClockSet: Bool
    /// By which caller a token was claimed: it alone may release it.
    private var owners: [Int: Int] = [:]
    private var log = ClaimLog()

    /// The seeds to check: `count` of them, or what the environment asks for.
    public static func seeds(_ count: Int) -> [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["PORTCULLIS_CLAIM_SEED"].flatMap(UInt64.init) { return [seed] }
        let asked = environment["PORTCULLIS_CLAIM_HISTORIES"].flatMap(Int.init)
        return (0..<max(asked ?? count, 1)).map(UInt64.init)
    }

    /// Plays the history of a seed.
    ///
    /// - Returns: how often each answer was given.
    /// - Throws: ``ClaimViolation``, or what `subject.open` throws.
    @discardableResult
    public static func check(
        _ subject: ClaimSubject, seed: UInt64, steps: Int = 300
    ) async throws -> [String: Int] {
        var history = try ClaimHistory(subject, seed: seed)
        do {
            try await history.open()
            for _ in 0..<steps { try await history.step() }
        } catch let objection as ClaimObjection {
            await history.close()
            throw ClaimViolation(seed: seed, objection: objection.text, log: history.log.lines)
        }
        await history.close()
        return history.log.tally
    }

    private init(_ subject: ClaimSubject, seed: UInt64) throws {
        self.subject = subject
        random = SeededGenerator(seed: seed)
        model = ClaimModel(subject)
        callers = [try ClaimCaller(), try ClaimCaller()]
        isClockSet = subject.followsClock && seed.isMultiple(of: 2)
        now = .real
        if subject.followsClock {
            now.wallMicroseconds = Int64.random(in: 0..<2_000_000_000_000_000, using: &random)
        }
    }

    private mutating func step() async throws {
        if !subject.followsClock { now = .real }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<40: try await claim()
        case 40..<50: try await claimAtOnce()
        case 50..<60: try await inspect()
        case 60..<70: try await release()
        case 70..<75: try purgeOnce()
        case 75..<82: try purge()
        case 82..<92: pass()
        case 92..<97: stepClock()
        default: try await crash()
        }
        try compareStatistics()
    }

    // MARK: Claims

    /// A token that a verifier lets through now: a new one, or one that was used before.
    private mutating func someToken() -> Int {
        let known = model.accepted(at: now)
        if !known.isEmpty, Int.random(in: 0..<5, using: &random) > 1 {
            return known.suffix(40).randomElement(using: &random) ?? known[0]
        }
        let age: Int64 = Bool.random(using: &random) ? 0 : .random(in: 0...200, using: &random)
        // Real time passes in a history without a clock, and nothing may expire meanwhile.
        let life: ClosedRange<Int64> = subject.followsClock ? 1...400 : 900...1200
        let key = ClaimKey(high: random.next(), low: random.next())
        return model.mint(
            Claim(
                key: key, issuedAt: now.wallSeconds - age,
                retainedUntil: now.wallSeconds + .random(in: life, using: &random), at: now,
                token: Array("\(key.high).\(key.low)".utf8), project: "1"))
    }

    private mutating func claim() async throws {
        let (index, caller) = (someToken(), Int.random(in: 0...1, using: &random))
        let outcome = await callers[caller].claim(model.claim(index, at: now))
        try take(outcome, for: index, by: caller)
    }

    /// Copies of one token, on both loops at the same time.
    private mutating func claimAtOnce() async throws {
        let index = someToken()
        let claim = model.claim(index, at: now)
        let callers = callers
        let outcomes = await withTaskGroup(of: (Int, ClaimOutcome).self) { group in
            for copy in 0..<6 {
                group.addTask { (copy % 2, await callers[copy % 2].claim(claim)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // They come in any order; the one that was claimed has to have been the first.
        func rank(_ outcome: ClaimOutcome) -> Int {
            switch outcome {
            case .unavailable: 0
            case .claimed, .predates: 1
            default: 2
            }
        }
        for (caller, outcome) in outcomes.sorted(by: { rank($0.1) < rank($1.1) }) {
            try take(outcome, for: index, by: caller)
        }
    }

    private mutating func take(_ outcome: ClaimOutcome, for index: Int, by caller: Int) throws {
        log.answer("claim", outcome, index, model.claim(index, at: now))
        if let objection = model.objection(to: outcome, for: index, at: now) {
            throw ClaimObjection(text: objection)
        }
        model.answered(outcome, for: index)
        if outcome == .claimed || outcome == .predates { owners[index] = caller }
    }

    private mutating func inspect() async throws {
        let index = someToken()
        let claim = model.claim(index, at: now)
        guard let outcome = await callers[index % 2].inspect(claim) else { return }
        log.answer("inspect", outcome, index, claim)
        if let objection = model.objection(to: outcome, for: index, at: now) {
            throw ClaimObjection(text: objection)
        }
    }

    private mutating func release() async throws {
        guard let index = owners.keys.sorted().randomElement(using: &random),
            let caller = owners.removeValue(forKey: index)
        else { return }
        let isReleased = await callers[caller].release(model.claim(index, at: now))
        log.note("release \(index): \(isReleased)")
        if let objection = model.released(index, isReleased) {
            throw ClaimObjection(text: objection)
        }
    }

    // MARK: Time

    private mutating func purgeOnce() throws {
        log.note("purge a step at \(now.wallSeconds)")
        model.purgeBegan(at: now)
        _ = store?.purge(at: now)
    }

    private mutating func purge() throws {
        log.note("purge at \(now.wallSeconds)")
        model.purgeBegan(at: now)
        var calls = 0
        while store?.purge(at: now) == true {
            calls += 1
            if calls > 100_000 { throw ClaimObjection(text: "purging never ends") }
        }
        model.purgeEnded(at: now)
    }

    private mutating func pass() {
        guard subject.followsClock else { return }
        let longest: Int64 = [2_000_000, 60_000_000, 60_000_000, 600_000_000].pick(using: &random)
        advance(.random(in: 0...longest, using: &random))
        // Rarely so long that a clock that was set has settled.
        if Int.random(in: 0..<20, using: &random) == 0 {
            advance(subject.settling.nanoseconds / 1000)
        }
        log.note("it is \(now.wallSeconds)")
    }

    private mutating func stepClock() {
        guard isClockSet else { return }
        let longest: Int64 = [3_000_000, 90_000_000, 7_200_000_000].pick(using: &random)
        now.wallMicroseconds += .random(in: -longest...longest, using: &random)
        log.note("the clock is set to \(now.wallSeconds)")
    }

    private mutating func advance(_ microseconds: Int64) {
        now.wallMicroseconds += microseconds
        now.monotonic = now.monotonic.advanced(byNanoseconds: microseconds * 1000)
    }

    // MARK: Crashes

    private mutating func crash() async throws {
        guard subject.crash != .isLeftOut else { return }
        log.note("crash at \(now.wallSeconds)")
        await close()
        owners = [:]
        try await open()
    }

    private mutating func open() async throws {
        let store = try await subject.open(now)
        self.store = store
        if let objection = model.opened(at: now, reliableSince: store.reliableSince) {
            throw ClaimObjection(text: objection)
        }
        for caller in callers { await caller.open(store) }
        // As the service does, which accepts nothing before that second.
        if subject.followsClock, now.wallSeconds < store.reliableSince { advance(1_000_000) }
    }

    private mutating func close() async {
        for caller in callers { await caller.close() }
        store = nil
    }

    private func compareStatistics() throws {
        guard let statistics = store?.statistics else { return }
        if let limit = statistics.byteLimit, let bytes = statistics.bytes, bytes > limit {
            throw ClaimObjection(text: "\(bytes) bytes of \(limit)")
        }
        guard let entries = statistics.entries else { return }
        let (least, most) = model.entries
        if !(least...most ~= entries) || entries > subject.entryLimit ?? .max {
            throw ClaimObjection(text: "\(entries) entries, not \(least)...\(most)")
        }
    }
}

extension ClaimInstant {
    /// This moment.
    fileprivate static var real: ClaimInstant {
        ClaimInstant(
            wallMicroseconds: Int64(Date().timeIntervalSince1970 * 1_000_000), monotonic: .now)
    }
}
