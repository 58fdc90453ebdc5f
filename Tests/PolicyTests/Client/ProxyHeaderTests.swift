import Policy
import TestKit
import Testing

@Suite("The header of the PROXY protocol")
struct ProxyHeaderTests {
    private typealias Outcome = Result<ProxyHeader?, ProxyHeaderError>

    private static func client(_ text: String) throws -> ProxyHeader.Origin {
        .client(try #require(IPAddress(text)))
    }

    /// What the parser says, having made sure that it says so wherever the bytes are cut.
    private func parse(_ bytes: [UInt8]) -> Outcome {
        #expect(ProxyHeaderInvariants.violation(of: bytes) == nil)
        return ProxyHeaderInvariants.outcome(bytes)
    }

    private func parse(_ text: String) -> Outcome { parse(Array(text.utf8)) }

    // MARK: Version 1

    @Test(
        "O4: a line of text names the client, and what follows it is left alone",
        arguments: [
            ("PROXY TCP4 203.0.113.7 192.0.2.1 56324 443", "203.0.113.7"),
            ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535", "255.255.255.255"),
            ("PROXY TCP4 0.0.0.0 0.0.0.0 0 0", "0.0.0.0"),
            ("PROXY TCP6 2001:db8::7 2001:db8::1 1 2", "2001:db8::7"),
            ("PROXY TCP6 2001:DB8::A ::1 1 2", "2001:db8::a"),
            ("PROXY TCP6 ::ffff:203.0.113.7 ::ffff:192.0.2.1 1 2", "203.0.113.7"),
            (
                "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                    + "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
            ),
        ])
    func text(line: String, address: String) throws {
        let outcome = parse(line + "\r\nGET / HTTP/1.1\r\n\r\n")
        #expect(
            try outcome.get()
                == ProxyHeader(origin: Self.client(address), length: line.utf8.count + 2))
    }

