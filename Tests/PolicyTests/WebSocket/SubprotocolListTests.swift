import Policy
import TestKit
import Testing

@Suite("Tokens among subprotocols")
struct SubprotocolListTests {
    private struct Read: Equatable {
        var entries: [String] = []
        var tokens: [String] = []
    }

    private static func read(_ value: [UInt8]) -> Read {
        var list = SubprotocolList()
        var read = Read()
        while let entry = list.next(in: value.span) {
            read.entries.append(String(decoding: value[entry.range], as: UTF8.self))
            if let token = entry.token {
                read.tokens.append(String(decoding: value[token], as: UTF8.self))
            }
        }
        return read
    }

    @Test(
        "a list is read entry by entry",
        arguments: [
            ("", [], []), (" , ,\t,", [], []), ("chat", ["chat"], []),
            ("chat, superchat", ["chat", "superchat"], []),
            ("chat,appcheck.a.b.c", ["chat", "appcheck.a.b.c"], ["a.b.c"]),
            ("appcheck.a.b.c", ["appcheck.a.b.c"], ["a.b.c"]),
            ("\tappcheck.a ,, chat ", ["appcheck.a", "chat"], ["a"]),
            ("appcheck.a,appcheck.b", ["appcheck.a", "appcheck.b"], ["a", "b"]),
            // Another case, nothing behind the prefix, blanks inside: no backend may see it.
            ("AppCheck.a", ["AppCheck.a"], ["a"]), ("APPCHECK.", ["APPCHECK."], [""]),
            ("appcheck.a b", ["appcheck.a b"], ["a b"]),
            ("appcheck.appcheck.a", ["appcheck.appcheck.a"], ["appcheck.a"]),
            // Only a comma separates.
            ("\"x, appcheck.a\"", ["\"x", "appcheck.a\""], ["a\""]),
            ("appcheck.a;chat", ["appcheck.a;chat"], ["a;chat"]),
            // Not the prefix.
            ("appcheck", ["appcheck"], []), ("xappcheck.a", ["xappcheck.a"], []),
            ("appcheck .a", ["appcheck .a"], []), ("\"appcheck.a\"", ["\"appcheck.a\""], []),
            ("app\u{212A}check.a", ["app\u{212A}check.a"], []),
        ] as [(String, [String], [String])])
    func lists(_ value: String, _ entries: [String], _ tokens: [String]) {
        #expect(Self.read(Array(value.utf8)) == Read(entries: entries, tokens: tokens))
    }

    @Test("O5: no list of bytes hides a token, or stops the walk", arguments: 0..<200)
    func hostile(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces: [[UInt8]] = [",", " ", "\t", "\"", ";", "appcheck", ".", "AppCheck.", "chat"]
            .map { Array($0.utf8) }
        var value: [UInt8] = []
        for _ in 0..<Int.random(in: 0...40, using: &random) {
            value +=
                Bool.random(using: &random)
                ? pieces[Int.random(in: pieces.indices, using: &random)]
                : [UInt8.random(in: 0...255, using: &random)]
        }
        var list = SubprotocolList()
        var end = 0
        while let entry = list.next(in: value.span) {
            #expect(entry.range.lowerBound >= end && entry.range.upperBound <= value.count)
            end = entry.range.upperBound
            let text = value[entry.range].map { 65...90 ~= $0 ? $0 | 0x20 : $0 }
            #expect(!text.isEmpty && !text.contains(UInt8(ascii: ",")))
            #expect((entry.token != nil) == text.starts(with: "appcheck.".utf8))
        }
        let expected = value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: true)
            .filter { !$0.allSatisfy { $0 == 0x20 || $0 == 0x09 } }.count
        #expect(Self.read(value).entries.count == expected)
    }
}
