import HTTP
import TestKit
import Testing

@Suite("Limits of heads")
struct LimitTests {
    private let limits = HeadLimits(bytes: 512, fields: 4, target: 100)

    private func padded(to count: Int) -> String {
        let empty = head("GET / HTTP/1.1", "A: ")
        return head(
            "GET / HTTP/1.1", "A: \(String(repeating: "x", count: count - empty.utf8.count))")
    }

    @Test("H8: a head may fill its limit and not go beyond it")
    func boundsBytes() throws {
        #expect(try verdict(padded(to: 512), limits: limits).accepted().length == 512)
        #expect(verdict(padded(to: 513), limits: limits) == .malformed(.headTooLarge))
        #expect(MalformedMessage(.headTooLarge).status == 431)
    }

    @Test("H8: a head without end is refused as soon as it reaches the limit")
    func boundsUnfinishedHeads() {
        let unfinished = String(padded(to: 600).dropLast(4))
        #expect(verdict(start(of: unfinished, 500), limits: limits) == .incomplete)
        #expect(verdict(unfinished, limits: limits) == .malformed(.headTooLarge))
        #expect(verdict(start(of: unfinished, 511), limits: limits) == .incomplete)
        #expect(
            verdict(start(of: unfinished, 512), limits: limits) == .malformed(.headTooLarge))
    }

    @Test("H8: a limited number of field lines")
    func boundsFields() throws {
        #expect(
            try verdict(head("GET / HTTP/1.1", "A: 1", "B: 2", "C: 3"), limits: limits).accepted()
                .fields.count == 4)
        let five = head("GET / HTTP/1.1", "A: 1", "B: 2", "C: 3", "D: 4")
        #expect(verdict(five, limits: limits) == .malformed(.tooManyFields))
        #expect(MalformedMessage(.tooManyFields).status == 431)
    }

    @Test("A limited length of the target, complete or not")
    func boundsTarget() throws {
        let longest = "/" + String(repeating: "a", count: 99)
        #expect(
            try verdict(head("GET \(longest) HTTP/1.1"), limits: limits).accepted().path
                == bytes(longest))
        for target in ["\(longest)a", "/?\(longest)", "http://api.example\(longest)"] {
            let request = head("GET \(target) HTTP/1.1")
            #expect(verdict(request, limits: limits) == .malformed(.targetTooLong))
        }
        let unfinished = "GET /" + String(repeating: "a", count: 200)
        #expect(verdict(unfinished, limits: limits) == .malformed(.targetTooLong))
        #expect(MalformedMessage(.targetTooLong).status == 414)
    }

    @Test("An empty or unfinished head asks for more")
    func waits() {
        let request = head("GET / HTTP/1.1")
        #expect(verdict("") == .incomplete)
        for count in 1..<request.unicodeScalars.count {
            #expect(verdict(start(of: request, count)) == .incomplete)
        }
    }
}
