package import Reactor
package import TLS

/// Asks one server at one address whether it works, each time over a new connection. Belongs to
/// one event loop.
package final class HTTPProbe {
    /// The preface of HTTP/2 and an empty SETTINGS frame (RFC 9113, section 3.4).
    private static let preface: StaticString =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u{0}\u{0}\u{0}\u{4}\u{0}\u{0}\u{0}\u{0}\u{0}"
    private static let frameHeader = 9

    private let connector: HTTPConnector
    private let address: SocketAddress
    private let tls: (context: TLSContext, name: String)?
    private var patience: RequestPatience?

    /// - Parameter tls: What the connection is secured with, and whose certificate is expected.
    package init(
        _ address: SocketAddress, tls: (context: TLSContext, name: String)?, loop: EventLoop,
        version: String
    ) {
        connector = HTTPConnector(loop: loop, version: version)
        self.address = address
        self.tls = tls
    }

    /// Gives up the question under way, if there is one. It then throws.
    package func cancel() {
        patience?.cancel()
    }

    /// Sends GET, and reads the head of the answer.
    ///
    /// - Returns: the status, 200 to 599.
    package func status(
        of url: HTTPURL, until deadline: MonotonicInstant
    ) async throws(HTTPClientError) -> UInt16 {
        let connection = try await connect(until: deadline)
        defer { end(connection) }
        let head = ByteBuffer(capacity: 512)
        try ClientRequestHead(
            method: "GET", url: url, target: url.target, fields: [], content: nil,
            isPersistent: false
        ).write(to: head, userAgent: connector.userAgent)
        try await connector.send(head, on: connection, host: "\(address)", phase: .send)
        return try await HTTPResponseReader(connection, host: "\(address)").readStatus()
    }

    /// Begins HTTP/2 with prior knowledge, and waits for the server to do the same: a server that
    /// hangs accepts connections all the same, but says nothing.
    package func greet(until deadline: MonotonicInstant) async throws(HTTPClientError) {
        let connection = try await connect(until: deadline)
        defer { end(connection) }
        let bytes = ByteBuffer(capacity: 64)
        bytes.append(Self.preface)
        try await connector.send(bytes, on: connection, host: "\(address)", phase: .send)
        while connection.received.count < Self.frameHeader {
            do throws(ConnectionFailure) {
                if try await !connection.receive() { throw .ended }
            } catch {
                throw HTTPClientError(.receive, host: "\(address)", error)
            }
        }
        let isSettings = connection.received.withUnsafeBytes { bytes in
            // A SETTINGS frame that is no acknowledgement, on stream 0.
            bytes[3] == 4 && bytes[4] & 1 == 0 && bytes[5..<9].allSatisfy { $0 == 0 }
        }
        if !isSettings {
            throw HTTPClientError(.body, host: "\(address)", "its first frame is no SETTINGS")
        }
    }

    private func connect(
        until deadline: MonotonicInstant
    ) async throws(HTTPClientError) -> ClientConnection {
        let patience = RequestPatience(loop: connector.loop, deadline: deadline)
        self.patience = patience
        let host = "\(address)"
        do throws(ConnectionFailure) {
            let socket = try await connector.connect(to: address, until: deadline, patience)
            let connection = ClientConnection(socket, patience: patience)
            guard let tls else { return connection }
            do throws(ConnectionFailure) {
                try await connection.secure(with: tls.context, host: tls.name)
                return connection
            } catch {
                connection.close()
                throw error
            }
        } catch {
            endPatience()
            let phase: HTTPClientError.Phase = if case .tls = error { .tls } else { .connect }
            throw HTTPClientError(phase, host: host, error)
        }
    }

    private func end(_ connection: ClientConnection) {
        connection.close()
        endPatience()
    }

    private func endPatience() {
        patience?.end()
        patience = nil
    }
}
