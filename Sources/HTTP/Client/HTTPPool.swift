public import Reactor
internal import TLS

/// Asks one service again and again over HTTP/1.1, on connections that stay: an exchange costs one
/// round trip. A connection carries one exchange at a time. An exchange that fails is never
/// repeated: what the service did with the request, the pool cannot know.
///
/// A pool belongs to one event loop; call it from tasks that live there.
public final class HTTPPool {
    /// How much a pool may hold.
    public struct Limits: Sendable {
        /// Connections open at once.
        public var connections = 16
        /// Exchanges that wait for one of them.
        public var waiting = 256
        /// How long a connection is kept for the next exchange; `zero` closes it after each. Keep
        /// it shorter than the service's own patience: an exchange that meets its end is lost.
        public var rest: Duration = .seconds(50)

        public init() {}
    }

    private struct Resting {
        let connection: ClientConnection
        let since: MonotonicInstant
    }

    private let connector: HTTPConnector
    private let origin: HTTPOrigin
    private let limits: Limits
    private let host: String
    /// Reading a system's certificates takes milliseconds: too long for each connection.
    private var context: TLSContext?
    /// The one that rested the shortest is the last.
    private var resting: [Resting] = []
    private var openCount = 0
    private var waiting: [Waiter] = []
    private var active: [RequestPatience] = []
    private var isClosed = false

    /// A pool without connections.
    ///
    /// - Parameter version: Of this program, for `User-Agent: portcullis/VERSION`.
    public init(loop: EventLoop, origin: HTTPOrigin, version: String, limits: Limits = Limits()) {
        connector = HTTPConnector(loop: loop, version: version)
        self.origin = origin
        self.limits = limits
        host = origin.url.endpoint.description
    }

    /// Makes one exchange. Any complete final answer is a success, whatever its status.
    ///
    /// - Throws: how far it came, why it failed, and what to do. In the phases up to `tls` the
    ///   service got nothing; from `send` on it may have done what it was asked.
    public func post(_ request: HTTPPostRequest) async throws(HTTPClientError) -> HTTPResponse {
        let bytes = try bytes(of: request)
        return try await withPatience(until: request.deadline) {
            patience throws(HTTPClientError) in
            let connection = try await checkOut(patience)
            do throws(HTTPClientError) {
                try await connector.send(bytes, on: connection, host: host, phase: .send)
                let (answer, isReusable) = try await HTTPResponseReader(connection, host: host)
                    .readAny(maximumBodyBytes: request.maximumBodyBytes)
                giveBack(connection, isReusable: isReusable)
                return answer
            } catch {
                giveBack(connection, isReusable: false)
                throw error
            }
        }
    }

    /// Opens a connection for the first exchange, unless one is there.
    public func connect(until deadline: MonotonicInstant) async throws(HTTPClientError) {
        if !resting.isEmpty { return }
        try await withPatience(until: deadline) { patience throws(HTTPClientError) in
            giveBack(try await checkOut(patience), isReusable: true)
        }
    }

    /// Closes all connections; the exchanges under way throw.
    public func close() {
        isClosed = true
        for patience in active { patience.cancel() }
        for idle in resting { end(idle.connection) }
        resting = []
    }

    private func withPatience<R>(
        until deadline: MonotonicInstant,
        _ body: (RequestPatience) async throws(HTTPClientError) -> R
    ) async throws(HTTPClientError) -> R {
        let patience = RequestPatience(loop: connector.loop, deadline: deadline)
        if isClosed { patience.cancel() }
        active.append(patience)
        defer {
            patience.end()
            active.removeAll { $0 === patience }
        }
        return try await body(patience)
    }

    private func bytes(of request: HTTPPostRequest) throws(HTTPClientError) -> ByteBuffer {
        let bytes = ByteBuffer(capacity: 1024 + request.body.count)
        try ClientRequestHead(
            method: "POST", url: origin.url, target: request.target, fields: request.fields,
            content: (request.contentType, request.body.count), isPersistent: limits.rest > .zero
        ).write(to: bytes, userAgent: connector.userAgent)
        bytes.append(request.body)
        return bytes
    }

    // MARK: Connections

    private func checkOut(
        _ patience: RequestPatience
    ) async throws(HTTPClientError) -> ClientConnection {
        while true {
            if let connection = takeResting(patience) { return connection }
            if openCount < limits.connections { return try await open(patience) }
            try await waitForTurn(patience)
        }
    }

    private func takeResting(_ patience: RequestPatience) -> ClientConnection? {
        let oldest = connector.loop.now.advanced(by: .zero - limits.rest)
        while let idle = resting.popLast() {
            if idle.since > oldest && idle.connection.resume(patience) { return idle.connection }
            end(idle.connection)
        }
        return nil
    }

    private func open(
        _ patience: RequestPatience
    ) async throws(HTTPClientError) -> ClientConnection {
        openCount += 1
        do throws(HTTPClientError) {
            return try await connector.open(
                origin.url, egressProxy: origin.egressProxy, patience, context: sharedContext)
        } catch {
            // A renewed file of trusted certificates may be the cure.
            if error.phase == .tls { context = nil }
            openCount -= 1
            wakeNext()
            throw error
        }
    }

    private func sharedContext() throws(TLSError) -> TLSContext {
        if let context { return context }
        let made = try TLSContext.client(trust: origin.trust)
        context = made
        return made
    }

    private func giveBack(_ connection: ClientConnection, isReusable: Bool) {
        if isReusable && !isClosed && limits.rest > .zero {
            connection.rest()
            resting.append(Resting(connection: connection, since: connector.loop.now))
        } else {
            end(connection)
        }
        wakeNext()
    }

    private func end(_ connection: ClientConnection) {
        connection.close()
        openCount -= 1
    }

    // MARK: Turns

    private func waitForTurn(_ patience: RequestPatience) async throws(HTTPClientError) {
        let waiter = patience.waiter
        if waiting.count >= limits.waiting {
            throw HTTPClientError(
                .connect, host: host,
                "\(waiting.count) requests wait for its \(openCount) connections already",
                cause: .crowded)
        }
        waiting.append(waiter)
        do throws(Impatience) {
            try await patience.wait()
        } catch {
            // Its turn may have come in the same moment; then it is the next one's.
            let hadTurn = !waiting.contains { $0 === waiter }
            waiting.removeAll { $0 === waiter }
            if hadTurn { wakeNext() }
            throw HTTPClientError(
                .connect, host: host, "all \(openCount) connections to it were busy",
                cause: error == .cancelled ? .cancelled : .crowded)
        }
        waiting.removeAll { $0 === waiter }
    }

    private func wakeNext() {
        if waiting.isEmpty { return }
        waiting.removeFirst().wake()
    }
}
