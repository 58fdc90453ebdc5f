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
        _ text: (title: String, detail: String)
    ) {
        self.code = code
        self.status = status
        self.grpcStatus = grpcStatus
        title = text.title
        detail = text.detail
        // Codes and texts are ours and hold nothing that JSON would have to escape; a test sees to
        // it.
        body = Array(
            """
            {"type":"urn:portcullis:problem:\(code)","title":"\(text.title)","status":\(status),\
            "detail":"\(text.detail)","code":"\(code)"}

            """.utf8)
        challenge = status == 401 ? Array("AppCheck error=\"\(code)\"".utf8) : nil
        self.retryAfter = retryAfter.map { Array(String($0).utf8) }
    }
}

extension RejectionCode {
    /// The answer to a rejected request.
    public var problem: Problem {
        // A handful of entries: comparing cases is faster than hashing their raw values.
        for (code, problem) in Self.problems where code == self { return problem }
        return Problem(self)
    }

    private static let problems = allCases.map { ($0, Problem($0)) }
}

extension ProxyProblem {
    /// The answer to a request that cannot be served.
    public var problem: Problem {
        for (code, problem) in Self.problems where code == self { return problem }
        return Problem(self)
    }

    private static let problems = allCases.map { ($0, Problem($0)) }
}

extension Problem {
    fileprivate convenience init(_ code: RejectionCode) {
        self.init(
            code: code.rawValue, status: code.status, grpcStatus: code.grpcStatus,
            retryAfter: code == .verificationUnavailable ? 5 : nil, code.text)
    }

    fileprivate convenience init(_ code: ProxyProblem) {
        self.init(
            code: code.rawValue, status: code.status, grpcStatus: code.grpcStatus,
            retryAfter: nil, code.text)
    }
}
