internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// One request and its answer, from the first byte to the access-log line.
///
/// The object is lent to a connection for as long as a request takes, and keeps its memory from one
/// to the next. `serve` is the whole story; its chapters are in the extensions.
final class Exchange {
    private static let inputSize = 8 << 10
    private static let outputSize = 4 << 10
    private static let upstreamInputSize = 32 << 10
    private static let keptCapacity = 64 << 10

    // Strong on purpose: an unowned reference costs two atomic operations a use. LoopState lets go
    // of its spare exchanges when the loop ends.
    let state: LoopState
    /// What the client sends: the head, pinned while the request lasts, and the body behind it.
    let input = ByteBuffer(capacity: inputSize)
    /// What goes to the client.
    let output = ByteBuffer(capacity: 0)
    /// What the server sends.
    let upstreamInput = ByteBuffer(capacity: 0)
    /// What goes to the server.
    let upstreamOutput = ByteBuffer(capacity: 0)
    /// The request's head; its ranges refer to the pinned bytes of `input`.
    var head = RequestHead()
    /// The upstream's head; its ranges refer to `upstreamInput`.
    var answer = ResponseHead()
    /// What the log and the metrics will be told.
    let record = RequestRecord()
    /// When the request's first bytes were there.
    var startedAt = MonotonicInstant.never
    /// The client's address: the peer's, or what a trusted proxy says it is.
    var clientAddress: IPAddress?
    /// What a trusted proxy's `Forwarded` says; nil where that is not asked.
    var forwarded: ForwardedChain?
    /// What the client is for the enforced share; empty when it has no such key.
    var shareKey: [UInt8] = []
    /// What the claim store was asked, and what is left to tell it.
    var claims = ClaimState()
    /// Where the token is in the pinned bytes of `input`, when it came as a subprotocol.
    var protocolToken: ByteRange?
    /// For how many nanoseconds a limit that was met lets no such request pass; it means something
    /// only in an answer of status 429.
    var limitWait: Int64 = 0
    /// `head` describes this request.
    var isHeadKnown = true
    /// What is left of the request's body cannot be told from the next request.
    var isBodyLost = false
    /// The answer that was written lets the client send another request.
    var willPersist = false
    /// The configuration that this request is served by, whatever is adopted while it is under way.
    private(set) var serving: ServingConfiguration
    /// The pools of that configuration: its routes know upstreams by their place.
    private(set) var pools: [UpstreamPool]

    /// An exchange for any request of this loop.
    init(_ state: LoopState) {
        self.state = state
        serving = state.serving
        pools = state.pools
    }

    /// Serves the request whose first bytes are in `input`. Whatever happens, exactly one record is
    /// written.
    func serve(_ client: ClientConnection) async -> Fate {
        begin(client)
        let fate = await answerRequest(client)
        // Not the client went: the time for draining is over.
        if state.isOver, record.failure == .clientAborted { record.failure = .drained }
        record.totalMicroseconds = MonotonicInstant.now.microseconds(since: startedAt)
        state.recorder.record(record, serving: serving)
        finish()
        return fate
    }

    private func answerRequest(_ client: ClientConnection) async -> Fate {
        do throws(Interruption) {
            try await readHead(client)
        } catch {
            return await end(client, after: error)
        }
        if state.isShedding {
            record.failure = .memoryLimit
            return await refuse(client, .overloaded)
        }
        identify(client)
        // Its content is wrong already: nothing of it is forwarded (RFC 9113, section 8.1.1).
        if client.transport.isMalformed { return await fail(client, .malformed) }
        if let tracing = serving.tracing { beginTrace(client, tracing) }
        if client.session != nil && isMisdirected(client) {
            record.failure = .misdirected
            return await refuse(client, .misdirectedRequest)
        }
        guard let index = chooseRoute() else {
            record.failure = .noRoute
            return await refuse(client, .notFound)
        }
        let route = serving.routes[index]
        record.route = index
        if route.limitStep == .beforeToken, isBeyondLimit(route) {
            return await refuse(client, .rateLimited)
        }
        var verdict = await judge(client, route)
        if route.claimsTokens, verdict == .verified, hasSessionToken { verdict = .notLimitedUse }
        switch decide(verdict, route, route.enforcement) {
        case .reject(let code): return await reject(client, code)
        case .forward(let permit):
            if let fate = await answerPreflight(client, route) { return fate }
            if isBodyTooLarge(client) {
                record.failure = .bodyTooLarge
                return await refuse(client, .bodyTooLarge)
            }
            if route.limitStep == .afterToken, isBeyondLimit(route) {
                return await refuse(client, .rateLimited)
            }
            if !route.claimsTokens || verdict != .verified {
                return await forward(client, permit, route)
            }
        }
        // Last of all, and only for what would be forwarded: nobody spends a token for an answer
        // that the proxy gives itself (pitfalls R3, R7).
        switch decide(await claim(client, route), route, route.claimEnforcement) {
        case .reject(let code): return await reject(client, code)
        case .forward(let permit): return await forward(client, permit, route)
        }
    }

    private func decide(_ verdict: Verdict, _ route: ServedRoute, _ enforcement: Enforcement)
        -> Decision
    {
        let decision = enforcement.decide(verdict) { isInShare(route) }
        record.verdict = verdict
        switch decision {
        case .reject(let code):
            record.action = .reject
            record.code = code
        case .forward(let permit): record.action = permit.action
        }
        return decision
    }

    /// Whether the length that the request declares is more than the listener takes.
    private func isBodyTooLarge(_ client: ClientConnection) -> Bool {
        if case .length(let length) = head.framing { return length > client.listener.bodyLimit }
        return false
    }

    // MARK: Chapters that need no file of their own

