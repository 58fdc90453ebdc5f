import Testing

@testable import Attestation

@Suite("Short names")
struct ShortNameTests {
    /// The names of up to eight bytes in the root of a document.
    static func names(_ text: String) throws -> [ShortName] {
        var names: [ShortName] = []
        try JSONDocument(Array(text.utf8)).forEachShortMember { name, _ in names.append(name) }
        return names
    }

    @Test("are the characters of a name, wherever it stands in the text")
    func places() throws {
        let expected = [
            ShortName(""), ShortName("a"), ShortName("iss"), ShortName("crit"),
            ShortName("provide"), ShortName("provider"),
        ]
        let members = ["", "a", "iss", "crit", "provide", "provider"].map { "\"\($0)\":0" }
        for count in 0...members.count {
            let text = "{" + members[..<count].joined(separator: ",") + "}"
            #expect(try Self.names(text) == Array(expected[..<count]))
            // The name is among the last bytes of the text, and then it is not.
            for member in members {
                let short = try Self.names("{\(member)}")
                #expect(try Self.names("{\(member)}          ") == short)
                #expect(expected.contains(short[0]))
            }
        }
    }

    @Test(
        "are not what only looks like them",
        arguments: ["is", "isz", "Iss", "iss\\u0000", "\\u0000iss", "iss ", "ssi", "i\\u0000s", ""])
    func others(name: String) throws {
        #expect(try Self.names("{\"\(name)\":0}") != [ShortName("iss")])
        #expect(try Self.names("{\"\(name)\":0}        ") != [ShortName("iss")])
    }

    @Test("are the resolved characters of an escaped name")
    func escapes() throws {
        #expect(try Self.names("{\"i\\u0073s\":0}") == [ShortName("iss")])
        #expect(try Self.names("{\"pro\\u0076ider\":0}") == [ShortName("provider")])
    }

    @Test("leave out longer names, and what is no member of the root")
    func longer() throws {
        #expect(try Self.names("{\"providers\":{\"iss\":0},\"a\":0}") == [ShortName("a")])
        #expect(try Self.names("[\"iss\",0]") == [])
        #expect(try Self.names("\"iss\"") == [])
    }
}
