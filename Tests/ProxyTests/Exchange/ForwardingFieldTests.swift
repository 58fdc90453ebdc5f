import Configuration
import Policy
import Testing

@testable import Proxy

/// The table of the README about who is forwarded for.
@Suite("Whom a request is forwarded for")
struct ForwardingFieldTests {
    private static let trusted = ["127.0.0.0/8", "10.0.0.0/8", "2001:db8:1::/48"]

    private func rig(
        _ fields: ForwardingFields = .xForwarded, isTrusted: Bool = true, sends: Bool = false
    ) throws -> RequestHeadRig {
        var rig = RequestHeadRig()
        if isTrusted { rig.trustedProxies = try Self.trusted.map { try #require(IPNetwork($0)) } }
        rig.forwardingFields = fields
        rig.sendsForwarded = sends
        return rig
    }

    private func request(_ fields: [String]) -> String {
        (["GET / HTTP/1.1", "Host: api.example:8080"] + fields).joined(separator: "\r\n")
            + "\r\n\r\n"
    }

    /// The forwarding fields of a head, in its order.
    private func forwarding(_ head: String) -> [String] {
        head.split(separator: "\r\n").map(String.init).filter {
            $0.lowercased().hasPrefix("x-forwarded-") || $0.lowercased().hasPrefix("forwarded")
        }
    }

    private static let own = [
        "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http",
        "X-Forwarded-Host: api.example:8080",
    ]
    private static let ownForwarded =
        "Forwarded: for=127.0.0.1;host=\"api.example:8080\";proto=http"

    @Test(
        "H6: a stranger's word is replaced, in whichever field",
        arguments: [ForwardingFields.xForwarded, .forwarded], [true, false])
    func stranger(fields: ForwardingFields, sends: Bool) async throws {
        let result = try await rig(fields, isTrusted: false, sends: sends).forward(
            request([
                "X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https",
                "X-Forwarded-Host: evil.example", "Forwarded: for=203.0.113.9;proto=https",
                "forwarded: for=203.0.113.9", "Connection: forwarded, x-forwarded-for",
            ]))
        #expect(forwarding(result.head) == Self.own + (sends ? [Self.ownForwarded] : []))
        #expect(result.client == "127.0.0.1")
        #expect(result.loggedClient == "127.0.0.1")
        #expect(result.loggedPeer == "")
    }

    @Test(
        "H6: of a trusted proxy the fields count that it is known to write, and the others are gone",
        arguments: [
            (ForwardingFields.xForwarded, "203.0.113.9", "203.0.113.9", "https", "a.example"),
            (.forwarded, "198.51.100.4", "198.51.100.4", "http", "b.example"),
        ])
    func disagreement(
        fields: ForwardingFields, client: String, chain: String, scheme: String, host: String
    ) async throws {
        let result = try await rig(fields).forward(
            request([
                "X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https",
                "X-Forwarded-Host: a.example",
                "Forwarded: for=198.51.100.4;proto=http;host=b.example",
            ]))
        #expect(
            forwarding(result.head) == [
                "X-Forwarded-For: \(chain), 127.0.0.1", "X-Forwarded-Proto: \(scheme)",
                "X-Forwarded-Host: \(host)",
            ])
        #expect(result.client == client)
        #expect(result.loggedClient == client)
        #expect(result.loggedPeer == "127.0.0.1")
    }

    @Test(
        "H6: the other fields alone say nothing",
        arguments: [ForwardingFields.xForwarded, .forwarded])
    func otherFieldsAlone(fields: ForwardingFields) async throws {
        let line =
            fields == .forwarded ? "X-Forwarded-For: 203.0.113.9" : "Forwarded: for=203.0.113.9"
        let result = try await rig(fields).forward(request([line]))
        #expect(forwarding(result.head) == Self.own)
        #expect(result.client == "127.0.0.1")
    }

    @Test(
        "H6: the client is the rightmost address that is no trusted proxy's",
        arguments: [
            ("203.0.113.9", "203.0.113.9"), ("6.6.6.6, 203.0.113.9, 10.0.0.1", "203.0.113.9"),
            ("203.0.113.9:4711, 10.1.1.1:80", "203.0.113.9"),
            ("[2001:db8:2::9]:4711 , [2001:db8:1::1]", "2001:db8:2::9"),
            ("2001:db8:2::9,2001:db8:1::1", "2001:db8:2::9"),
            ("10.0.0.2, 10.0.0.1", "10.0.0.2"), ("6.6.6.6, unknown, 10.0.0.1", "10.0.0.1"),
            ("6.6.6.6, nonsense, 10.0.0.1", "10.0.0.1"), ("6.6.6.6,,10.0.0.1", "10.0.0.1"),
            ("nonsense", "127.0.0.1"), ("203.0.113.9,", "127.0.0.1"), ("", "127.0.0.1"),
        ])
    func chain(value: String, client: String) async throws {
        let result = try await rig().forward(request(["X-Forwarded-For: \(value)"]))
        #expect(result.client == client)
        #expect(result.loggedClient == client)
    }

    @Test(
        "H6: Forwarded is walked alike, and tells scheme and host of the same hop",
        arguments: [
            (
                "for=6.6.6.6;proto=gopher;host=evil.example, "
                    + "for=203.0.113.9;proto=HTTPS;host=\"a.example:8443\", for=10.0.0.1;proto=http",
                "203.0.113.9", "6.6.6.6, 203.0.113.9, 10.0.0.1, 127.0.0.1", "https",
                "a.example:8443"
            ),
            (
                "for=6.6.6.6;proto=gopher, for=_hidden;proto=https, for=10.0.0.1", "10.0.0.1",
                "6.6.6.6, unknown, 10.0.0.1, 127.0.0.1", "https", "api.example:8080"
            ),
            (
                "for=\"[2001:db8:2::9]:80\"", "2001:db8:2::9", "2001:db8:2::9, 127.0.0.1", "http",
                "api.example:8080"
            ),
            (
                "for=6.6.6.6, proto=https", "127.0.0.1", "6.6.6.6, unknown, 127.0.0.1", "https",
                "api.example:8080"
            ),
            ("", "127.0.0.1", "127.0.0.1", "http", "api.example:8080"),
        ])
    func forwarded(value: String, client: String, chain: String, scheme: String, host: String)
        async throws
    {
        let result = try await rig(.forwarded).forward(request(["Forwarded: \(value)"]))
        #expect(
            forwarding(result.head) == [
                "X-Forwarded-For: \(chain)", "X-Forwarded-Proto: \(scheme)",
                "X-Forwarded-Host: \(host)",
            ])
        #expect(result.client == client)
        #expect(!result.isForwardedMalformed)
    }

