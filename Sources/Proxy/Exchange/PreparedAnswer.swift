internal import HTTP
internal import Policy
internal import Reactor

/// What is the same in each answer to one problem, written once: a flood of refusals is no time to
/// format text.
final class PreparedAnswer: Sendable {
    let problem: Problem
    /// The status line, and the fields that say nothing about the request.
    let head: [UInt8]

    /// 503 where the claim store did not answer, and the token may be spent.
    static let unavailableSpent = PreparedAnswer(RejectionCode.verificationUnavailable.spent)
    /// 503 where the claim store could not be asked, and the token is as good as before.
    static let unavailableUnspent = PreparedAnswer(RejectionCode.verificationUnavailable.unspent)

    init(_ problem: Problem) {
        self.problem = problem
        let buffer = ByteBuffer(capacity: 512)
        buffer.appendStatusLine(problem.status)
        buffer.appendField("Content-Type", "application/problem+json")
        buffer.appendField("Content-Length", decimal: UInt64(problem.body.count))
        buffer.appendField("Cache-Control", "no-store")
        if let challenge = problem.challenge {
            buffer.appendField("WWW-Authenticate", challenge.span)
        }
        if let delay = problem.retryAfter { buffer.appendField("Retry-After", delay.span) }
        head = buffer.withUnsafeBytes { Array($0) }
    }
}

extension RejectionCode {
    /// The answer, without a look-up in a table.
    var prepared: PreparedAnswer {
        switch self {
        case .tokenMissing: Prepared.tokenMissing
        case .tokenInvalid: Prepared.tokenInvalid
        case .tokenExpired: Prepared.tokenExpired
        case .attestationFailed: Prepared.attestationFailed
        case .limitedUseRequired: Prepared.limitedUseRequired
        case .tokenAlreadyUsed: Prepared.tokenAlreadyUsed
        case .appNotAllowed: Prepared.appNotAllowed
        case .tokenInURL: Prepared.tokenInURL
        case .verificationUnavailable: Prepared.verificationUnavailable
        case .verificationLimited: Prepared.verificationLimited
        }
    }

    private enum Prepared {
        static let tokenMissing = PreparedAnswer(RejectionCode.tokenMissing.problem)
        static let tokenInvalid = PreparedAnswer(RejectionCode.tokenInvalid.problem)
        static let tokenExpired = PreparedAnswer(RejectionCode.tokenExpired.problem)
        static let attestationFailed = PreparedAnswer(RejectionCode.attestationFailed.problem)
        static let limitedUseRequired = PreparedAnswer(RejectionCode.limitedUseRequired.problem)
        static let tokenAlreadyUsed = PreparedAnswer(RejectionCode.tokenAlreadyUsed.problem)
        static let appNotAllowed = PreparedAnswer(RejectionCode.appNotAllowed.problem)
        static let tokenInURL = PreparedAnswer(RejectionCode.tokenInURL.problem)
        static let verificationUnavailable = PreparedAnswer(
            RejectionCode.verificationUnavailable.problem)
        static let verificationLimited = PreparedAnswer(
            RejectionCode.verificationLimited.problem)
    }
}
