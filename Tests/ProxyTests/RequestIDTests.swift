import Testing

@testable import Proxy

@Suite("Request ids")
struct RequestIDTests {
    @Test("an id is 32 small hex digits, every digit occurs everywhere, and none repeats")
    func ids() {
        var generator = RequestIDGenerator()
        var seen: Set<[UInt8]> = []
        var digits: [Set<UInt8>] = Array(repeating: [], count: 32)
        var id: [UInt8] = []
        for _ in 0..<2000 {
            generator.next(into: &id)
            #expect(seen.insert(id).inserted)
            for (index, digit) in id.enumerated() { digits[index].insert(digit) }
        }
        #expect(digits.allSatisfy { $0 == Set("0123456789abcdef".utf8) })
    }

    @Test("an id that a trusted proxy sent leaves no trace in the next one")
    func afterForeignID() {
        var generator = RequestIDGenerator()
        var id = Array("from-the-edge".utf8)
        generator.next(into: &id)
        #expect(id.count == 32)
    }
}
