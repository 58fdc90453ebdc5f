import Testing

@testable import Attestation

@Suite("JSON")
struct JSONDocumentTests {
    static func fault(_ text: String) -> JSONError? { fault(Array(text.utf8)) }

    static func fault(_ text: [UInt8]) -> JSONError? {
        do throws(JSONError) {
            _ = try JSONDocument(text)
            return nil
        } catch {
            return error
        }
    }

    static func document(_ text: String) throws -> JSONDocument {
        try JSONDocument(Array(text.utf8))
    }

    /// The string that is the whole text.
    static func string(_ text: String) throws -> String? { try document(text).text(of: 0) }

    @Test(
        "reads what RFC 8259 allows",
        arguments: [
            "{}", "[]", "\"\"", "0", "-0", "-1.5e+10", "1E400", "0.0001e-9", "true", "false",
            "null",
            " \t\r\n{ \"a\" : [ 1 , { } , [ ] ] , \"b\" : \"\" } \n", "[[[[]]]]", "[1,2]",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"", "\"é€😀\"", "\"\u{7F}\"",
        ])
    func grammar(text: String) {
        #expect(Self.fault(text) == nil)
    }

    @Test(
        "refuses what it does not allow",
        arguments: [
            "", " ", "{", "}", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}", "{,}", "{1:2}", "{a:1}", "{'a':1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
            "[1}",
            "{\"a\":1]", "{} {}", "{}x", "1 2", "\u{FEFF}{}", "tru", "TRUE", "nul", "nulll", "NaN",
            "Infinity", "+1", "01", "-", "-01", "1.", ".5", "1e", "1e+", "0x1", "1_000", "--1",
            "\"",
            "\"a", "\"\\\"", "\"\\", "\"\\x41\"", "\"\\u\"", "\"\\u12\"", "\"\\u12G4\"", "\"\n\"",
            "\"\u{0}\"", "\"\u{1F}\"", "// c\n{}", "[\"a\":1]", "<html></html>", "\u{0B}1",
        ])
    func nonsense(text: String) {
        #expect(Self.fault(text) == .syntax)
    }

    @Test(
        "refuses bytes that are no UTF-8",
        arguments: [
            [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0x80],
            [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
            [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
            [0xE2, 0x28, 0xA1], [0xF0, 0x9F, 0x28, 0x80],
        ] as [[UInt8]])
    func notUTF8(bytes: [UInt8]) {
        #expect(Self.fault([0x22] + bytes + [0x22]) == .syntax)
        #expect(Self.fault([0x22] + bytes) == .syntax)
        #expect(Self.fault([0x22, 0x5C, 0x6E] + bytes + [0x22]) == .syntax)
    }

    @Test("resolves escapes, pairs of surrogates too")
    func escapes() throws {
        #expect(try Self.string("\"projects\\/123\"") == "projects/123")
        #expect(try Self.string("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00z\"") == "Aé€😀z")
        #expect(try Self.string("\"é\\n€\\t😀\"") == "é\n€\t😀")
        #expect(try Self.string("\"\\u0000\"") == "\0")
        #expect(try Self.string("\"\\b\\f\\r\\\"\\\\\"") == "\u{8}\u{C}\r\"\\")
    }

    @Test(
        "refuses half a pair of surrogates",
        arguments: [
            "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ud83d\\ud83d\"",
            "\"\\ud83d\\u0041\"", "\"\\ud83d\\u\"", "\"\\ud83d\\", "\"\\ude00\\ud83d\"",
        ])
    func halfPair(text: String) {
        #expect(Self.fault(text) == .syntax)
    }

    @Test(
        "T11: refuses an object that names a member twice, however the name is spelled",
        arguments: [
            "{\"alg\":1,\"alg\":1}", "{\"alg\":1,\"x\":[{\"y\":2}],\"alg\":2}",
            "{\"alg\":1,\"\\u0061lg\":2}", "{\"\\u0061l\\u0067\":1,\"alg\":2}", "{\"\":1,\"\":2}",
            "[{\"a\":{\"b\":1,\"b\":2}}]", "{\"é\":1,\"\\u00e9\":2}", "{\"/\":1,\"\\/\":2}",
        ])
    func duplicates(text: String) {
        #expect(Self.fault(text) == .duplicateName)
    }

    @Test("takes one name in several objects for what it is")
    func sameNameElsewhere() {
        #expect(Self.fault("{\"a\":{\"a\":[{\"a\":1},{\"a\":2}]},\"A\":1,\"aa\":2}") == nil)
    }

    @Test("bounds depth, members and length")
    func limits() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(Self.fault(nested(JSONLimits.depth)) == nil)
        #expect(Self.fault(nested(JSONLimits.depth + 1)) == .tooDeep)
        #expect(Self.fault(String(repeating: "[", count: 500_000)) == .tooDeep)
        #expect(Self.fault(String(repeating: "{\"a\":", count: 100_000)) == .tooDeep)
        func wide(_ members: Int) -> String {
            "{" + (0..<members).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        }
        #expect(Self.fault(wide(JSONLimits.members)) == nil)
        #expect(Self.fault(wide(JSONLimits.members + 1)) == .tooManyMembers)
        let long = [UInt8](repeating: 0x20, count: JSONLimits.textBytes)
        #expect(Self.fault(long) == .syntax)
        #expect(Self.fault(long + [0x20]) == .tooLong)
    }

    @Test("finds members and elements behind values of any shape")
    func navigation() throws {
        let text = "{\"a\":[1,[2,{\"z\":3}],\"s\"],\"b\":{\"a\":\"inner\"},\"c\":null,\"d\":true}"
        let document = try Self.document(text)
        let list = try #require(document.member("a"))
        #expect(document.count(of: list) == 3)
        #expect(
            document.elements(of: list).map { document.kind(of: $0) } == [.number, .array, .string])
        let inner = try #require(document.member("b"))
        let innerText = try #require(document.member("a", of: inner))
        #expect(document.text(of: innerText) == "inner")
        #expect(document.member("c").map { document.kind(of: $0) } == .null)
        #expect(document.member("d").map { document.kind(of: $0) } == .true)
        #expect(document.member("z") == nil)
        #expect(document.member("z", of: list) == nil)
        #expect(Array(document.elements(of: inner)) == [])
        #expect(document.text(of: list) == nil)
    }

