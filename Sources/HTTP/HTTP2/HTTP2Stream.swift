public import Reactor

/// One stream of an HTTP/2 connection, with a socket's shape: what is read and written is the text
/// of HTTP/1.1 heads and the bare content behind them. So the story of a request is the same
/// whatever carries it, and one parser judges both protocols.
///
/// - Reading gives the head's text, then content, then `endOfStream` where the peer ended the
///   stream. Trailer fields are in `trailers` by then.
/// - Writing takes one final head, after any number of interim ones, and then content without
///   framing. The handshake of a WebSocket is a head that goes out as an extended CONNECT (RFC 8441),
///   and the answer that opens it reads as 101. `Content-Length` ends the stream by itself; without
///   one, `finishMessage` does. A head says `Transfer-Encoding: chunked` when content of unknown
///   length follows, which is sent as is.
///
/// A stream belongs to its connection's loop and is not thread-safe.
public final class HTTP2Stream: Transport {
    /// Where the task that reads and writes sleeps.
    public var waiter: Waiter?
    /// Trailer fields that came behind the content; those that must not pass are not among them.
    public internal(set) var trailers: [(name: [UInt8], value: [UInt8])] = []
    /// The number of the stream; 0 until a request of ours is sent.
    public internal(set) var id: Int32 = 0

    // A circle, until the session forgets the stream.
    let session: HTTP2Session
    /// The place among the session's streams; -1 when it is not among them.
    var place = -1
    // Lent by the loop while bytes lie in them.
    private var received: ByteBuffer?
    private var outgoing: ByteBuffer?
    private var head: OutgoingHead?
    /// Bytes at the front of `received` that are a head, which no window counts.
    private(set) var headBytes = 0
    /// The peer said END_STREAM.
    var isReceivingOver = false
    /// The stream ended before its time; the code of RST_STREAM or GOAWAY.
    var resetCode: UInt32?
    /// A head or trailer fields were given to the application.
    var hasHead = false
    /// The library waits to be told that there is content again.
    var isDeferred = false
    /// The answer is out, and nobody reads what is still to come of the request.
    var isReceivingUnwanted = false
    /// A head of ours is on its way.
    var hasHeadLeft = false
    /// The last frame of what we write was sent.
    var hasEndLeft = false
    /// The key of the handshake that we sent, for the proof that HTTP/1.1 wants to read.
    private(set) var webSocketKey: [UInt8]?
    private var quietLooks = 0
    private var isHeadDue = false

    private var requestMethod = Method.get
    private var opensWebSocket = false
    private var isHeadWritten = false
    private var contentLeft: UInt64?
    private var isWritingOver = false
    private var trailersToSend: [(name: [UInt8], value: [UInt8])] = []

    init(session: HTTP2Session) {
        self.session = session
    }

    deinit {
        giveBackMemory()
    }

    private func giveBackMemory() {
        if let received { session.memory.giveBack(received) }
        if let outgoing { session.memory.giveBack(outgoing) }
        if let head { session.memory.giveBack(head) }
        received = nil
        outgoing = nil
        head = nil
    }

    // MARK: Reading

    /// There may be bytes to read, or an end.
    public var isReadable: Bool { received != nil || isReceivingOver || resetCode != nil }

    /// Nobody is there any more to read what we write. The normal end of the peer's message is not
    /// that.
    public var isBroken: Bool { resetCode != nil }

    /// The same: there is no half of a stream to be gone.
    public var isPeerClosed: Bool { resetCode != nil }

    /// The peer refused the stream before it did anything (RFC 9113, section 8.7): another
    /// connection may carry the request.
    public var isRefused: Bool { resetCode == HTTP2ErrorCode.refusedStream.rawValue }

    /// Whether the peer takes requests for a WebSocket (RFC 8441, section 3); nil while it did not
    /// say.
    public var takesWebSocket: Bool? { session.takesWebSocket }

    /// Content, or trailer fields, follow the head, whether or not a field says how much (RFC 9113,
    /// section 8.1).
    public internal(set) var hasContent = false

    /// Reads what is there, into the free space of `buffer`, which must have some.
    ///
    /// - Throws: `connectionReset` when the stream was reset.
    public func read(into buffer: ByteBuffer) throws(Errno) -> TransferResult {
        guard let received else {
            if isReceivingOver { return .endOfStream }
            if resetCode != nil { throw .connectionReset }
            return .wouldBlock
        }
        let count = buffer.appendUnsafe { free in
            received.withUnsafeBytes { bytes in
                let count = min(free.count, bytes.count)
                // Safe: `count` is within both, and they belong to different buffers.
                free.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return count
            }
        }
        received.consume(count)
        dropIfEmpty(received)
        let ofHead = min(headBytes, count)
        headBytes -= ofHead
        if count > ofHead { session.consumed(count - ofHead, of: self) }
        return .bytes(count)
    }