    /// Readies the object, and the record, for a request of this connection.
    func begin(_ client: ClientConnection) {
        takeConfiguration()
        isHeadKnown = true
        isBodyLost = false
        if record.claim != nil { claims = ClaimState() }
        protocolToken = nil
        record.reset()
        record.startedAt = state.loop.wallMicroseconds
        // Mostly what they are already, and each assignment counts two references.
        if record.listener != client.listener.name { record.listener = client.listener.name }
        if record.clientAddress != client.peer.host { record.clientAddress = client.peer.host }
        if record.session !== client.session { record.session = client.session }
        if let balancer = client.peer.balancerHost { record.peerAddress = balancer }
        if client.transport.carriesOneMessage { record.protocolVersion = "http/2" }
        state.identifiers.next(into: &record.requestID)
        startedAt = state.loop.now
        clientAddress = client.peer.address
    }

    /// Reads until the head is complete.
    private func readHead(_ client: ClientConnection) async throws(Interruption) {
        var parser = RequestParser(limits: client.listener.headLimits)
        let deadline = startedAt.advanced(byNanoseconds: client.listener.headerNanoseconds)
        let input = self.input
        while true {
            do throws(MalformedMessage) {
                if try parser.parse(input.bytes, into: &head) { break }
            } catch {
                throw .malformed(error)
            }
            input.reserve(2048)
            switch try? client.transport.read(into: input) {
            case .bytes: continue
            case .endOfStream, nil: throw .clientGone
            case .wouldBlock:
                if await client.waiter.wait(until: deadline) == .timedOut { throw .headerTimeout }
            }
        }
        if client.transport.carriesOneMessage {
            readMessageEnds(client.transport)
        } else if client.requestsLeft <= 0
            || client.session != nil && client.transport.isDueToEnd
        {
            endConnection(client)
        }
        input.pin(head.length)
        // Only now: thousands of heads that never end are a cheap attack (pitfall W9).
        if upstreamInput.capacity < Self.upstreamInputSize { growAnswerBuffers() }
        // The head may have taken its time; keys and pools are those of the newest configuration.
        takeConfiguration()
        note()
    }

    /// Where the transport says where a message ends, no field has to.
    private func readMessageEnds(_ stream: any Transport) {
        head.isPersistent = false
        let isLengthKnown = head.fields.contains(.contentLength)
        // What follows a handshake is no content of it.
        if head.framing == .none && stream.hasContent && !isLengthKnown && !head.wantsWebSocket {
            head.framing = .untilClose
        }
    }

    /// The connection has served what it may.
    private func endConnection(_ client: ClientConnection) {
        head.isPersistent = false
        state.recorder.connection(
            .limited(.requestsPerConnection), listener: client.listener.name)
    }

    private func takeConfiguration() {
        if serving === state.serving { return }
        serving = state.serving
        pools = state.pools
    }

    /// Copies what the log needs: the head's bytes are gone when the log is written.
    private func note() {
        let input = self.input
        let bytes = input.pinnedBytes
        record.method = head.method
        if head.version == .http10 { record.protocolVersion = "http/1.0" }
        if !serving.logsAccess { return }
        record.methodName.append(bytes.slice(head.methodName))
        record.target.append(bytes.slice(head.target.raw))
        record.host.append(contentsOf: head.target.host)
        if let agent = head.fields.first(.userAgent) {
            record.userAgent.append(bytes.slice(agent.value))
        }
    }

    private func chooseRoute() -> Int? {
        let input = self.input
        let bytes = input.pinnedBytes
        // A preflight asks on behalf of the request that will follow, so that one's route answers
        // it.
        // Asked first of all what costs nothing: most requests are no such thing.
        let isPreflight = head.method == .options && head.isPreflight
        let asked = isPreflight ? head.fields.first(.accessControlRequestMethod)?.value : nil
        let method = bytes.slice(asked ?? head.methodName)
        let host = head.target.host
        let routes = serving.table
        if head.target.isRewritten {
            let path = head.target.rewritten
            return routes.match(host: host.span, path: path.span, method: method)
        }
        return routes.match(
            host: host.span, path: bytes.slice(head.target.path), method: method)
    }

    private func finish() {
        input.unpin()
        output.removeAll()
        upstreamInput.removeAll()
        upstreamOutput.removeAll()
        if record.status == 101 { regrow() }
        shareKey.removeAll(keepingCapacity: true)
        if forwarded != nil { forwarded = nil }
    }

    /// Holds no more memory than `input` and `output` need for what lies in them.
    func shrinkForTunnel() {
        upstreamInput.shrink(above: 64, to: 64)
        upstreamOutput.shrink(above: 64, to: 64)
        if input.isEmpty { input.shrink(above: 64, to: 64) }
    }

    private func regrow() {
        input.reserve(Self.inputSize)
        growAnswerBuffers()
    }

    private func growAnswerBuffers() {
        output.reserve(Self.outputSize)
        upstreamInput.reserve(Self.upstreamInputSize)
        upstreamOutput.reserve(Self.outputSize)
    }

    /// Gives back what one large message made the buffers grow to.
    func shrink() {
        input.shrink(above: Self.keptCapacity, to: Self.inputSize)
        output.shrink(above: Self.keptCapacity, to: Self.outputSize)
        upstreamInput.shrink(above: Self.keptCapacity, to: Self.upstreamInputSize)
        upstreamOutput.shrink(above: Self.keptCapacity, to: Self.outputSize)
    }
}

/// Why a request ended before policy saw it.
enum Interruption: Error {
    case malformed(MalformedMessage)
    case clientGone
    case headerTimeout
}

extension [UInt8] {
    /// Appends the bytes of a span.
    mutating func append(_ span: Span<UInt8>) {
        span.withUnsafeBufferPointer { append(contentsOf: $0) }
    }
}
