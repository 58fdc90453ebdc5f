internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// How the dialogue with one upstream connection ended.
enum TransactionEnd {
    /// An answer went to the client, whole or, with a failure in the record, cut off.
    case answered(Fate, isReusable: Bool)
    /// Provably no byte left for the server.
    case nothingSent
    /// The server said that it did nothing with the request.
    case refused
    /// The connection ended behind bytes of the request and before a single byte of an answer.
    case unanswered
    /// Failed before any byte of an answer went to the client.
    case failed(RequestFailure)
}

/// Where a transaction stands.
struct Transaction {
    /// What it waits for when nothing moves any more.
    enum Obstacle {
        case clientBody, upstreamIntake, answerHead, answerBody, clientIntake
    }

    /// The connection to the client. It stays what it is for as long as the transaction lasts, and
    /// asking the client for it counts a reference each time.
    let client: any Transport
    /// The connection to the server.
    let server: any Transport
    /// The server's pool, for its time-outs.
    let pool: UpstreamPool
    /// Reads the answer's head. Backends are trusted with larger heads than clients.
    var parser = ResponseParser(limits: HeadLimits(bytes: 64 << 10, fields: 256))
    /// The request is not complete yet.
    var isUploading = true
    /// The server stopped reading before the request was complete.
    var hasUploadBroken = false
    /// The relay of the answer's body, once its head is there.
    var download: BodyRelay?
    /// What is waited for; it chooses the time-out and says whose fault one is.
    var obstacle = Obstacle.answerHead
    /// Much was moved: other connections of the loop have their turn first.
    var isPausing = false
    /// When a byte moved last, in either direction.
    var lastProgress: MonotonicInstant
    /// The relays' activity at `lastProgress`.
    var activity: UInt64 = 0
    /// Interim answers so far.
    var interimCount = 0
    /// How long the client may still be waited for: for the body, and to take the answer.
    var uploadAllowance = RateAllowance()
    var answerAllowance = RateAllowance()
    /// The server opened the WebSocket that was asked for.
    var isSwitched = false

    /// Nobody but the client holds the request up.
    var isClientAwaited: Bool { obstacle == .clientBody || obstacle == .clientIntake }
}

/// One request and one answer over a connected upstream: both directions at once, in one task.
extension Exchange {
    /// An upstream that sends more interim answers than this has lost its way.
    private static let interimLimit = 32

    /// Sends the request and relays the answer as both come: tries everything that can move, then
    /// sleeps.
    @inline(__always)
    func transact(
        _ client: ClientConnection, _ server: any Transport, _ pool: UpstreamPool,
        _ upload: inout BodyRelay
    ) async -> TransactionEnd {
        var transaction = Transaction(
            client: client.transport, server: server, pool: pool, lastProgress: state.loop.now)
        while true {
            transaction.obstacle = .answerHead
            transaction.isPausing = false
            if let end = sendMore(&transaction, &upload) { return end }
            if let end = receiveHead(client, &transaction) { return end }
            if transaction.isSwitched { return await tunnel(client, transaction) }
            if let end = receiveMore(&transaction) { return end }

            let activity = upload.activity &+ (transaction.download?.activity ?? 0)
            if activity != transaction.activity {
                transaction.activity = activity
                transaction.lastProgress = state.loop.now
            }
            if transaction.isPausing {
                await Task.yield()
                continue
            }
            // Looked at before the wait, not after it: a client that sent its request and closed at
            // once woke nobody. While a body is still to come, its end or its lack shows when it is
            // read.
            if transaction.client.isPeerClosed
                && (!transaction.isUploading || transaction.client.isBroken)
            {
                return clientIsGone(transaction)
            }
            if transaction.isClientAwaited {
                let uploaded = upload.contentBytes
                if let end = await awaitClient(client, &transaction, uploaded: uploaded) {
                    return end
                }
                continue
            }
            let deadline = transaction.lastProgress.advanced(
                byNanoseconds: patience(transaction))
            if await client.waiter.wait(until: deadline) == .timedOut {
                return timedOut(transaction)
            }
        }
    }

    // MARK: Towards the server

