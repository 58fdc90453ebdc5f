import Policy
import Testing

@testable import Proxy

@Suite("Prepared answers")
struct PreparedAnswerTests {
    @Test(
        "C3: each rejection has its own status, length, challenge and no-store",
        arguments: RejectionCode.allCases)
    func head(code: RejectionCode) {
        let problem = code.problem
        let head = String(decoding: code.prepared.head, as: UTF8.self)
        #expect(head.hasPrefix("HTTP/1.1 \(code.status) "))
        #expect(head.contains("\r\nContent-Type: application/problem+json\r\n"))
        #expect(head.contains("\r\nContent-Length: \(problem.body.count)\r\n"))
        #expect(head.contains("\r\nCache-Control: no-store\r\n"))
        let challenge = "\r\nWWW-Authenticate: AppCheck error=\"\(code.rawValue)\"\r\n"
        #expect(head.contains(challenge) == (code.status == 401))
        #expect(head.contains("\r\nRetry-After: ") == (code.status == 503))
        #expect(head.hasSuffix("\r\n") && !head.hasSuffix("\r\n\r\n"))
        #expect(code.prepared.problem.code == code.rawValue)
    }
}
