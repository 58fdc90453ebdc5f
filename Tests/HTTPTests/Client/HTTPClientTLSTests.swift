import HTTP
import Reactor
import TLS
import TestKit
import Testing

@Suite("HTTP client over TLS")
struct HTTPClientTLSTests {
    let folder: TemporaryFolder
    let mint: CertificateMint
    let context: TLSContext

    init() throws {
        folder = try TemporaryFolder()
        mint = try CertificateMint(in: folder)
        let identity = try mint.issue(["DNS:localhost", "DNS:keys.example.com"])
        context = try .server(certificate: identity.certificate, key: identity.key)
    }

    private func get(
        _ url: String, trust: TLSTrust? = nil, proxy: HTTPEndpoint? = nil
    ) async throws -> HTTPResponse {
        var request = HTTPGetRequest(try HTTPURL(url), deadline: .now.advanced(by: .seconds(5)))
        request.trust = trust ?? .certificates(inFile: mint.file)
        request.egressProxy = proxy
        let final = request
        return try await TestLoop().run { resident in
            try await HTTPClient(loop: resident.loop, version: "1.2.3").get(final)
        }
    }

    private func failure(
        _ url: String, trust: TLSTrust? = nil, proxy: HTTPEndpoint? = nil
    ) async throws -> HTTPClientError {
        try #require(
            await #expect(throws: HTTPClientError.self) {
                _ = try await get(url, trust: trust, proxy: proxy)
            })
    }

    @Test("gets a document from a host that it can trust")
    func success() async throws {
        let server = try await ScriptedServer.start(context) { _, _ in .ok("{}") }
        let response = try await get("https://localhost:\(server.port)/jwks")
        #expect(response.body == Array("{}".utf8))
        let requests = await server.requests
        #expect(requests.first?.contains("Host: localhost:\(server.port)\r\n") == true)
    }

    @Test("names the host and the certificate's fault, and sends nothing")
    func wrongHost() async throws {
        let server = try await ScriptedServer.start(context) { _, _ in .ok("{}") }
        let error = try await failure("https://127.0.0.1:\(server.port)/jwks")
        #expect(error.phase == .tls)
        #expect(
            error.description
                == "starting TLS with 127.0.0.1:\(server.port): IP address mismatch: "
                + "certificate is for localhost, keys.example.com")
        #expect(await server.requests.isEmpty)
    }

    @Test("names the file of trusted certificates that is not there")
    func missingTrustFile() async throws {
        let server = try await ScriptedServer.start(context) { _, _ in .ok("{}") }
        let path = folder.path(of: "missing.pem")
        let error = try await failure(
            "https://localhost:\(server.port)/", trust: .certificates(inFile: path))
        #expect(error.phase == .tls)
        #expect(error.reason == "cannot read \(path): No such file or directory")
    }

    @Test("content that ends with the connection must end with close_notify")
    func cutContent() async throws {
        let server = try await ScriptedServer.start(context) { _, _ in
            .init("HTTP/1.1 200 OK\r\n\r\nhello", then: .cut)
        }
        let error = try await failure("https://localhost:\(server.port)/")
        #expect(error.phase == .body)
        #expect(
            error.reason
                == "the peer closed the connection in the middle of the transfer")
    }

    @Test("goes through the egress proxy to a host that only that one can reach")
    func tunnel() async throws {
        let context = context
        let proxy = try await ScriptedServer.start { _, index in
            index == 0
                ? .init("HTTP/1.1 200 Connection established\r\n\r\n", then: .startTLS(context))
                : .ok("{\"keys\":[]}")
        }
        let response = try await get(
            "https://keys.example.com/jwks", proxy: .tcp(host: "127.0.0.1", port: proxy.port))
        #expect(response.body == Array("{\"keys\":[]}".utf8))
        let requests = await proxy.requests
        #expect(
            requests.first
                == "CONNECT keys.example.com:443 HTTP/1.1\r\nHost: keys.example.com:443\r\n"
                + "User-Agent: portcullis/1.2.3\r\n\r\n")
        #expect(
            requests.last?.hasPrefix("GET /jwks HTTP/1.1\r\nHost: keys.example.com\r\n") == true)
    }

    @Test("checks the certificate behind the egress proxy too")
    func tunnelToStranger() async throws {
        let context = context
        let proxy = try await ScriptedServer.start { _, _ in
            .init("HTTP/1.1 200 OK\r\n\r\n", then: .startTLS(context))
        }
        let error = try await failure(
            "https://other.example.com/jwks", proxy: .tcp(host: "127.0.0.1", port: proxy.port))
        #expect(error.phase == .tls)
        #expect(error.host == "other.example.com:443")
        #expect(await proxy.requests.count == 1)
    }

    @Test("says what the egress proxy answered", arguments: [403, 407, 502] as [UInt16])
    func refusingProxy(status: UInt16) async throws {
        let proxy = try await ScriptedServer.start { _, _ in
            .init("HTTP/1.1 \(status) No\r\nContent-Length: 4\r\n\r\nnope")
        }
        let error = try await failure(
            "https://keys.example.com/", proxy: .tcp(host: "127.0.0.1", port: proxy.port))
        #expect(error.phase == .proxy)
        #expect(error.status == status)
        #expect(
            error.description.hasPrefix(
                "asking for a tunnel at egress proxy 127.0.0.1:\(proxy.port): "
                    + "it answered \(status) to CONNECT keys.example.com:443; "))
    }

    @Test("reaches an egress proxy by its path")
    func localProxy() async throws {
        let context = context
        let path = folder.path(of: "proxy.sock")
        let proxy = try await ScriptedServer.start(
            address: SocketAddress(unixPath: path)
        ) { _, index in
            index == 0 ? .init("HTTP/1.1 200 OK\r\n\r\n", then: .startTLS(context)) : .ok("{}")
        }
        let response = try await get("https://keys.example.com/", proxy: .unix(path: path))
        #expect(response.body == Array("{}".utf8))
        #expect(await proxy.requests.count == 2)
    }

    @Test("an egress proxy that is not there is named")
    func missingProxy() async throws {
        let path = folder.path(of: "nobody.sock")
        let error = try await failure("https://keys.example.com/", proxy: .unix(path: path))
        #expect(error.phase == .connect)
        #expect(error.host == "unix:\(path)")
        #expect(error.reason.contains("No such file or directory"))
    }
}