    private func sendMore(
        _ transaction: inout Transaction, _ upload: inout BodyRelay
    ) -> TransactionEnd? {
        if !transaction.isUploading { return nil }
        switch upload.advance(
            from: transaction.client, input, to: transaction.server, upstreamOutput)
        {
        case .complete:
            transaction.isUploading = false
            // What follows a handshake is no content of it, and goes the same way.
            if !head.wantsWebSocket {
                transaction.server.finishMessage(trailers: upload.trailers)
            }
        case .needsSource: transaction.obstacle = .clientBody
        case .needsSink: transaction.obstacle = .upstreamIntake
        case .pausing: transaction.isPausing = true
        case .sourceFailed: return clientIsGone(transaction)
        case .malformed(let error):
            record.malformed = error.kind
            return broken(.malformed, transaction)
        case .tooLarge: return broken(.bodyTooLarge, transaction)
        case .sinkFailed:
            if !upload.hasSunk { return .nothingSent }
            // It may have answered before it stopped reading: look for that.
            transaction.isUploading = false
            transaction.hasUploadBroken = true
        }
        return nil
    }

    // MARK: Towards the client

    private func receiveHead(_ client: ClientConnection, _ transaction: inout Transaction)
        -> TransactionEnd?
    {
        let upstreamInput = self.upstreamInput
        while transaction.download == nil && !transaction.isSwitched {
            do throws(MalformedMessage) {
                if try transaction.parser.parse(
                    upstreamInput.bytes, requestMethod: head.method, into: &answer)
                {
                    if let end = takeHead(client, &transaction) { return end }
                    continue
                }
            } catch {
                record.malformed = error.kind
                return .failed(.upstreamProtocol)
            }
            upstreamInput.reserve(4096)
            switch try? transaction.server.read(into: upstreamInput) {
            case .bytes: continue
            case .wouldBlock: return nil
            case .endOfStream:
                return upstreamInput.isEmpty ? brokenOff(transaction) : .failed(.upstreamProtocol)
            case nil: return brokenOff(transaction)
            }
        }
        return nil
    }

    /// The server ended the dialogue before its answer was there.
    private func brokenOff(_ transaction: Transaction) -> TransactionEnd {
        if transaction.server.isMalformed { return .failed(.upstreamProtocol) }
        if !upstreamInput.isEmpty || transaction.interimCount > 0 { return .failed(.upstreamReset) }
        return transaction.server.isRefused ? .refused : .unanswered
    }

    private func takeHead(_ client: ClientConnection, _ transaction: inout Transaction)
        -> TransactionEnd?
    {
        if answer.status == 101 { return takeSwitch(&transaction) }
        // To a client of HTTP/2 it would say that the WebSocket is open (RFC 8441, section 5).
        if head.wantsWebSocket && transaction.client.carriesOneMessage && answer.isSuccess {
            return .failed(.upstreamProtocol)
        }
        if answer.isInformational {
            transaction.interimCount += 1
            if transaction.interimCount > Self.interimLimit { return .failed(.upstreamProtocol) }
            writeInterimHead()
            upstreamInput.consume(answer.length)
            transaction.parser.reset()
            return sendOutput(transaction.client) ? nil : clientIsGone(transaction)
        }
        let framing = writeAnswerHead(
            client, isBodyOutstanding: transaction.isUploading || transaction.hasUploadBroken)
        upstreamInput.consume(answer.length)
        record.status = answer.status
        // A server may end a stream without content by a frame of its own.
        let isEndOutstanding = answer.framing == .none && transaction.server.hasContent
        transaction.download = BodyRelay(
            incoming: isEndOutstanding
                ? .untilClose : BodyRelay.framing(answer.framing, from: transaction.server),
            outgoing: framing)
        return nil
    }

    /// 101 answers a handshake, and only a whole and proper one (pitfalls W6, W7).
    private func takeSwitch(_ transaction: inout Transaction) -> TransactionEnd? {
        if transaction.isUploading || !isHandshakeAnswered { return .failed(.upstreamProtocol) }
        writeSwitchingHead()
        upstreamInput.consume(answer.length)
        record.status = answer.status
        transaction.isSwitched = true
        return nil
    }

