import FoundationEssentials
import TestKit
import Testing

@testable import Operations

@Suite("Escaping")
struct EscapingTests {
    private func escape(_ bytes: [UInt8], limit: Int = 4096) -> String {
        render { $0.append(escaping: bytes.span, limit: limit) }
    }

    @Test(
        "leaves printable ASCII, and nothing else, as it is",
        arguments: [
            ("", ""), ("/v1/transfers?a=b", "/v1/transfers?a=b"), ("~ JOB", "~ JOB"),
            ("a\"b\\c", #"a\"b\\c"#),
            ("\r\n\t", #"\r\n\t"#), ("\0\u{1B}[31m", #"\u0000\u001b[31m"#),
            ("\u{7F}", #"\u007f"#), ("\u{85}\u{2028}", #"\u0085\u2028"#), ("é", #"\u00e9"#),
            ("😀", #"\ud83d\ude00"#), ("0123456789abcde\"", #"0123456789abcde\""#),
            ("1234567\u{7F}", #"1234567\u007f"#),
        ])
    func table(_ text: String, _ expected: String) {
        #expect(escape(Array(text.utf8)) == expected)
    }

    @Test(
        "shows each byte that is not valid UTF-8",
        arguments: [
            ([0xFF], #"\\xff"#), ([0xC0, 0xAF], #"\\xc0\\xaf"#), ([0xE2, 0x82], #"\\xe2\\x82"#),
            ([0xED, 0xA0, 0x80], #"\\xed\\xa0\\x80"#), ([0xC3, 0x28], #"\\xc3("#),
            ([0xF4, 0x90, 0x80, 0x80], #"\\xf4\\x90\\x80\\x80"#),
            ([0xE0, 0x80, 0x80], #"\\xe0\\x80\\x80"#),
        ] as [([UInt8], String)])
    func invalid(_ bytes: [UInt8], _ expected: String) {
        #expect(escape(bytes) == expected)
    }

    @Test("finds every special byte at every place of a word")
    func everyPlace() {
        for byte in UInt8.min...UInt8.max {
            let isPlain = (0x20...0x7E).contains(byte) && ![0x22, 0x5C, 0x4A].contains(byte)
            for place in 0..<20 {
                var bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 20)
                bytes[place] = byte
                #expect(bytes.span.isPlain == isPlain, "\(byte) at \(place)")
            }
        }
    }

    @Test("cuts off what is longer than the limit")
    func limit() {
        #expect(escape(Array("abcdef".utf8), limit: 3) == "abc")
        #expect(escape(Array("abé".utf8), limit: 3) == #"ab\\xc3"#)
    }

    @Test("makes of any bytes a JSON string that gives valid text back")
    func property() throws {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            let bytes = generator.awkwardBytes(64)
            let escaped = escape(bytes)
            #expect(escaped.utf8.allSatisfy { (0x20...0x7E).contains($0) })
            let parsed = try JSONDecoder().decode(
                [String].self, from: Data("[\"\(escaped)\"]".utf8))
            if let text = String(validating: bytes, as: UTF8.self) {
                #expect(parsed == [text])
            }
        }
    }

    @Test(
        "O5: redacts what looks like a token",
        arguments: [
            ("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[redacted]"),
            ("Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln, more", "Bearer [redacted], more"),
            ("x=eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==&y", "x=[redacted]&y"),
            ("eyJhbGciOiJSUzI1NiJ9%2Ee30", "[redacted]"),
            ("keyJack.example", "keyJack.example"), ("eyJ", "eyJ"), ("eeyeyJ", "eeyeyJ"),
        ])
    func tokens(_ text: String, _ expected: String) {
        #expect(escape(Array(text.utf8)) == expected)
    }
}