    @Test(
        "a line may say that the client is not known",
        arguments: [
            "PROXY UNKNOWN", "PROXY UNKNOWN ", "PROXY UNKNOWN \0\u{1} anything",
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                + "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
        ])
    func unknown(line: String) throws {
        let outcome = parse(line + "\r\nPROXY")
        #expect(
            try outcome.get() == ProxyHeader(origin: .unknown, length: line.utf8.count + 2))
    }

    @Test(
        "O4: a line with any mistake is none",
        arguments: [
            ("PROXY TCP4 203.0.113.7 192.0.2.1 1 2\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 1\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 1 2 3\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 1 2 \r\n", .address),
            ("PROXY TCP4  203.0.113.7 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 203.0.113.7\t192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 203.0.113.07 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 203.0.113 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 203.0.113.256 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 2001:db8::7 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 ::ffff:203.0.113.7 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP4 203.0.113.7 2001:db8::1 1 2\r\n", .address),
            ("PROXY TCP6 203.0.113.7 192.0.2.1 1 2\r\n", .address),
            ("PROXY TCP6 [2001:db8::7] ::1 1 2\r\n", .address),
            ("PROXY TCP6 2001:db8::7%eth0 ::1 1 2\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 65536 2\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 01 2\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 -1 2\r\n", .address),
            ("PROXY TCP4 203.0.113.7 192.0.2.1 1 999999999999999999999\r\n", .address),
            ("PROXY TCP4\r\n", .address), ("PROXY TCP5 a b c d\r\n", .family),
            ("PROXY UDP4 203.0.113.7 192.0.2.1 1 2\r\n", .family),
            ("PROXY tcp4 203.0.113.7 192.0.2.1 1 2\r\n", .family),
            ("PROXY UNKNOWNX\r\n", .family), ("PROXY unknown\r\n", .family),
            ("PROXY \r\n", .family), ("PROXY  TCP4 203.0.113.7 192.0.2.1 1 2\r\n", .family),
            ("PROXY\r\n", .signature), ("proxy UNKNOWN\r\n", .signature),
            (" PROXY UNKNOWN\r\n", .signature), ("GET / HTTP/1.1\r\n", .signature),
            ("POST", .signature), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .signature),
            ("\u{16}\u{3}\u{1}", .signature),
        ] as [(String, ProxyHeaderError)])
    func badText(line: String, error: ProxyHeaderError) {
        #expect(parse(line) == .failure(error))
    }

    @Test("a line has 107 bytes at most")
    func longText() {
        let line = "PROXY UNKNOWN "
        let longest = line + String(repeating: "x", count: 105 - line.utf8.count)
        #expect(parse(longest + "\r\n") == .success(ProxyHeader(origin: .unknown, length: 107)))
        #expect(parse(longest + "x\r\n") == .failure(.tooLong))
        #expect(parse(longest + "xx") == .failure(.tooLong))
    }

    @Test("what has begun like a header is waited for")
    func incomplete() {
        for text in ["", "P", "PROXY", "PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r", "\r\n\r\n\0"] {
            #expect(parse(text) == .success(nil))
        }
    }

    // MARK: Version 2

    private static let signature = Array("\r\n\r\n\0\r\nQUIT\n".utf8)

    private func binary(
        command: UInt8 = 0x21, family: UInt8, _ block: [UInt8], length: Int? = nil
    ) -> [UInt8] {
        let length = length ?? block.count
        return Self.signature
            + [command, family, UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)] + block
    }

    private static let ipv4: [UInt8] = [203, 0, 113, 7, 192, 0, 2, 1, 0x10, 0, 1, 187]
    private static let ipv6 =
        [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [7]
        + [UInt8](repeating: 1, count: 16) + [0x10, 0, 1, 187]

    private func attribute(_ type: UInt8, _ value: [UInt8]) -> [UInt8] {
        [type, UInt8(value.count >> 8), UInt8(value.count & 0xFF)] + value
    }

    @Test("O4: addresses in binary name the client, whatever the transport")
    func addresses() throws {
        for family: UInt8 in [0x11, 0x12] {
            let header = try parse(binary(family: family, Self.ipv4) + [1, 2, 3]).get()
            #expect(header == ProxyHeader(origin: try Self.client("203.0.113.7"), length: 28))
        }
        for family: UInt8 in [0x21, 0x22] {
            let header = try parse(binary(family: family, Self.ipv6) + [1, 2, 3]).get()
            #expect(header == ProxyHeader(origin: try Self.client("2001:db8::7"), length: 52))
        }
    }

    @Test("a local command is the balancer's own connection, whatever stands behind it")
    func local() {
        for family: UInt8 in [0x00, 0x11, 0x21, 0x31] {
            for block in [[], [1, 2, 3], Self.ipv4] as [[UInt8]] {
                let bytes = binary(command: 0x20, family: family, block)
                #expect(
                    parse(bytes)
                        == .success(ProxyHeader(origin: .balancer, length: bytes.count)))
            }
        }
    }

    @Test("a client without an address is not the balancer")
    func unknownAddresses() {
        let local = [UInt8](repeating: 65, count: 216)
        for (family, block) in [
            (0x00, []), (0x01, [1, 2, 3]), (0x10, Self.ipv4), (0x20, Self.ipv6), (0x31, local),
            (0x32, local), (0x30, local),
        ] as [(UInt8, [UInt8])] {
            let bytes = binary(family: family, block)
            #expect(
                parse(bytes) == .success(ProxyHeader(origin: .unknown, length: bytes.count)))
        }
    }

    @Test("what version 2 does not have is refused at its byte")
    func unsupported() {
        for command: UInt8 in [0x01, 0x11, 0x31, 0x22, 0x2F, 0xFF] {
            #expect(parse(Self.signature + [command]) == .failure(.version))
        }
        for family: UInt8 in [0x03, 0x13, 0x1F, 0x41, 0xF1] {
            #expect(parse(Self.signature + [0x21, family]) == .failure(.family))
            #expect(parse(Self.signature + [0x20, family]) == .failure(.family))
        }
        var broken = binary(family: 0x11, Self.ipv4)
        broken[11] = 0x0D
        #expect(parse(broken) == .failure(.signature))
    }

    @Test("a block that is too short for its addresses is refused")
    func shortBlock() {
        #expect(parse(binary(family: 0x11, Array(Self.ipv4.dropLast()))) == .failure(.address))
        #expect(parse(binary(family: 0x21, Self.ipv4)) == .failure(.address))
        #expect(parse(binary(family: 0x31, Self.ipv6)) == .failure(.address))
        #expect(parse(binary(family: 0x11, [])) == .failure(.address))
    }

    @Test("a header has 4,096 bytes at most, and a longer one is not waited for")
    func longBinary() throws {
        let room = 4096 - 16 - 12 - 3
        let full = binary(
            family: 0x11, Self.ipv4 + attribute(0x04, [UInt8](repeating: 0, count: room)))
        #expect(try parse(full).get()?.length == 4096)
        #expect(parse(binary(family: 0x11, [], length: 4081)) == .failure(.tooLong))
        #expect(parse(binary(command: 0x20, family: 0, [], length: 65535)) == .failure(.tooLong))
    }

    @Test("attributes that nobody asked for are skipped, and their lengths have to add up")
    func attributes() throws {
        let known =
            attribute(0x01, Array("h2".utf8)) + attribute(0x02, Array("evil.example".utf8))
            + attribute(0x04, []) + attribute(0x05, [1]) + attribute(0x30, [2])
            + attribute(0xE0, [UInt8](repeating: 7, count: 300)) + attribute(0xFF, [])
        let header = try #require(try parse(binary(family: 0x11, Self.ipv4 + known)).get())
        #expect(header.origin == (try Self.client("203.0.113.7")))
        #expect(!header.isEncrypted)
        for rest in [[4], [4, 0], [4, 0, 1], [4, 1, 0], [4, 0, 2, 1]] as [[UInt8]] {
            #expect(
                parse(binary(family: 0x11, Self.ipv4 + known + rest)) == .failure(.attribute))
        }
    }

    @Test("a balancer says whether the client's connection to it was encrypted")
    func encrypted() throws {
        let version = attribute(0x21, Array("TLSv1.3".utf8))
        for (flags, isEncrypted) in [(1, true), (7, true), (0, false), (6, false)] {
            let tls = attribute(0x20, [UInt8(flags), 0, 0, 0, 0] + version)
            let header = try parse(binary(family: 0x11, Self.ipv4 + tls)).get()
            #expect(header?.isEncrypted == isEncrypted)
        }
        #expect(
            parse(binary(family: 0x11, Self.ipv4 + attribute(0x20, [1, 0, 0, 0])))
                == .failure(.attribute))
    }

    @Test("a checksum has to be right, at each of its bytes and of those that it is for")
    func checksum() throws {
        // The sum is what Google's crc32c for Python says.
        let good = binary(
            family: 0x11,
            Self.ipv4 + attribute(0x03, [0xCB, 0x09, 0xE4, 0x14]) + attribute(0x04, [0]))
        #expect(try parse(good).get()?.origin == Self.client("203.0.113.7"))
        // The ports and the value of the padding are what no other rule is about.
        for index in [24, 25, 26, 27, 31, 32, 33, 34, good.count - 1] {
            var bad = good
            bad[index] ^= 0x10
            #expect(parse(bad) == .failure(.checksum), "byte \(index)")
        }
        for value in [[], [0], [0, 0, 0], [0, 0, 0, 0, 0]] as [[UInt8]] {
            #expect(
                parse(binary(family: 0x11, Self.ipv4 + attribute(0x03, value)))
                    == .failure(.attribute))
        }
    }

    @Test("no bytes whatever break it")
    func randomBytes() {
        var generator = SeededGenerator(seed: 4)
        let seeds = [
            binary(family: 0x11, Self.ipv4 + attribute(0x20, [1, 0, 0, 0, 0])),
            Array("PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\nGET".utf8),
        ]
        for round in 0..<4000 {
            var bytes = seeds[round % 2]
            for _ in 0...Int.random(in: 0...3, using: &generator) {
                let place = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
            }
            #expect(ProxyHeaderInvariants.violation(of: bytes) == nil)
        }
    }
}
