import HTTP
import Reactor
import TLS
import TestKit
import Testing

@Suite("HTTP client")
struct HTTPClientTests {
    private typealias Answer = ScriptedServer.Answer

    private func get(_ request: HTTPGetRequest) async throws -> HTTPResponse {
        try await TestLoop().run { resident in
            try await HTTPClient(loop: resident.loop, version: "1.2.3").get(request)
        }
    }

    private func request(
        _ port: UInt16, _ target: String = "/jwks", patience: Duration = .seconds(5)
    ) throws -> HTTPGetRequest {
        let url = try HTTPURL("http://127.0.0.1:\(port)\(target)")
        return HTTPGetRequest(url, deadline: .now.advanced(by: patience))
    }

    private func failure(_ answer: ScriptedServer.Answer?, patience: Duration = .seconds(5))
        async throws -> (error: HTTPClientError, host: String)
    {
        let server = try await ScriptedServer.start { _, _ in answer }
        let request = try request(server.port, patience: patience)
        let error = await #expect(throws: HTTPClientError.self) { _ = try await get(request) }
        return (try #require(error), "127.0.0.1:\(server.port)")
    }

    @Test(
        "takes a body whichever way it is delimited",
        arguments: [
            "Content-Length: 11\r\n\r\nhello world",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-T: 1\r\n\r\n",
            "\r\nhello world",
            "Content-Encoding: identity\r\nContent-Length: 11\r\n\r\nhello world and more",
        ])
    func framings(rest: String) async throws {
        let server = try await ScriptedServer.start { _, _ in .init("HTTP/1.1 200 OK\r\n\(rest)") }
        let response = try await get(try request(server.port))
        #expect(response.status == 200)
        #expect(String(decoding: response.body, as: UTF8.self) == "hello world")
    }

    @Test("asks for JSON, in plain encoding, on a connection of its own")
    func requestHead() async throws {
        let server = try await ScriptedServer.start { _, _ in .ok("{}") }
        var request = try request(server.port, "/v1/jwks?key=1")
        request.fields = [("X-Goog-Api-Key", "secret")]
        _ = try await get(request)
        #expect(
            await server.requests == [
                "GET /v1/jwks?key=1 HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"
                    + "User-Agent: portcullis/1.2.3\r\nAccept: application/json\r\n"
                    + "Accept-Encoding: identity\r\nConnection: close\r\n"
                    + "X-Goog-Api-Key: secret\r\n\r\n"
            ])
    }

    @Test("passes over interim answers and joins repeated fields")
    func interimAnswer() async throws {
        let server = try await ScriptedServer.start { _, _ in
            .init(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n"
                    + "Cache-Control: public\r\ncache-control: max-age=60\r\nETag: \"a\"\r\n"
                    + "Content-Length: 2\r\n\r\n{}")
        }
        let response = try await get(try request(server.port))
        #expect(response.value(of: "cache-control") == "public, max-age=60")
        #expect(response.value(of: "etag") == "\"a\"")
        #expect(response.value(of: "link") == nil)
    }

