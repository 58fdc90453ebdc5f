import HTTP
import Reactor
import TestKit
import Testing

@testable import Proxy

@Suite("Limits have names")
struct LimitTests {
    @Test(
        "of the requests that they end",
        arguments: [
            (RequestFailure.bodyTooLarge, nil, Limit.body), (.headerTimeout, nil, .headerTimeout),
            (.clientTimeout, nil, .idleTimeout), (.bodyRate, nil, .bodyRate),
            (.answerRate, nil, .answerRate), (.memoryLimit, nil, .memoryLimit),
            (.openFiles, nil, .openFiles),
            (.malformed, .headTooLarge, .headerBytes), (.malformed, .tooManyFields, .headers),
            (.malformed, .targetTooLong, .url), (.malformed, .startLine, nil),
            // The backend's head is no limit of the client's.
            (.upstreamProtocol, .headTooLarge, nil), (.clientAborted, nil, nil),
        ] as [(RequestFailure, MalformedMessage.Kind?, Limit?)])
    func ofRequests(failure: RequestFailure, malformed: MalformedMessage.Kind?, limit: Limit?) {
        let record = RequestRecord()
        record.failure = failure
        record.malformed = malformed
        #expect(Limit(record) == limit)
    }

    @Test("a flood is told at once, and then every ten seconds with what was not")
    func notices() {
        let log = LogCollector()
        var notices = LimitNotices()
        var now = MonotonicInstant(nanoseconds: 1)
        func note(_ limit: Limit) {
            notices.note(
                limit, "turned away", listener: "l", client: "192.0.2.1", now: now, log: log)
        }
        for _ in 0..<5 { note(.connections) }
        note(.maxConnections)
        now = now.advanced(by: .seconds(10))
        note(.connections)
        let told = log.lines.filter { $0.message == "turned away" }.map { line in
            [line.fields["limit"] ?? "", line.fields["not_reported"] ?? ""]
        }
        #expect(told == [["connections", "0"], ["max_connections", "0"], ["connections", "4"]])
    }
}