    private func receiveMore(_ transaction: inout Transaction) -> TransactionEnd? {
        guard
            let progress = transaction.download?.advance(
                from: transaction.server, upstreamInput, to: transaction.client, output)
        else { return nil }
        record.bytesOut = transaction.download?.contentBytes ?? 0
        switch progress {
        case .complete:
            transaction.client.finishMessage(trailers: transaction.download?.trailers ?? [])
            return completed(transaction)
        case .needsSource:
            if !transaction.isUploading { transaction.obstacle = .answerBody }
        case .needsSink: transaction.obstacle = .clientIntake
        case .pausing: transaction.isPausing = true
        case .sinkFailed: return clientIsGone(transaction)
        case .sourceFailed where transaction.server.isMalformed:
            return brokenAnswer(.upstreamProtocol, transaction)
        case .sourceFailed, .tooLarge: return brokenAnswer(.upstreamReset, transaction)
        case .malformed(let error):
            record.malformed = error.kind
            return brokenAnswer(.upstreamProtocol, transaction)
        }
        return nil
    }

    // MARK: Ends

    private func completed(_ transaction: Transaction) -> TransactionEnd {
        let isRequestSent = !transaction.isUploading && !transaction.hasUploadBroken
        if !isRequestSent { return .answered(.linger, isReusable: false) }
        let isReusable =
            answer.isPersistent && answer.framing != .untilClose
            && upstreamInput.isEmpty && !transaction.server.carriesOneMessage
        return .answered(willPersist ? .keepAlive : .close, isReusable: isReusable)
    }

    /// The request itself turned out to be wrong while it was forwarded.
    func broken(_ failure: RequestFailure, _ transaction: Transaction) -> TransactionEnd {
        transaction.download == nil ? .failed(failure) : cutOff(failure)
    }

    /// The answer broke off. As long as none of it has left, there is time for an honest one.
    private func brokenAnswer(
        _ failure: RequestFailure, _ transaction: Transaction
    ) -> TransactionEnd {
        let hasLeft = transaction.download?.hasSunk ?? false
        // An interim answer may lie half sent in the same buffer.
        if hasLeft || transaction.interimCount > 0 { return cutOff(failure) }
        output.removeAll()
        return .failed(failure)
    }

    private func clientIsGone(_ transaction: Transaction) -> TransactionEnd {
        if transaction.client.isMalformed { return broken(.malformed, transaction) }
        record.failure = .clientAborted
        return .answered(.close, isReusable: false)
    }

    /// A part of the answer is out; what is left to say is that it is not complete.
    func cutOff(_ failure: RequestFailure) -> TransactionEnd {
        record.failure = failure
        return .answered(.reset, isReusable: false)
    }

    /// Nothing moved for too long.
    func timedOut(_ transaction: Transaction) -> TransactionEnd {
        switch transaction.obstacle {
        case .clientBody: broken(.clientTimeout, transaction)
        case .upstreamIntake: broken(.upstreamIdleTimeout, transaction)
        case .answerHead: .failed(.upstreamHeaderTimeout)
        case .answerBody: cutOff(.upstreamIdleTimeout)
        case .clientIntake: cutOff(.clientTimeout)
        }
    }

    private func patience(_ transaction: Transaction) -> Int64 {
        switch transaction.obstacle {
        // Whoever waits for the client has a patience of its own.
        case .clientBody, .clientIntake: .max
        case .upstreamIntake, .answerBody: transaction.pool.idleNanoseconds
        case .answerHead: transaction.pool.responseHeadNanoseconds
        }
    }

    /// Sends what is in `output`; what the client does not take now goes out with what follows.
    /// False when the client is gone.
    private func sendOutput(_ client: any Transport) -> Bool {
        while !output.isEmpty {
            let result = try? output.withUnsafeBytes { bytes throws(Errno) in
                try client.write(bytes)
            }
            guard let result else { return false }
            guard case .bytes(let count) = result else { return true }
            output.consume(count)
        }
        return true
    }
}