    @Test(
        "an answer that is cut off is an error, never a shorter document",
        arguments: [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello world",
                HTTPClientError.Phase.body
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .body),
            ("HTTP/1.1 200 OK\r\nContent-Le", .receive), ("", .receive),
        ])
    func truncation(text: String, phase: HTTPClientError.Phase) async throws {
        let (error, host) = try await failure(.init(text))
        #expect(error.phase == phase)
        #expect(error.host == host)
        #expect(error.reason == "the connection was closed too early")
    }

    @Test(
        "a status other than 200 is an error that names it",
        arguments: [204, 304, 403, 404, 500, 503] as [UInt16])
    func status(_ status: UInt16) async throws {
        let (error, host) = try await failure(.init("HTTP/1.1 \(status) Whatever\r\n\r\n"))
        #expect(error.phase == .status)
        #expect(error.status == status)
        #expect(error.description == "answer of \(host): it answered \(status) instead of 200")
    }

    @Test(
        "a redirect is not followed; the error says where it points to",
        arguments: [
            ("https://other.example/secret?x=y", "other.example:443"),
            ("/elsewhere", "another place on it"),
        ])
    func redirect(location: String, place: String) async throws {
        let (error, _) = try await failure(
            .init("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"))
        #expect(error.phase == .status)
        #expect(error.status == 302)
        #expect(
            error.reason
                == "it answered 302 and points to \(place); redirects are not followed: "
                + "configure the address that it points to")
    }

    @Test("encoded content is refused")
    func contentEncoding() async throws {
        let (error, _) = try await failure(.ok("{}", fields: "Content-Encoding: gzip\r\n"))
        #expect(error.phase == .body)
        #expect(
            error.reason == "its content is encoded, although only identity was accepted")
    }

    @Test(
        "content beyond the limit is refused, declared or not",
        arguments: [
            "Content-Length: 1048577\r\n\r\n", "\r\n",
            "Transfer-Encoding: chunked\r\n\r\n100001\r\n",
        ])
    func tooLarge(fields: String) async throws {
        let body = String(repeating: "x", count: (1 << 20) + 1)
        let (error, _) = try await failure(.init("HTTP/1.1 200 OK\r\n\(fields)\(body)"))
        #expect(error.phase == .body)
        #expect(error.reason == "its content is too large: more than 1 MiB")
    }

    @Test("content of exactly the limit is taken")
    func largest() async throws {
        let body = String(repeating: "x", count: 1 << 20)
        let server = try await ScriptedServer.start { _, _ in .ok(body) }
        #expect(try await get(try request(server.port)).body.count == 1 << 20)
    }

    @Test("what is no HTTP is an error with the parser's word")
    func malformed() async throws {
        let (error, _) = try await failure(.init("SSH-2.0-OpenSSH_9.2\r\n\r\n"))
        #expect(error.phase == .receive)
        #expect(error.reason == "its answer is no valid HTTP (start_line)")
    }

    @Test(
        "gives up at the deadline, wherever it waits",
        arguments: [
            ("", HTTPClientError.Phase.receive),
            ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello", .body),
        ])
    func deadline(text: String, phase: HTTPClientError.Phase) async throws {
        let (error, _) = try await failure(
            .init(text, then: .silence), patience: .seconds(2))
        #expect(error.phase == phase)
        #expect(error.reason == "no answer in time")
    }

    @Test("says that nobody listens at an address")
    func refused() async throws {
        let any = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
        // Bound a moment ago and closed again: nobody else got that port meanwhile, as a rule.
        let port = try #require(ListeningDescriptor(any, isShared: false).address.port)
        let request = try request(port)
        let error = await #expect(throws: HTTPClientError.self) { _ = try await get(request) }
        #expect(error?.phase == .connect)
        #expect(
            error?.description.hasPrefix(
                "connecting to 127.0.0.1:\(port): 127.0.0.1:\(port): Connection refused; check that"
            )
                == true)
    }

    @Test("says that a name has no address")
    func unknownName() async throws {
        let url = try HTTPURL("http://does-not-exist.invalid/jwks")
        let request = HTTPGetRequest(url, deadline: .now.advanced(by: .seconds(10)))
        let error = await #expect(throws: HTTPClientError.self) { _ = try await get(request) }
        #expect(error?.phase == .resolve)
        #expect(error?.host == "does-not-exist.invalid:80")
        #expect(error?.reason.contains("check its spelling") == true)
    }

    @Test("tries the next address when one does not answer")
    func nextAddress() async throws {
        // "localhost" is ::1 and 127.0.0.1 wherever both are configured; the server has only the
        // latter.
        let server = try await ScriptedServer.start { _, _ in .ok("{}") }
        let url = try HTTPURL("http://localhost:\(server.port)/")
        let response = try await get(
            HTTPGetRequest(url, deadline: .now.advanced(by: .seconds(5))))
        #expect(response.body == Array("{}".utf8))
    }

    @Test("a configured field cannot smuggle another one", arguments: ["a\r\nX: b", "a\nb", "a\0"])
    func fieldInjection(value: String) async throws {
        let server = try await ScriptedServer.start { _, _ in .ok("{}") }
        var request = try request(server.port)
        request.fields = [("X-Key", value)]
        let unsafe = request
        let error = await #expect(throws: HTTPClientError.self) { _ = try await get(unsafe) }
        #expect(error?.phase == .send)
        #expect(error?.description.contains("X: b") == false)
        #expect(await server.requests.isEmpty)
    }

    @Test("a request that is given up ends at once")
    func cancellation() async throws {
        let server = try await ScriptedServer.start { _, _ in .init("", then: .silence) }
        let request = try request(server.port, patience: .seconds(600))
        let resident = try TestLoop()
        let error = await #expect(throws: HTTPClientError.self) {
            try await resident.run { resident in
                let client = HTTPClient(loop: resident.loop, version: "1")
                let canceller = Waiter(loop: resident.loop)
                Task {
                    _ = resident
                    _ = await canceller.wait(
                        until: resident.loop.now.advanced(by: .milliseconds(70)))
                    client.cancel()
                }
                _ = try await client.get(request)
            }
        }
        #expect(error?.reason == "given up, because it is not needed any more")
    }
}
