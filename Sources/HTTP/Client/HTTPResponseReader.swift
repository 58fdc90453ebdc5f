internal import Reactor

/// Reads the answer to one request of a client.
struct HTTPResponseReader {
    private static let mebibyte = 1 << 20

    private let connection: ClientConnection
    private let host: String
    private var head = ResponseHead()

    init(_ connection: ClientConnection, host: String) {
        self.connection = connection
        self.host = host
    }

    /// Reads the egress proxy's answer to CONNECT. Behind a 200 the bytes are the tunnel's.
    consuming func readTunnelStatus() async throws(HTTPClientError) -> UInt16 {
        try await readHead(of: .connect, phase: .proxy)
        if head.status == 200 && !connection.received.isEmpty {
            throw HTTPClientError(
                .proxy, host: host,
                "it sent content behind its answer to CONNECT; is it an HTTP proxy?")
        }
        return head.status
    }

    /// Reads a complete answer to GET with status 200; anything else is an error.
    consuming func readSuccess(maximumBodyBytes: Int) async throws(HTTPClientError) -> HTTPResponse
    {
        let fields = try await readHead(of: .get, phase: .receive)
        let answer = HTTPResponse(status: head.status, fields: fields, body: [])
        if answer.status != 200 { throw refusal(of: answer) }
        return try await complete(answer, maximumBodyBytes)
    }

    /// Reads the head of an answer to GET, and leaves its content alone.
    consuming func readStatus() async throws(HTTPClientError) -> UInt16 {
        try await readHead(of: .get, phase: .receive)
        return head.status
    }

    /// Reads a complete answer to POST, whatever its status.
    ///
    /// - Returns: the answer, and whether the connection can carry another request.
    consuming func readAny(
        maximumBodyBytes: Int
    ) async throws(HTTPClientError) -> (answer: HTTPResponse, isReusable: Bool) {
        let fields = try await readHead(of: .post, phase: .receive)
        let answer = HTTPResponse(status: head.status, fields: fields, body: [])
        let complete = try await complete(answer, maximumBodyBytes)
        // More than the answer is an answer to nothing: whose would the next one be?
        return (complete, head.isPersistent && connection.received.isEmpty)
    }

    private func complete(
        _ answer: HTTPResponse, _ maximumBodyBytes: Int
    ) async throws(HTTPClientError) -> HTTPResponse {
        // None was asked for, and a decoder would be one more thing to attack.
        if let coding = answer.value(of: "content-encoding"), coding.lowercased() != "identity" {
            throw HTTPClientError(
                .body, host: host, "its content is encoded, although only identity was accepted")
        }
        let body = try await readBody(maximumBodyBytes)
        return HTTPResponse(status: answer.status, fields: answer.fields, body: body)
    }

    /// Reads heads until one is final, and drops it from what was received.
    ///
    /// - Returns: its fields.
    @discardableResult
    private mutating func readHead(
        of method: Method, phase: HTTPClientError.Phase
    ) async throws(HTTPClientError) -> [(name: String, value: String)] {
        let received = connection.received
        var parser = ResponseParser(limits: HeadLimits())
        while true {
            do throws(MalformedMessage) {
                while try parser.parse(received.bytes, requestMethod: method, into: &head) {
                    let fields = copyFields()
                    received.consume(head.length)
                    if !head.isInformational { return fields }
                }
            } catch {
                throw HTTPClientError(
                    phase, host: host, "its answer is no valid HTTP (\(error.kind.rawValue))")
            }
            try await receive(phase: phase)
        }
    }

    private func copyFields() -> [(name: String, value: String)] {
        let received = connection.received
        let bytes = received.bytes
        return head.fields.lines.map { line in
            (text(bytes.slice(line.name)).lowercased(), text(bytes.slice(line.value)))
        }
    }

    private func readBody(_ maximum: Int) async throws(HTTPClientError) -> [UInt8] {
        let received = connection.received
        var body: [UInt8] = []
        if case .length(let length) = head.framing, length > UInt64(maximum) {
            throw tooLarge(maximum)
        }
        var decoder = BodyDecoder(head.framing)
        while true {
            switch try nextStep(&decoder) {
            case .end: return body
            case .content(let skip, let count):
                received.consume(skip)
                if count > maximum - body.count { throw tooLarge(maximum) }
                received.withUnsafeBytes { body.append(contentsOf: $0.prefix(count)) }
                received.consume(count)
                decoder.consumed(count)
            case .needsMore(let skip):
                received.consume(skip)
                if head.framing == .untilClose {
                    if try await !receiveMore(phase: .body) { return body }
                } else {
                    try await receive(phase: .body)
                }
            }
        }
    }

    private func nextStep(_ decoder: inout BodyDecoder) throws(HTTPClientError) -> BodyStep {
        let received = connection.received
        do throws(MalformedMessage) {
            return try decoder.next(received.bytes)
        } catch {
            throw HTTPClientError(
                .body, host: host, "its content is no valid HTTP (\(error.kind.rawValue))")
        }
    }

    /// Receives bytes where the end of the connection would be too early.
    private func receive(phase: HTTPClientError.Phase) async throws(HTTPClientError) {
        if try await !receiveMore(phase: phase) {
            throw HTTPClientError(phase, host: host, .ended)
        }
    }

    private func receiveMore(phase: HTTPClientError.Phase) async throws(HTTPClientError) -> Bool {
        do throws(ConnectionFailure) {
            return try await connection.receive()
        } catch {
            throw HTTPClientError(phase, host: host, error)
        }
    }

    private func refusal(of answer: HTTPResponse) -> HTTPClientError {
        let status = answer.status
        if 300...399 ~= status, let location = answer.value(of: "location") {
            let target = (try? HTTPURL(location))?.endpoint.description ?? "another place on it"
            return HTTPClientError(
                .status, host: host,
                "it answered \(status) and points to \(target); redirects are not followed: "
                    + "configure the address that it points to", status: status)
        }
        return HTTPClientError(
            .status, host: host, "it answered \(status) instead of 200", status: status)
    }

    private func tooLarge(_ maximum: Int) -> HTTPClientError {
        let limit =
            maximum % Self.mebibyte == 0 ? "\(maximum / Self.mebibyte) MiB" : "\(maximum) bytes"
        return HTTPClientError(.body, host: host, "its content is too large: more than \(limit)")
    }

    private func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