    @Test("a Forwarded that is none is not believed, not passed on, and counted")
    func malformed() async throws {
        let result = try await rig(.forwarded, sends: true).forward(
            request(["Forwarded: for=203.0.113.9", "Forwarded: for=\"203.0.113.9"]))
        #expect(forwarding(result.head) == Self.own + [Self.ownForwarded])
        #expect(result.client == "127.0.0.1")
        #expect(result.isForwardedMalformed)
    }

    @Test("RFC 7239: a backend that wants it gets Forwarded, continued from either kind of fields")
    func sent() async throws {
        let continued = try await rig(.forwarded, sends: true).forward(
            request(["Forwarded: for=_x;secret=\"a, b\"", "Forwarded: for=203.0.113.9;proto=https"])
        )
        #expect(
            forwarding(continued.head).last
                == "Forwarded: for=_x;secret=\"a, b\", for=203.0.113.9;proto=https, "
                + "for=127.0.0.1;host=\"api.example:8080\";proto=http")
        let translated = try await rig(sends: true).forward(
            request([
                "X-Forwarded-For: nonsense, 2001:db8:2::9", "X-Forwarded-For: 203.0.113.9:1",
                "X-Forwarded-Proto: https", "X-Forwarded-Host: a.example",
            ]))
        #expect(
            forwarding(translated.head).last
                == "Forwarded: for=unknown, for=\"[2001:db8:2::9]\", "
                + "for=203.0.113.9;host=\"a.example\";proto=https, "
                + "for=127.0.0.1;host=\"api.example:8080\";proto=http")
        let wrong = try await rig(sends: true).forward(
            request([
                "X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: a;b",
                "X-Forwarded-Host: a\"b",
            ]))
        #expect(
            forwarding(wrong.head).last
                == "Forwarded: for=203.0.113.9, for=127.0.0.1;host=\"api.example:8080\";proto=http")
    }

    @Test("a peer on a local socket hides no address, and is unknown where there is none")
    func localPeer() async throws {
        var local = try rig(sends: true)
        local.peer = nil
        let alone = try await local.forward(request([]))
        #expect(
            forwarding(alone.head) == [
                "X-Forwarded-For: unix", "X-Forwarded-Proto: http",
                "X-Forwarded-Host: api.example:8080",
                "Forwarded: for=unknown;host=\"api.example:8080\";proto=http",
            ])
        #expect(alone.client == "none")
        let behind = try await local.forward(request(["X-Forwarded-For: 203.0.113.9"]))
        #expect(forwarding(behind.head).first == "X-Forwarded-For: 203.0.113.9")
        #expect(behind.client == "203.0.113.9")
        #expect(behind.loggedPeer == "unix")
    }

    // MARK: Behind a PROXY header

    private func client(_ text: String, isEncrypted: Bool = false) throws -> ProxyHeader {
        var header = ProxyHeader(origin: .client(try #require(IPAddress(text))), length: 28)
        header.isEncrypted = isEncrypted
        return header
    }

    @Test(
        "O4, H6: behind a PROXY header the client is the one that it names, and no more than that")
    func namedClient() async throws {
        var rig = try rig(sends: true)
        rig.header = try client("2001:db8:2::9", isEncrypted: true)
        let result = try await rig.forward(
            request([
                "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: gopher", "X-Real-IP: 6.6.6.6",
                "X-Request-Id: chosen",
            ]))
        #expect(
            forwarding(result.head) == [
                "X-Forwarded-For: 2001:db8:2::9", "X-Forwarded-Proto: https",
                "X-Forwarded-Host: api.example:8080",
                "Forwarded: for=\"[2001:db8:2::9]\";host=\"api.example:8080\";proto=https",
            ])
        #expect(!result.head.contains("6.6.6.6") && !result.head.contains("chosen"))
        #expect(result.client == "2001:db8:2::9")
        #expect(result.loggedClient == "2001:db8:2::9")
        #expect(result.loggedPeer == "127.0.0.1")
    }

    @Test("a PROXY header that names a trusted proxy has that one's fields believed")
    func namedProxy() async throws {
        var rig = try rig()
        rig.header = try client("10.0.0.9")
        let result = try await rig.forward(request(["X-Forwarded-For: 203.0.113.9"]))
        #expect(forwarding(result.head).first == "X-Forwarded-For: 203.0.113.9, 10.0.0.9")
        #expect(result.client == "203.0.113.9")
        #expect(result.loggedPeer == "127.0.0.1")
    }

    @Test("H6: a PROXY header that names nobody has nobody's fields believed")
    func namedNobody() async throws {
        var rig = try rig()
        rig.header = ProxyHeader(origin: .unknown, length: 15)
        let result = try await rig.forward(request(["X-Forwarded-For: 203.0.113.9"]))
        #expect(forwarding(result.head) == Self.own)
        #expect(result.client == "127.0.0.1")
        rig.header = ProxyHeader(origin: .balancer, length: 16)
        let own = try await rig.forward(request(["X-Forwarded-For: 203.0.113.9"]))
        #expect(own.client == "203.0.113.9")
    }
}