    // MARK: Writing

    /// Takes what there is room for of `first` and, behind it, `second`. A head must be whole.
    ///
    /// - Throws: `connectionReset` when the stream was reset, `brokenPipe` when what is written is
    ///   no head.
    public func write(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
    ) throws(Errno) -> TransferResult {
        if resetCode != nil { throw .connectionReset }
        var written = 0
        while !isHeadWritten && written < first.count {
            written += try writeHead(UnsafeRawBufferPointer(rebasing: first[written...]))
        }
        let rest = UnsafeRawBufferPointer(rebasing: first[written...])
        written += takeContent(rest)
        if written == first.count { written += takeContent(second) }
        if written == 0 && first.count + second.count > 0 { return .wouldBlock }
        return .bytes(written)
    }

    /// Nothing follows but these trailer fields, if any.
    public func finishMessage(trailers: [(name: [UInt8], value: [UInt8])]) {
        if isWritingOver || resetCode != nil || !isHeadWritten { return }
        trailersToSend = trailers
        isWritingOver = true
        resume()
    }

    /// Nothing follows.
    public func finishWriting() {
        finishMessage(trailers: [])
    }

    public var carriesOneMessage: Bool { true }

    /// A stream is never used twice.
    public func isQuiet() -> Bool { false }

    /// A message that is not complete is cut off anyhow.
    public func resetOnClose() {
        if !isWritingOver { reset(breakingCode) }
    }

    /// Nothing that the client still sends could matter, and it may never end the stream itself.
    private var isEndedWebSocket: Bool { opensWebSocket && outgoing == nil }

    /// RFC 8441, section 5: what a TCP connection's reset would be.
    private var breakingCode: HTTP2ErrorCode { opensWebSocket ? .cancel : .internalError }

    /// Ends the stream at once in both directions.
    public func breakOff() {
        reset(.cancel)
        ended(HTTP2ErrorCode.cancel.rawValue)
    }

    /// Ends the stream at once in both directions.
    public func reset(_ code: HTTP2ErrorCode) {
        session.reset(self, code)
    }

    /// The application is done with the stream. What was written still goes out; a message that is
    /// not complete is cut off so that the peer can tell.
    public func close() {
        waiter = nil
        if isReceivingUnwanted { return }
        isReceivingUnwanted = true
        session.leftOver(self)
        session.discard(self)
        if resetCode != nil { return }
        if session.role == .client {
            if !isWritingOver || !isReceivingOver { reset(.cancel) }
        } else if !isWritingOver {
            reset(breakingCode)
        } else if !isReceivingOver && isEndedWebSocket {
            reset(.cancel)
        }
    }

    /// The application is done with the stream and looks at it now and then, until the peer is done
    /// with it as well.
    ///
    /// - Parameter patience: After so many looks, a peer that took nothing in between has no more
    ///   time.
    func look(patience: Int) {
        quietLooks += 1
        if hasEndLeft {
            // What is still to come of a request is of no use once the answer is out (RFC 9113,
            // section 8.1). Not at once: clients that still send would take it for a failure.
            reset(.none)
        } else if quietLooks >= patience {
            reset(.cancel)
        }
    }

