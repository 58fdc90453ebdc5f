/// An answer of our own: the problem document (RFC 9457) and what goes with it. Made once for each
/// code.
///
/// The text says what the developer of an app must do. It never says which check a token failed, as
/// that helps those who forge tokens (pitfall C5); the reason is in logs and metrics.
public final class Problem: Sendable {
    /// The stable word in the document, in logs and in `WWW-Authenticate`.
    public let code: String
    /// Status of the answer.
    public let status: UInt16
    /// For gRPC callers: a code of the gRPC specification, 1 to 16.
    public let grpcStatus: UInt8
    /// RFC 9457, section 3.1.4.
    public let title: String
    /// RFC 9457, section 3.1.5; never which check failed.
    public let detail: String
    /// The document: `application/problem+json`.
    public let body: [UInt8]
    /// Value of `WWW-Authenticate`, on 401 (RFC 9110, section 15.5.2).
    public let challenge: [UInt8]?
    /// Value of `Retry-After`, in seconds.
    public let retryAfter: [UInt8]?

    private init(
        code: String, status: UInt16, grpcStatus: UInt8, retryAfter: Int?,
        _ text: (title: String, detail: String), token: TokenFate? = nil
    ) {
        self.code = code
        self.status = status
        self.grpcStatus = grpcStatus
        title = text.title
        detail = token.map { "\(text.detail) \($0.advice)" } ?? text.detail
        let fate = token.map { ",\"token\":\"\($0.rawValue)\"" } ?? ""
        // Codes and texts are ours and hold nothing that JSON would have to escape; a test sees to
        // it.
        body = Array(
            """
            {"type":"urn:portcullis:problem:\(code)","title":"\(title)","status":\(status),\
            "detail":"\(detail)","code":"\(code)"\(fate)}

            """.utf8)
        challenge = status == 401 ? Array("AppCheck error=\"\(code)\"".utf8) : nil
        self.retryAfter = retryAfter.map { Array(String($0).utf8) }
    }
}

extension RejectionCode {
    /// The answer to a rejected request.
    public var problem: Problem { Self.answers.plain(self) ?? Problem(self, nil) }

    /// The same where the request's limited-use token is spent, or may be.
    public var spent: Problem { Self.answers.spent(self) ?? Problem(self, .spent) }

    /// The same where the request's limited-use token is still good.
    public var unspent: Problem { Self.answers.unspent(self) ?? Problem(self, .unspent) }

    private static let answers = PreparedProblems(allCases, Problem.init)
}

extension ProxyProblem {
    /// The answer to a request that cannot be served.
    public var problem: Problem { Self.answers.plain(self) ?? Problem(self, nil) }

    /// The answer where the request's limited-use token stays spent: something of the request may
    /// have reached the backend.
    public var spent: Problem { Self.answers.spent(self) ?? Problem(self, .spent) }

    /// The answer where the claim of the request's limited-use token was released: it is as good as
    /// before.
    public var unspent: Problem { Self.answers.unspent(self) ?? Problem(self, .unspent) }

    private static let answers = PreparedProblems(allCases, Problem.init)
}

/// What became of the limited-use token of a request that ended in an answer of our own. The raw
/// value is `token` in the problem document.
private enum TokenFate: String {
    case spent, unspent

    /// What the app's developer must do about it.
    var advice: String {
        switch self {
        case .spent:
            "The limited-use token of this request is spent: call limitedUseToken() "
                + "(getLimitedUseToken() on Android and the web) before you try again."
        case .unspent:
            "The limited-use token of this request was not used: the same one may be sent again."
        }
    }
}

/// Each answer, made once.
private struct PreparedProblems<Code: Equatable & Sendable>: Sendable {
    // A handful of entries: comparing cases is faster than hashing their raw values.
    private let entries: [(code: Code, plain: Problem, spent: Problem, unspent: Problem)]

    init(_ codes: [Code], _ make: (Code, TokenFate?) -> Problem) {
        entries = codes.map { ($0, make($0, nil), make($0, .spent), make($0, .unspent)) }
    }

    func plain(_ code: Code) -> Problem? { entries.first { $0.code == code }?.plain }

    func spent(_ code: Code) -> Problem? { entries.first { $0.code == code }?.spent }

    func unspent(_ code: Code) -> Problem? { entries.first { $0.code == code }?.unspent }
}

extension Problem {
    fileprivate convenience init(_ code: RejectionCode, _ token: TokenFate?) {
        self.init(
            code: code.rawValue, status: code.status, grpcStatus: code.grpcStatus,
            retryAfter: code == .verificationUnavailable ? 5 : nil, code.text, token: token)
    }

    fileprivate convenience init(_ code: ProxyProblem, _ token: TokenFate?) {
        self.init(
            code: code.rawValue, status: code.status, grpcStatus: code.grpcStatus,
            retryAfter: code == .upstreamUnavailable || code == .overloaded ? 5 : nil, code.text,
            token: token)
    }
}
