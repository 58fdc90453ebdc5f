import Testing

@testable import HTTP

@Suite("Characters of field values")
struct TextTests {
    @Test("every character at every place of every short value is judged alike")
    func judges() {
        // Blocks of 8, 16 and 64 bytes, and what is left behind them.
        for count in Array(1...24) + [63, 64, 65, 80, 128, 145] {
            for place in 0..<count {
                for byte in UInt8.min...UInt8.max {
                    var value = [UInt8](repeating: UInt8(ascii: "a"), count: count)
                    value[place] = byte
                    let isAllowed = byte == 0x09 || byte >= 0x20 && byte != 0x7F
                    if value.span.isText != isAllowed {
                        Issue.record("\(byte) at \(place) of \(count)")
                    }
                }
            }
        }
    }
}
