public import Reactor
internal import TLS

/// Gets one small document at a time over HTTP/1.1, with a connection for each: key sets, and
/// what else the proxy asks of the world a few times a day. Strict where a browser is kind: no
/// redirect is followed, nothing but a complete 200 is a success.
///
/// A client belongs to one event loop; call it from an actor that lives there.
public final class HTTPClient {
    let loop: EventLoop
    private let userAgent: String
    private var patience: RequestPatience?

    /// - Parameter version: Of this program, for `User-Agent: portcullis/VERSION`.
    public init(loop: EventLoop, version: String) {
        self.loop = loop
        userAgent = "portcullis/\(version)"
    }

    /// Gives up the request under way, if there is one. It then throws.
    public func cancel() {
        patience?.cancel()
    }

    /// Gets a document. One at a time: a second call while the first is under way is a
    /// programming error.
    ///
    /// - Throws: how far it came, at which host, why it failed, and what to do.
    public func get(_ request: HTTPGetRequest) async throws(HTTPClientError) -> HTTPResponse {
        precondition(patience == nil, "one request at a time")
        let patience = RequestPatience(loop: loop, deadline: request.deadline)
        self.patience = patience
        defer {
            patience.end()
            self.patience = nil
        }
        let connection = try await open(request, patience)
        defer { connection.close() }
        let host = request.url.endpoint.description
        try await send(try head(of: request), on: connection, host: host, phase: .send)
        return try await HTTPResponseReader(connection, host: host).read(
            maximumBodyBytes: request.maximumBodyBytes)
    }

    /// Connects, through the egress proxy where there is one, and starts TLS where the URL asks
    /// for it.
    private func open(
        _ request: HTTPGetRequest, _ patience: RequestPatience
    ) async throws(HTTPClientError) -> ClientConnection {
        let url = request.url
        // Plain http is for loopback, where no egress proxy is needed.
        let tunnel = url.isSecure ? request.egressProxy : nil
        let socket = try await connect(to: tunnel ?? url.endpoint, patience)
        let connection = ClientConnection(socket, patience: patience)
        if let tunnel { try await openTunnel(to: url, through: tunnel, on: connection) }
        if url.isSecure { try await startTLS(request, on: connection) }
        return connection
    }

    /// RFC 9110, section 9.3.6.
    private func openTunnel(
        to url: HTTPURL, through proxy: HTTPEndpoint, on connection: ClientConnection
    ) async throws(HTTPClientError) {
        let host = proxy.description
        let head = ByteBuffer(capacity: 256)
        head.append("CONNECT \(url.endpoint) HTTP/1.1\r\nHost: \(url.endpoint)\r\n")
        head.append("User-Agent: \(userAgent)\r\n\r\n")
        try await send(head, on: connection, host: host, phase: .proxy)
        let status = try await HTTPResponseReader(connection, host: host).readTunnelStatus()
        if status != 200 {
            let advice =
                status == 407
                ? "it wants credentials, which cannot be configured" : "allow it there"
            throw HTTPClientError(
                .proxy, host: host, "it answered \(status) to CONNECT \(url.endpoint); \(advice)",
                status: status)
        }
    }

    private func startTLS(
        _ request: HTTPGetRequest, on connection: ClientConnection
    ) async throws(HTTPClientError) {
        let host = request.url.endpoint.description
        let context: TLSContext
        do throws(TLSError) {
            // Made anew each time, a few times a day: a renewed file of trusted certificates is
            // seen at once.
            context = try TLSContext.client(trust: request.trust)
        } catch {
            throw HTTPClientError(.tls, host: host, error.detail)
        }
        do throws(ConnectionFailure) {
            try await connection.secure(with: context, host: request.url.host)
        } catch {
            throw HTTPClientError(.tls, host: host, error.reason)
        }
    }

    private func head(of request: HTTPGetRequest) throws(HTTPClientError) -> ByteBuffer {
        let head = ByteBuffer(capacity: 512)
        head.append("GET \(request.url.target) HTTP/1.1\r\nHost: \(request.url.hostField)\r\n")
        head.append("User-Agent: \(userAgent)\r\n")
        head.append("Accept: application/json\r\nAccept-Encoding: identity\r\n")
        head.append("Connection: close\r\n")
        for (name, value) in request.fields {
            // A line break here would be a second field, or a second request.
            guard Self.isSafe(name), !name.isEmpty, !name.utf8.contains(UInt8(ascii: ":")),
                Self.isSafe(value)
            else {
                throw HTTPClientError(
                    .send, host: request.url.endpoint.description,
                    "a configured request field has a character that no field may carry")
            }
            head.append("\(name): \(value)\r\n")
        }
        head.append("\r\n")
        return head
    }

    private static func isSafe(_ text: String) -> Bool {
        text.utf8.allSatisfy { 0x20...0x7E ~= $0 || $0 >= 0x80 || $0 == 0x09 }
    }

    private func send(
        _ bytes: ByteBuffer, on connection: ClientConnection, host: String,
        phase: HTTPClientError.Phase
    ) async throws(HTTPClientError) {
        do throws(ConnectionFailure) {
            try await connection.send(bytes)
        } catch {
            throw HTTPClientError(phase, host: host, error.reason)
        }
    }
}
