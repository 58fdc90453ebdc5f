public import Configuration
internal import Reactor
internal import Synchronization

/// Who may change something through the admin listener. Shared by all threads; a reload brings
/// another token.
///
/// A right token is never refused: what is bounded are wrong ones, each of which costs a line in
/// the log. How often one may guess does not matter for a word of sixteen characters, and a limit
/// that met everybody would let a stranger lock the operator out
/// (docs/decisions/0087-draining-a-server.md).
public final class AdminAccess: Sendable {
    /// What may be done with what was sent.
    enum Judgement: Equatable {
        case granted
        /// Nothing can be changed by anybody; why, and what to do.
        case readOnly(String)
        case missing
        /// `unreported` others came since the last one that was reported.
        case wrong(unreported: Int)
        /// Wrong, as so many before it; to be tried again after this many seconds.
        case throttled(seconds: Int)
    }

    /// How a request for a change ended; label values of `portcullis_admin_changes_total`.
    enum Outcome: String, CaseIterable {
        case done, unchanged, unknown, unauthorized, throttled
        case readOnly = "read_only"
    }

    private struct State {
        var token: AdminToken?
        var tokenFile: String?
        /// Wrong tokens that are still answered and reported one by one.
        var allowance = AdminAccess.burst
        var countedAt: MonotonicInstant?
        var unreported = 0
        var outcomes: [Outcome: UInt64] = [:]
    }

    private static let burst = 10.0
    /// Seconds after which another one is allowed.
    private static let secondsEach = 6.0

    private let state = Mutex(State())

    /// Nothing can be changed before a token is there.
    public init() {}

    /// The token of this configuration counts from now on.
    public func adopt(_ admin: Admin?) {
        state.withLock { state in
            state.token = admin?.token
            state.tokenFile = admin?.tokenFile
        }
    }

    /// What a request for a change may do.
    func judge(_ authorization: AdminRequest.Authorization, at now: MonotonicInstant) -> Judgement {
        state.withLock { state in
            guard let token = state.token else { return .readOnly(Self.reason(state.tokenFile)) }
            if authorization == .none { return .missing }
            if case .bearer(let bytes) = authorization, token.matches(bytes) { return .granted }
            if let before = state.countedAt {
                let seconds = Double(max(0, now.microseconds(since: before))) / 1e6
                state.allowance = min(Self.burst, state.allowance + seconds / Self.secondsEach)
            }
            state.countedAt = now
            if state.allowance < 1 {
                state.unreported += 1
                let wait = (1 - state.allowance) * Self.secondsEach
                return .throttled(seconds: Int(wait.rounded(.up)))
            }
            state.allowance -= 1
            defer { state.unreported = 0 }
            return .wrong(unreported: state.unreported)
        }
    }

    /// A request for a change ended.
    func count(_ outcome: Outcome) {
        state.withLock { $0.outcomes[outcome, default: 0] += 1 }
    }

    /// How many ended so.
    func total(_ outcome: Outcome) -> UInt64 {
        state.withLock { $0.outcomes[outcome] ?? 0 }
    }

    private static func reason(_ tokenFile: String?) -> String {
        guard let tokenFile else {
            return "changes need a bearer token; name a file that holds one in token_file of "
                + "[admin], and reload"
        }
        return "changes need the bearer token in \(tokenFile), which could not be read when the "
            + "configuration was; let this process read it, and reload"
    }
}
