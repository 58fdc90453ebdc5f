internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// Answers that the proxy gives itself: rejections, errors, preflights.
extension Exchange {
    /// A body up to this size is read and thrown away so that the connection can be used again; a
    /// larger one costs more than a new connection.
    private static let drainLimit: UInt64 = 64 << 10

    /// Policy rejected the request.
    func reject(_ client: ClientConnection, _ code: RejectionCode) async -> Fate {
        await answer(client, prepared(for: code))
    }

    /// The request cannot be served, for a reason that has nothing to do with its token.
    func refuse(_ client: ClientConnection, _ problem: ProxyProblem) async -> Fate {
        await answer(client, PreparedAnswer(answer(to: problem)))
    }

    /// Forwarding failed before any byte of a final answer went to the client. An interim one may
    /// still lie in `output`, half sent: ours follows it.
    func fail(_ client: ClientConnection, _ failure: RequestFailure) async -> Fate {
        // A stream of HTTP/2 that is refused looks like one whose client is gone.
        let isRefused = failure == .clientAborted && client.transport.isMalformed
        let failure = isRefused ? .malformed : failure
        record.failure = failure
        guard let problem = failure.problem else { return .close }
        isBodyLost = head.framing != .none
        return await refuse(client, problem)
    }

    /// The request ended before policy saw it.
    func end(_ client: ClientConnection, after interruption: Interruption) async -> Fate {
        isHeadKnown = false
        isBodyLost = true
        switch interruption {
        case .clientGone:
            record.failure = .clientAborted
            return .close
        case .headerTimeout:
            record.failure = .headerTimeout
            return await refuse(client, .requestTimeout)
        case .malformed(let error):
            record.failure = .malformed
            record.malformed = error.kind
            return await refuse(client, error.problem)
        }
    }

    /// Answers a preflight when the route's `cors` says so; nil when it is to be forwarded.
    func answerPreflight(_ client: ClientConnection, _ route: ServedRoute) async -> Fate? {
        guard route.answersPreflights, head.isPreflight else { return nil }
        decidePersistence()
        output.appendStatusLine(204)
        writeCORS(.preflight, route)
        writeCommonFields()
        record.status = 204
        return await send(client)
    }

    // MARK: Writing

    private func answer(_ client: ClientConnection, _ prepared: PreparedAnswer) async -> Fate {
        decidePersistence()
        let isGRPC = isHeadKnown && isGRPCCall
        if isGRPC {
            output.appendStatusLine(200)
            writeGRPC(prepared.problem)
        } else {
            output.append(prepared.head)
        }
        if prepared.problem.status == 429 { writeLimit(isGRPC: isGRPC) }
        if let route = record.route { writeCORS(.rejection, serving.routes[route]) }
        writeCommonFields()
        if !isGRPC && (!isHeadKnown || head.method != .head) {
            output.append(prepared.problem.body)
            record.bytesOut = UInt64(prepared.problem.body.count)
        }
        record.status = isGRPC ? 200 : prepared.problem.status
        return await send(client)
    }

    /// A trailers-only answer (gRPC over HTTP/2, "Responses"): status and message are fields of the
    /// head.
    private func writeGRPC(_ problem: Problem) {
        output.appendField("Content-Type", grpcContentType)
        output.appendField("Content-Length", decimal: 0)
        output.appendField("grpc-status", decimal: UInt64(problem.grpcStatus))
        output.append("grpc-message: ")
        output.append(problem.code)
        output.appendLineEnd()
        output.appendField("Cache-Control", "no-store")
    }

    /// The kind of gRPC that the caller speaks. Clients of gRPC-Web look for a status only in an
    /// answer of their own kind, and of their own format.
    private var grpcContentType: StaticString {
        guard let line = head.fields.first(.contentType) else { return "application/grpc" }
        let input = self.input
        let kind = input.pinnedBytes.slice(line.value)
        if !kind.hasPrefix("application/grpc-web") { return "application/grpc" }
        if kind.hasPrefix("application/grpc-web-text") { return "application/grpc-web-text+proto" }
        let isJSON = kind.hasPrefix("application/grpc-web+json")
        return isJSON ? "application/grpc-web+json" : "application/grpc-web+proto"
    }

    private func writeCORS(_ answer: CORSFields.Answer, _ route: ServedRoute) {
        guard isHeadKnown, let fields = serving.details(of: route).cors else { return }
        let input = self.input
        let bytes = input.pinnedBytes
        let origin = head.fields.first(.origin)?.value ?? .empty
        fields.write(answer, origin: bytes.slice(origin)) { name, value in
            output.appendField(name, value)
        }
    }

