public import Reactor
internal import TLS

/// Gets one small document at a time over HTTP/1.1, with a connection for each: key sets, and
/// what else the proxy asks of the world a few times a day. Strict where a browser is kind: no
/// redirect is followed, nothing but a complete 200 is a success. ``HTTPPool`` is for services that
/// are asked all the time.
///
/// A client belongs to one event loop; call it from an actor that lives there.
public final class HTTPClient {
    private let connector: HTTPConnector
    private var patience: RequestPatience?

    /// - Parameter version: Of this program, for `User-Agent: portcullis/VERSION`.
    public init(loop: EventLoop, version: String) {
        connector = HTTPConnector(loop: loop, version: version)
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
        let patience = RequestPatience(loop: connector.loop, deadline: request.deadline)
        self.patience = patience
        defer {
            patience.end()
            self.patience = nil
        }
        let url = request.url
        let connection = try await connector.open(url, egressProxy: request.egressProxy, patience) {
            () throws(TLSError) in
            // Made anew each time, a few times a day: a renewed file of trusted certificates is
            // seen at once.
            try TLSContext.client(trust: request.trust)
        }
        defer { connection.close() }
        let host = url.endpoint.description
        let head = ByteBuffer(capacity: 512)
        try ClientRequestHead(
            method: "GET", url: url, target: url.target, fields: request.fields, content: nil,
            isPersistent: false
        ).write(to: head, userAgent: connector.userAgent)
        try await connector.send(head, on: connection, host: host, phase: .send)
        return try await HTTPResponseReader(connection, host: host).readSuccess(
            maximumBodyBytes: request.maximumBodyBytes)
    }
}