    @Test(
        "T9: reads seconds from plain digits alone, and traps on none",
        arguments: [
            ("0", 0), ("1800000000", 1_800_000_000), ("9007199254740992", 1 << 53),
            ("9007199254740993", nil), ("9999999999999999", nil), ("10000000000000000", nil),
            ("9223372036854775808", nil), ("1e400", nil), ("1e9", nil), ("-1", nil), ("-0", nil),
            ("1.0", nil), ("1.5", nil), ("\"1\"", nil), ("true", nil), ("null", nil), ("[1]", nil),
            (String(repeating: "9", count: 5000), nil),
        ] as [(String, Int64?)])
    func integers(text: String, expected: Int64?) throws {
        #expect(try Self.document(text).integer(0) == expected)
    }

    @Test("finds what ends or breaks a string at every place in it", arguments: 0..<20)
    func everyPlace(offset: Int) throws {
        let before = [UInt8](repeating: UInt8(ascii: "a"), count: offset)
        for after in [0, 1, 7, 8, 9].map({ [UInt8](repeating: UInt8(ascii: "z"), count: $0) }) {
            for byte in UInt8.min...UInt8.max {
                let text = [0x22] + before + [byte] + after + [0x22]
                let isPlain = 0x20..<0x80 ~= byte && byte != 0x22 && byte != 0x5C
                // A mark that ends the string early leaves something behind it, and a backslash
                // escapes a `z` or the last mark.
                let expected: JSONError? = isPlain ? nil : .syntax
                if Self.fault(text) != expected { Issue.record("\(byte) before \(after.count)") }
            }
            for (written, meant) in [("\\n", "\n"), ("\\u00e9", "é"), ("é", "é"), ("😀", "😀")] {
                let text = [0x22] + before + Array(written.utf8) + after + [0x22]
                let read = try JSONDocument(text).text(of: 0)
                #expect(read.map { Array($0.utf8) } == before + Array(meant.utf8) + after)
            }
        }
    }

    @Test(
        "T11: names of one length with the same ends are compared in full",
        arguments: [
            ("{\"axb\":1,\"ayb\":2}", nil), ("{\"axb\":1,\"axb\":2}", .duplicateName),
            ("{\"a\":1,\"b\":2,\"aa\":3}", nil), ("{\"a\":1,\"b\":2,\"a\":3}", .duplicateName),
            ("{\"a12345678b\":1,\"a12345679b\":2}", nil),
            ("{\"a12345678b\":1,\"c\":[{}],\"a1234\\u00356\\u00378b\":2}", .duplicateName),
            ("{\"\":1,\"\\u0000\":2}", nil), ("{\"a\\u0000\":1,\"a\":2}", nil),
        ] as [(String, JSONError?)])
    func sameEnds(text: String, expected: JSONError?) {
        #expect(Self.fault(text) == expected)
    }

    @Test("goes back to the right container when several end at once")
    func endings() throws {
        let document = try Self.document("[{\"a\":[[{}],{\"b\":[]}],\"c\":1},[2],3]")
        #expect(
            document.elements(of: 0).map { document.kind(of: $0) } == [.object, .array, .number])
        let inner = try #require(document.member("a", of: 1))
        #expect(document.elements(of: inner).map { document.count(of: $0) } == [1, 1])
        #expect(document.member("c", of: 1).flatMap { document.integer($0) } == 1)
        for text in ["[{]}", "{\"a\":[}]", "[[]", "[]]", "{\"a\":{}", "{}}", "[{}}", "{\"a\":1]"] {
            #expect(Self.fault(text) == .syntax)
        }
    }
}
