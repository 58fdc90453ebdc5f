import Policy
import Testing

@Suite("Forwarded")
struct ForwardedTests {
    private func parse(_ lines: String...) -> [ForwardedField.Element]? {
        var field = ForwardedField()
        for line in lines {
            guard (try? field.append(line: Array(line.utf8).span)) != nil else { return nil }
        }
        return field.elements
    }

    /// An element as text: "for proto host", with "-" for what is not there.
    private func describe(_ element: ForwardedField.Element) -> String {
        let node: String
        switch element.node {
        case .address(let address):
            var text: [UInt8] = []
            address.appendText(to: &text)
            node = String(decoding: text, as: UTF8.self)
        case .withheld: node = "withheld"
        case nil: node = "-"
        }
        let words = [element.scheme, element.host].map { String(decoding: $0, as: UTF8.self) }
        return ([node] + words.map { $0.isEmpty ? "-" : $0 }).joined(separator: " ")
    }

    @Test(
        "RFC 7239: elements are read in their order",
        arguments: [
            ("for=192.0.2.43", ["192.0.2.43 - -"]),
            (
                "for=192.0.2.43, for=\"[2001:db8:cafe::17]:4711\"",
                ["192.0.2.43 - -", "2001:db8:cafe::17 - -"]
            ),
            (
                "For=\"192.0.2.43:47011\";Proto=HTTPS;By=203.0.113.43;Host=\"a.example:8443\"",
                ["192.0.2.43 https a.example:8443"]
            ),
            ("for=unknown", ["withheld - -"]), ("for=\"_gazonk\"", ["withheld - -"]),
            ("for=_SEVKISEK;secret=\"a;b,c=\\\"d\"", ["withheld - -"]),
            ("for=\"unknown:_p\"", ["withheld - -"]), ("proto=http", ["- http -"]),
            ("for=192.0.2.1;;proto=http;", ["192.0.2.1 http -"]),
            ("for=192.0.2.1; proto=http", ["192.0.2.1 http -"]),
            (" , for=192.0.2.1 ,, for=192.0.2.2 , ", ["192.0.2.1 - -", "192.0.2.2 - -"]),
            ("", []), (" ,\t, ", []), (";", ["- - -"]), ("for=\"1\\92.0.2.1\"", ["192.0.2.1 - -"]),
        ])
    func reads(line: String, expected: [String]) throws {
        #expect(try #require(parse(line)).map(describe) == expected)
    }

    @Test("lines are one list")
    func lines() throws {
        let elements = try #require(parse("for=192.0.2.1", "for=192.0.2.2;proto=https"))
        #expect(elements.map(describe) == ["192.0.2.1 - -", "192.0.2.2 https -"])
    }

    @Test(
        "what does not follow the grammar is worth nothing",
        arguments: [
            "for", "for=", "=192.0.2.1", "for=\"\"", "for =192.0.2.1", "for= 192.0.2.1",
            "for=192.0.2.1 ;proto=http", "for=192.0.2.1 proto=http", "for=192.0.2.1:80",
            "for=[2001:db8::1]", "for=2001:db8::1", "for=\"192.0.2.1", "for=\"192.0.2.1\\",
            "for=192.0.2.1;for=192.0.2.2", "for=192.0.2.1;FOR=192.0.2.1", "for=example.com",
            "for=192.0.2.01", "for=192.0.2.256", "for=\"[192.0.2.1]\"", "for=\"[::1\"",
            "for=\"[::1]80\"", "for=\"[::1]:\"", "for=\"[::1]:123456\"", "for=_", "for=\"_a b\"",
            "for=192.0.2.1;proto=\"ht tp\"", "for=192.0.2.1;proto=4",
            "for=192.0.2.1;host=\"a b\"", "for=192.0.2.1;host=\"a/b\"", "by=nobody",
            "for=192.0.2.1;x", "for=192.0.2.1, @", "for=192.0.2.1\"a\"", "for=\"192.0.2.1\"x",
        ])
    func refuses(line: String) {
        #expect(parse(line) == nil)
        #expect(parse("for=192.0.2.9", line) == nil)
    }

    @Test("H6: an element has 16 pairs at most, and a field any number of elements")
    func pairs() throws {
        let pairs = (1..<16).map { "x\($0)=1" }.joined(separator: ";")
        let longest = "for=192.0.2.1;\(pairs)"
        let elements = try #require(parse("\(longest), \(longest)"))
        #expect(elements.map(describe) == ["192.0.2.1 - -", "192.0.2.1 - -"])
        #expect(parse("\(longest);x16=1") == nil)
    }

    @Test(
        "an entry of X-Forwarded-For may have a port, and IPv6 no brackets",
        arguments: [
            ("192.0.2.7", "192.0.2.7"), ("192.0.2.7:4711", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]", "2001:db8::7"),
            ("[2001:db8::7]:4711", "2001:db8::7"), ("::ffff:192.0.2.7", "192.0.2.7"),
        ])
    func nodes(text: String, address: String) throws {
        let expected = ForwardedNode.address(try #require(IPAddress(address)))
        #expect(ForwardedNode(text: Array(text.utf8).span) == expected)
    }

    @Test(
        "and is nobody otherwise",
        arguments: [
            "", ":", "192.0.2.7:", "192.0.2.7:x", "192.0.2.7:4711:1", "[]", "[]:1", "localhost",
            "localhost:1", "[2001:db8::7]4711", "2001:db8::7%eth0", "[::ffff:192.0.2.7]",
        ])
    func noNodes(text: String) {
        #expect(ForwardedNode(text: Array(text.utf8).span) == nil)
    }
}
