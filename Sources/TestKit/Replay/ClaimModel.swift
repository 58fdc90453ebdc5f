internal import Reactor
internal import Replay

/// What a claim store must answer, as plainly as the rules are written down: a list of tokens, and
/// what happened to each.
///
/// Where a store is free (when it purges within the rules, whether a claim without an answer was
/// made) the model knows bounds: what may be, and what must be.
struct ClaimModel {
    private enum State {
        case fresh, claimed
        /// An answer was lost: either of the two.
        case unknown
    }

    private struct Token {
        var claim: Claim
        var state = State.fresh
        /// Its entry may have been purged since it was claimed.
        var mayBeGone = false
        /// Its entry must have been.
        var isGone = false
    }

    private let subject: ClaimSubject
    private var tokens: [Token] = []
    private var reliableSince = Int64.min
    /// When what the store remembers began, on the clock that nobody sets.
    private var made: MonotonicInstant?
    /// The highest that the store's `forgottenThrough` can be.
    private var forgottenThrough = Int64.min
    /// What the store's clock was shown since it was opened.
    private var readings: [ClaimInstant] = []

    init(_ subject: ClaimSubject) {
        self.subject = subject
    }

    /// The claims that a verifier lets through at this moment.
    func accepted(at now: ClaimInstant) -> [Int] {
        tokens.indices.filter { index in
            now.wallSeconds < tokens[index].claim.retainedUntil
                && tokens[index].claim.issuedAt <= now.wallSeconds + 60
        }
    }

    /// The claim of a token, as a request makes it at `now`.
    func claim(_ index: Int, at now: ClaimInstant) -> Claim {
        var claim = tokens[index].claim
        claim.at = now
        return claim
    }

    mutating func mint(_ claim: Claim) -> Int {
        tokens.append(Token(claim: claim))
        return tokens.count - 1
    }

    /// The store was opened, for the first time or after a crash.
    mutating func opened(at now: ClaimInstant, reliableSince: Int64) -> String? {
        self.reliableSince = reliableSince
        if made == nil || subject.crash == .forgets { made = now.monotonic }
        readings = []
        if subject.crash == .forgets {
            forgottenThrough = .min
            for index in tokens.indices { tokens[index] = Token(claim: tokens[index].claim) }
            if !(now.wallSeconds + 1...now.wallSeconds + 2 ~= reliableSince) {
                return "opened empty at \(now.wallSeconds), reliable since \(reliableSince)"
            }
        }
        purgeBegan(at: now)
        return nil
    }

    /// Tokens issued earlier are `predates`; rounding leaves a second or two to the store.
    private func borders(at now: ClaimInstant) -> ClosedRange<Int64> {
        guard subject.noticesLateClock, let made else { return reliableSince...reliableSince }
        let age = now.monotonic.microseconds(since: made)
        let late = (now.wallMicroseconds - age) / 1_000_000
        return max(reliableSince, late - 2)...max(reliableSince, late)
    }

    /// What is wrong with this answer to a claim of this token, or nil.
    func objection(to outcome: ClaimOutcome, for index: Int, at now: ClaimInstant) -> String? {
        let token = tokens[index]
        switch outcome {
        case .claimed, .predates:
            if token.state == .claimed { return "spent twice" }
            let borders = borders(at: now)
            let (isOlder, isYounger) = (
                token.claim.issuedAt < borders.lowerBound,
                token.claim.issuedAt >= borders.upperBound
            )
            if outcome == .predates ? isYounger : isOlder {
                return "issued \(token.claim.issuedAt), reliable since \(borders)"
            }
            if let limit = subject.entryLimit, entries.least >= limit { return "over the limit" }
        case .reused:
            if token.state == .fresh { return "nobody claimed it" }
        case .expired:
            if token.claim.retainedUntil > forgottenThrough {
                return "nothing as late as \(token.claim.retainedUntil) can be forgotten"
            }
        case .full:
            guard let limit = subject.entryLimit, entries.most >= limit else { return "not full" }
            if token.state == .claimed, !token.mayBeGone { return "it is in the store" }
        case .unavailable:
            if !subject.mayFail { return "the store is there" }
        case .refused, .unsupported:
            return "not for a genuine token"
        }
        return nil
    }

    /// Takes note of the answer to a claim.
    mutating func answered(_ outcome: ClaimOutcome, for index: Int) {
        switch outcome {
        case .claimed, .predates:
            tokens[index] = Token(claim: tokens[index].claim, state: .claimed)
        case .reused:
            tokens[index].state = .claimed
        case .unavailable where tokens[index].state == .fresh:
            tokens[index].state = .unknown
        default: break
        }
    }

    /// Takes note of a release.
    mutating func released(_ index: Int, _ isReleased: Bool) -> String? {
        let token = tokens[index]
        if isReleased, !subject.releases { return "released" }
        if !isReleased, subject.releases, !subject.mayFail, !token.mayBeGone {
            return "not released"
        }
        tokens[index].state = isReleased ? .fresh : .unknown
        return nil
    }

    /// A purge begins: what it may forget by the rules.
    mutating func purgeBegan(at now: ClaimInstant) {
        readings.append(now)
        let latest = trusted(at: now, within: subject.settling.nanoseconds)
        for (index, token) in tokens.enumerated()
        where token.state != .fresh && token.claim.retainedUntil <= latest {
            tokens[index].mayBeGone = true
            forgottenThrough = max(forgottenThrough, token.claim.retainedUntil)
        }
    }

    /// A purge said that it has nothing more to do: what it must have forgotten by the rules.
    mutating func purgeEnded(at now: ClaimInstant) {
        let earliest = trusted(at: now, within: .max)
        for (index, token) in tokens.enumerated()
        where token.state != .fresh && token.claim.retainedUntil <= earliest {
            tokens[index].isGone = true
        }
    }

    /// How many entries the store has at least and at most.
    var entries: (least: Int, most: Int) {
        (
            tokens.count { $0.state == .claimed && !$0.mayBeGone },
            tokens.count { $0.state != .fresh && !$0.isGone }
        )
    }

    /// The time as the most careful of the readings of the last nanoseconds has it.
    private func trusted(at now: ClaimInstant, within span: Int64) -> Int64 {
        readings.lazy.filter { now.monotonic.nanoseconds - $0.monotonic.nanoseconds <= span }
            .map { reading in
                let passed = now.monotonic.nanoseconds - reading.monotonic.nanoseconds
                return (reading.wallMicroseconds + passed / 1000) / 1_000_000
            }
            .min() ?? .min
    }
}
