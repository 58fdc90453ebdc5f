import Attestation
import FoundationEssentials
import Policy
import Testing

@Suite("Problem documents")
struct ProblemTests {
    private struct Document: Decodable, Equatable {
        var type, title, detail, code: String
        var status: UInt16
        var token: String?
    }

    private static let all =
        RejectionCode.allCases.map(\.problem) + ProxyProblem.allCases.map(\.problem)

    @Test("every code has a document of its own that says what its other parts say")
    func documents() throws {
        for problem in Self.all {
            let document = try JSONDecoder().decode(Document.self, from: Data(problem.body))
            #expect(
                document
                    == Document(
                        type: "urn:portcullis:problem:\(problem.code)", title: problem.title,
                        detail: problem.detail, code: problem.code, status: problem.status))
            #expect(problem.body.allSatisfy { $0 < 0x7f })
            #expect(problem.body.last == UInt8(ascii: "\n"))
        }
        #expect(Set(Self.all.map(\.code)).count == Self.all.count)
    }

    @Test("rejections have the codes and statuses of the contract")
    func rejections() {
        #expect(
            statuses(RejectionCode.allCases.map(\.problem)) == [
                "token_missing": 401, "token_invalid": 401, "token_expired": 401,
                "attestation_failed": 401, "limited_use_required": 401,
                "token_already_used": 401, "app_not_allowed": 403, "token_in_url": 400,
                "verification_unavailable": 503, "verification_limited": 429,
            ])
        let others: [RejectionCode: UInt8] = [
            .appNotAllowed: 7, .tokenInURL: 3, .verificationUnavailable: 14,
            .verificationLimited: 8,
        ]
        for code in RejectionCode.allCases {
            #expect(code.problem.code == code.rawValue)
            #expect(code.problem.grpcStatus == others[code, default: 16])
        }
    }

    @Test("the proxy's own problems have the statuses of RFC 9110")
    func proxyProblems() {
        #expect(
            statuses(ProxyProblem.allCases.map(\.problem)) == [
                "bad_request": 400, "not_found": 404, "method_not_allowed": 405,
                "request_timeout": 408, "body_too_large": 413, "uri_too_long": 414,
                "expectation_failed": 417, "misdirected_request": 421, "rate_limited": 429,
                "header_too_large": 431,
                "upstream_unreachable": 502, "upstream_reset": 502,
                "upstream_protocol": 502, "upstream_timeout": 504,
                "version_not_supported": 505, "websocket_not_supported": 501,
                "upstream_unavailable": 503, "overloaded": 503,
            ])
        for code in ProxyProblem.allCases { #expect(code.problem.code == code.rawValue) }
    }

    private func statuses(_ problems: [Problem]) -> [String: UInt16] {
        Dictionary(problems.map { ($0.code, $0.status) }) { first, _ in first }
    }

    @Test("C3: 401 has a challenge with its code, and nothing else has one")
    func challenges() {
        for problem in Self.all {
            let challenge = problem.challenge.map { String(decoding: $0, as: UTF8.self) }
            #expect(
                challenge == (problem.status == 401 ? "AppCheck error=\"\(problem.code)\"" : nil))
        }
    }

    @Test("503 says when to come back")
    func retryAfter() {
        for problem in Self.all { #expect((problem.retryAfter != nil) == (problem.status == 503)) }
    }

    @Test("C5: the answer does not tell which check a token failed")
    func generic() {
        let reasons = InvalidReason.allCases.filter { $0 != .expired && $0 != .inURL }
        let bodies = Set(reasons.compactMap { Verdict.invalid($0).rejectionCode?.problem.body })
        #expect(bodies.count == 1)
        let text = String(decoding: bodies.first ?? [], as: UTF8.self).lowercased()
        for reason in reasons { #expect(!text.contains(reason.rawValue)) }
        for word in ["kid", "issuer", "claim", "rs256"] { #expect(!text.contains(word)) }
    }

    @Test("a limited-use route says how to get a limited-use token")
    func limitedUse() {
        #expect(RejectionCode.limitedUseRequired.problem.detail.contains("limitedUseToken()"))
        #expect(RejectionCode.tokenAlreadyUsed.problem.detail.contains("limitedUseToken()"))
    }

    @Test("R9: an answer after a claim says whether the token is spent, and what to do")
    func tokenFates() throws {
        let answers =
            ProxyProblem.allCases.map { ($0.problem, $0.spent, $0.unspent) }
            + RejectionCode.allCases.map { ($0.problem, $0.spent, $0.unspent) }
        for (plain, spent, unspent) in answers {
            for (problem, token) in [(spent, "spent"), (unspent, "unspent")] {
                let document = try JSONDecoder().decode(Document.self, from: Data(problem.body))
                #expect(
                    document
                        == Document(
                            type: "urn:portcullis:problem:\(plain.code)", title: plain.title,
                            detail: problem.detail, code: plain.code, status: plain.status,
                            token: token))
                #expect(problem.detail.hasPrefix(plain.detail))
                #expect(problem.grpcStatus == plain.grpcStatus)
                #expect(problem.challenge == plain.challenge)
                #expect(problem.retryAfter == plain.retryAfter)
            }
            #expect(spent.detail.contains("limitedUseToken()"))
            #expect(unspent.detail.contains("the same one may be sent again"))
        }
    }

    @Test("R9: answers after a claim are made once, not for each request")
    func prepared() {
        for problem in ProxyProblem.allCases {
            #expect(problem.spent === problem.spent)
            #expect(problem.unspent === problem.unspent)
            #expect(problem.spent !== problem.unspent)
        }
    }
}
