internal import Reactor
internal import TLS

/// Opens connections for the clients: looks the host up, connects, asks the egress proxy for a
/// tunnel, starts TLS.
struct HTTPConnector {
    /// Where the connections live.
    let loop: EventLoop
    /// Value of the User-Agent field.
    let userAgent: String

    /// - Parameter version: Of this program.
    init(loop: EventLoop, version: String) {
        self.loop = loop
        userAgent = "portcullis/\(version)"
    }

    /// Connects to a URL's host, through the egress proxy where there is one, and starts TLS where
    /// the URL asks for it.
    ///
    /// - Parameter context: Gives the context for TLS; called only for an `https` URL.
    func open(
        _ url: HTTPURL, egressProxy: HTTPEndpoint?, _ patience: RequestPatience,
        context: () throws(TLSError) -> TLSContext
    ) async throws(HTTPClientError) -> ClientConnection {
        let socket = try await connect(to: egressProxy ?? url.endpoint, patience)
        let connection = ClientConnection(socket, patience: patience)
        if let egressProxy { try await openTunnel(to: url, through: egressProxy, on: connection) }
        if url.isSecure { try await startTLS(url, on: connection, context) }
        return connection
    }

    /// Sends a request, or a part of one.
    func send(
        _ bytes: ByteBuffer, on connection: ClientConnection, host: String,
        phase: HTTPClientError.Phase
    ) async throws(HTTPClientError) {
        do throws(ConnectionFailure) {
            try await connection.send(bytes)
        } catch {
            throw HTTPClientError(phase, host: host, error)
        }
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
        _ url: HTTPURL, on connection: ClientConnection,
        _ makeContext: () throws(TLSError) -> TLSContext
    ) async throws(HTTPClientError) {
        let host = url.endpoint.description
        let context: TLSContext
        do throws(TLSError) {
            context = try makeContext()
        } catch {
            throw HTTPClientError(.tls, host: host, error.detail)
        }
        do throws(ConnectionFailure) {
            try await connection.secure(with: context, host: url.host)
        } catch {
            throw HTTPClientError(.tls, host: host, error)
        }
    }
}