    private func writeCommonFields() {
        let id = record.requestID
        output.appendField("X-Request-Id", id.span)
        state.date.appendField(to: output, unixSeconds: state.loop.wallMicroseconds / 1_000_000)
        writePersistence()
        output.appendLineEnd()
    }

    /// The caller takes a gRPC status for an answer.
    var isGRPCCall: Bool {
        // 200 would open a WebSocket over HTTP/2 (RFC 8441, section 5).
        if head.wantsWebSocket { return false }
        guard let line = head.fields.first(.contentType) else { return false }
        let input = self.input
        let bytes = input.pinnedBytes
        return bytes.slice(line.value).hasPrefix("application/grpc")
    }

    // MARK: What becomes of the connection

    private func decidePersistence() {
        willPersist =
            isHeadKnown && !isBodyLost && head.isPersistent && state.keepsConnections && isBodySmall
    }

    /// Whether the rest of the request can be read and forgotten. A client that waits for 100 may
    /// or may not send its body after this answer, so where the next request begins cannot be
    /// known.
    private var isBodySmall: Bool {
        switch head.framing {
        case .none: true
        case .length(let length): length <= Self.drainLimit && !head.expectsContinue
        case .chunked, .untilClose: false
        }
    }

    private func send(_ client: ClientConnection) async -> Fate {
        let deadline = state.loop.now.advanced(
            byNanoseconds: client.listener.idleNanoseconds)
        while !output.isEmpty {
            let result = try? output.withUnsafeBytes { bytes throws(Errno) in
                try client.transport.write(bytes)
            }
            switch result {
            case .bytes(let count): output.consume(count)
            case .wouldBlock:
                if await client.waiter.wait(until: deadline) == .timedOut { return .close }
            case .endOfStream, nil: return .close
            }
        }
        while true {
            switch try? client.transport.flush() {
            case false? where await client.waiter.wait(until: deadline) == .ready: continue
            case false?, nil: return .close
            case true?: break
            }
            break
        }
        client.transport.finishMessage(trailers: [])
        if !willPersist { return .linger }
        return await skipBody(client, until: deadline) ? .keepAlive : .close
    }

    private func skipBody(_ client: ClientConnection, until deadline: MonotonicInstant) async
        -> Bool
    {
        var decoder = BodyDecoder(head.framing)
        let input = self.input
        while true {
            guard let step = try? decoder.next(input.bytes) else { return false }
            switch step {
            case .end(let skip):
                input.consume(skip)
                return true
            case .content(let skip, let count):
                input.consume(skip + count)
                decoder.consumed(count)
                record.bytesIn += UInt64(count)
            case .needsMore(let skip):
                input.consume(skip)
                input.reserve(4096)
                switch try? client.transport.read(into: input) {
                case .bytes: continue
                case .wouldBlock:
                    if await client.waiter.wait(until: deadline) == .timedOut { return false }
                case .endOfStream, nil: return false
                }
            }
        }
    }
}

extension RequestFailure {
    /// What the client is told; nil when there is nobody to tell.
    var problem: ProxyProblem? {
        switch self {
        case .malformed: .badRequest
        case .clientAborted, .drained: nil
        case .clientTimeout, .headerTimeout, .bodyRate: .requestTimeout
        case .bodyTooLarge: .bodyTooLarge
        case .rateLimited: .rateLimited
        case .noRoute: .notFound
        case .misdirected: .misdirectedRequest
        case .webSocketNotSupported: .webSocketNotSupported
        // The handshake was answered long before.
        case .webSocketIdle, .webSocketDrained, .answerRate: nil
        case .memoryLimit, .openFiles: .overloaded
        case .upstreamConnect, .upstreamUnresolved, .upstreamTLS: .upstreamUnreachable
        case .upstreamUnhealthy, .upstreamQueueFull, .upstreamQueueTimeout: .upstreamUnavailable
        case .upstreamReset: .upstreamReset
        case .upstreamConnectTimeout, .upstreamHeaderTimeout, .upstreamIdleTimeout: .upstreamTimeout
        case .upstreamProtocol: .upstreamProtocol
        }
    }
}

extension MalformedMessage {
    /// What the client is told.
    var problem: ProxyProblem {
        switch status {
        case 405: .methodNotAllowed
        case 414: .uriTooLong
        case 417: .expectationFailed
        case 431: .headerTooLarge
        case 505: .versionNotSupported
        default: .badRequest
        }
    }
}
