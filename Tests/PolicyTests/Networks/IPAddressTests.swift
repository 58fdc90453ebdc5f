import Policy
import Testing

@Suite("IP addresses and networks")
struct IPAddressTests {
    @Test(
        "reads and writes the canonical text of RFC 5952",
        arguments: [
            ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
            ("192.0.2.7", "192.0.2.7"),
            ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8::7", "2001:db8::7"),
            ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("2001:0db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("::ffff:192.0.2.7", "192.0.2.7"), ("::ffff:c000:207", "192.0.2.7"),
            ("::fffe:192.0.2.7", "::fffe:c000:207"),
            ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("fe80::1:0:0:0", "fe80::1:0:0:0"),
        ])
    func canonicalText(text: String, canonical: String) throws {
        #expect(try #require(IPAddress(text)).text == canonical)
    }

    @Test(
        "refuses what is not an address",
        arguments: [
            "", ".", "1", "1.2.3", "1.2.3.4.", "1.2.3.4.5", ".1.2.3.4", "256.0.0.1", "01.2.3.4",
            "1.2.3.04",
            "1..2.3", "0x1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.1000", "+1.2.3.4", ":", ":::",
            "1:", ":1",
            "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::", "g::",
            "fe80::1%eth0", "[::1]", "::1:", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "1.2.3.4::",
            "::1.2.3.4:5",
            "1:2:3:4:5:6:7:8/64", "localhost", "::ffff:999.0.0.1",
            "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa",
        ])
    func refused(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("takes 4 or 16 bytes in network order")
    func bytes() throws {
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7]
        let long = Array(UInt8(1)...16)
        #expect(IPAddress(octets: [192, 0, 2, 7])?.text == "192.0.2.7")
        #expect(IPAddress(octets: mapped)?.bytes == [192, 0, 2, 7])
        #expect(IPAddress(octets: long)?.text == "102:304:506:708:90a:b0c:d0e:f10")
        #expect(IPAddress(octets: long)?.bytes == long)
        #expect(IPAddress(octets: [1, 2, 3]) == nil)
    }

    @Test(
        "a network contains exactly its addresses",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("::ffff:10.0.0.0/104", "10.9.9.9", true),
            ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true), ("::/0", "10.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false), ("192.0.2.128/25", "192.0.2.127", false),
            ("192.0.2.128/25", "192.0.2.128", true), ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false), ("2001:db8::/63", "2001:db8:0:1::9", true),
            ("2001:db8::/65", "2001:db8::8000:0:0:0", false), ("2001:db8::1", "2001:db8::1", true),
            ("2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff", true),
        ])
    func contains(network: String, address: String, isInside: Bool) throws {
        let network = try #require(IPNetwork(network))
        let address = try #require(IPAddress(address))
        #expect(network.contains(address) == isInside)
        #expect(network.contains(address.bytes) == isInside)
    }

    @Test("a network has its bytes and its prefix in its own family")
    func parts() throws {
        let network = try #require(IPNetwork("::ffff:10.0.0.0/104"))
        #expect(network == IPNetwork("10.0.0.0/8"))
        #expect(network.bytes == [10, 0, 0, 0])
        #expect(network.prefix == 8)
        #expect(IPNetwork("2001:db8::")?.prefix == 128)
        #expect(!network.contains([10, 0, 0]))
    }

    @Test(
        "refuses what is not a network, and bits behind the prefix",
        arguments: [
            "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/8/8",
            "10.0.0.1/8",
            "2001:db8::1/64", "2001:db8::/129", "::/+1", "10.0.0.0/8 ", "example.com",
            "::ffff:0:0/80",
            "10.0.0.0/1000", "10/8",
        ])
    func refusedNetworks(text: String) {
        #expect(IPNetwork(text) == nil)
    }

    @Test(
        "M2: a client is its IPv4 address, or the /64 network of its IPv6 address",
        arguments: [
            ("203.0.113.7", "203.0.113.7"), ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:0:7:1:2:3:4", "2001:db8:0:7::/64"),
            ("2001:db8:0:7:ffff::", "2001:db8:0:7::/64"),
            ("::1", "::/64"),
        ])
    func shareKey(text: String, key: String) throws {
        var bytes: [UInt8] = []
        try #require(IPAddress(text)).appendShareKey(to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self) == key)
    }
}

extension IPAddress {
    fileprivate init?(octets: [UInt8]) { self.init(bytes: octets.span) }

    fileprivate var text: String {
        var bytes: [UInt8] = []
        appendText(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