    private func writeHead(_ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int {
        let head = self.head ?? session.memory.takeHead()
        self.head = head
        let progress: OutgoingHead.Progress
        do throws(MalformedMessage) {
            progress = try head.take(
                bytes,
                of: session.role == .client
                    ? .request : .response(to: requestMethod, opensWebSocket: opensWebSocket))
        } catch {
            throw .brokenPipe
        }
        switch progress {
        case .incomplete: return bytes.count
        case .interim(let count):
            session.submitInterim(head, on: self)
            head.reset()
            return count
        case .final(let count, let content):
            isHeadWritten = true
            switch content {
            case .none, .length(0): isWritingOver = true
            case .length(let length): contentLeft = length
            case .chunked, .untilClose: break
            }
            if session.role == .client {
                webSocketKey = head.webSocketKey
                if webSocketKey != nil { noteWebSocket() }
                submit(head, hasContent: !isWritingOver)
            } else {
                isHeadDue = true
                session.submitSoon(self)
            }
            return count
        }
    }

    /// Sends the head of a response; without content when it is over by now.
    func submitHead() {
        guard isHeadDue, resetCode == nil, let head else { return }
        isHeadDue = false
        let isAlone = isWritingOver && outgoing == nil && trailersToSend.isEmpty
        submit(head, hasContent: !isAlone)
    }

    private func submit(_ head: OutgoingHead, hasContent: Bool) {
        session.submit(head, on: self, hasContent: hasContent)
        session.memory.giveBack(head)
        self.head = nil
    }

    private func takeContent(_ bytes: UnsafeRawBufferPointer) -> Int {
        if isWritingOver || bytes.isEmpty || contentLeft == 0 { return bytes.count }
        let waiting = outgoing?.count ?? 0
        var count = min(bytes.count, max(0, session.limits.outgoingBytes - waiting))
        if let left = contentLeft {
            count = Int(min(UInt64(count), left))
            // Trailer fields may still follow: `finishMessage` is the end.
            contentLeft = left - UInt64(count)
        }
        if count == 0 { return 0 }
        let outgoing = self.outgoing ?? session.memory.takeBuffer()
        self.outgoing = outgoing
        outgoing.append(copying: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        resume()
        return count
    }

    private func resume() {
        if isDeferred {
            isDeferred = false
            session.resume(self)
        } else {
            session.hasOutput()
        }
    }

    // MARK: For the session

    func noteRequestMethod(_ method: Method) {
        requestMethod = method
    }

    func noteWebSocket() {
        opensWebSocket = true
    }

    /// What goes into the next DATA frame.
    enum Pull {
        case bytes(Int, isLast: Bool)
        case nothing
    }

    /// Moves content into a frame.
    func pull(into frame: UnsafeMutableRawBufferPointer) -> Pull {
        guard let outgoing else { return isWritingOver ? .bytes(0, isLast: true) : .nothing }
        let wasFull = outgoing.count >= session.limits.outgoingBytes
        let count = min(frame.count, outgoing.count)
        outgoing.withUnsafeBytes { bytes in
            // Safe: `count` is within both, and the library's frame is not our buffer.
            frame.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        outgoing.consume(count)
        if count > 0 { quietLooks = 0 }
        let isEmpty = outgoing.isEmpty
        if isEmpty {
            session.memory.giveBack(outgoing)
            self.outgoing = nil
        }
        if wasFull { waiter?.wake() }
        return .bytes(count, isLast: isWritingOver && isEmpty)
    }

    /// Content of the peer's message came.
    func receive(_ bytes: UnsafeRawBufferPointer) {
        if bytes.isEmpty { return }
        let received = self.received ?? session.memory.takeBuffer()
        self.received = received
        received.append(copying: bytes)
        waiter?.wake()
    }

    /// A head of the peer's came.
    ///
    /// - Parameter write: Writes its text into a buffer, unless it is malformed.
    /// - Returns: what `write` does.
    func receiveHead(_ write: (ByteBuffer) -> Bool) -> Bool {
        let received = self.received ?? session.memory.takeBuffer()
        self.received = received
        let before = received.count
        let isWritten = write(received)
        headBytes += received.count - before
        dropIfEmpty(received)
        return isWritten
    }

    /// There is a buffer only while something is in it.
    private func dropIfEmpty(_ received: ByteBuffer) {
        if !received.isEmpty { return }
        session.memory.giveBack(received)
        self.received = nil
    }

    /// Forgets what came and was not read.
    ///
    /// - Returns: how much of it is content.
    func dropReceived() -> Int {
        guard let received else { return 0 }
        let content = received.count - headBytes
        session.memory.giveBack(received)
        self.received = nil
        headBytes = 0
        return content
    }

    /// Trailer fields that are due behind the last content.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] {
        defer { trailersToSend = [] }
        return trailersToSend
    }

    /// The peer, or the connection, ended the stream.
    func ended(_ code: UInt32) {
        // A stream that both sides finished is no failure.
        if code == 0 && isReceivingOver { return }
        resetCode = resetCode ?? code
        waiter?.wake()
    }
}

/// Why a stream or a connection ends (RFC 9113, section 7).
public enum HTTP2ErrorCode: UInt32, Sendable {
    case none = 0
    case protocolError = 1
    case internalError = 2
    case refusedStream = 7
    case cancel = 8
    case enhanceYourCalm = 11
}
