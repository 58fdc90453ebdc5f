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
    /// The session counts it among those without a head.
    var isReserved = false
    private var received = LentBuffer()
    private(set) var outgoing = LentBuffer()
    // Lent by the loop while it is being collected.
    private var head: OutgoingHead?
    /// Bytes at the front of `received` that are a head, which no window counts.
    private(set) var headBytes = 0
    /// The peer said END_STREAM.
    var isReceivingOver = false
    /// The stream ended before its time; the code of RST_STREAM or GOAWAY.
    var resetCode: UInt32?
    /// A head or trailer fields were given to the application.
    var hasHead = false
    /// What the content of the peer's message comes to.
    var tally = ContentTally()
    /// The peer's message is none, and the stream is being reset for it.
    public internal(set) var isMalformed = false
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
    /// Looks since the peer took something of what we write.
    var quietLooks = 0
    private var isHeadDue = false

    private(set) var requestMethod = Method.get
    private(set) var opensWebSocket = false
    private var isHeadWritten = false
    private var contentLeft: UInt64?
    private(set) var isWritingOver = false
    private var trailersToSend: [(name: [UInt8], value: [UInt8])] = []

    init(session: HTTP2Session) {
        self.session = session
    }

    deinit {
        session.unreserve(self)
        received.giveBack(to: session.memory)
        outgoing.giveBack(to: session.memory)
        if let head { session.memory.giveBack(head) }
    }

    // MARK: Reading

    /// There may be bytes to read, or an end.
    public var isReadable: Bool { !received.isEmpty || isReceivingOver || resetCode != nil }

    /// Nobody is there any more to read what we write. The normal end of the peer's message is not
    /// that.
    public var isBroken: Bool { resetCode != nil }

    /// The same: there is no half of a stream to be gone.
    public var isPeerClosed: Bool { resetCode != nil }

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
        if received.isEmpty {
            if isReceivingOver { return .endOfStream }
            if resetCode != nil { throw .connectionReset }
            return .wouldBlock
        }
        // Whoever reads a request's head has a buffer of about the size of ours.
        let isWhole =
            session.role == .server && headBytes > 0 && buffer.isUnused
            && received.count <= buffer.capacity
        let count =
            isWhole
            ? received.moveAll(to: buffer, session.memory)
            : buffer.appendUnsafe { received.move(to: $0, session.memory) }
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
                if head.isHeadRequest { noteRequestMethod(.head) }
                webSocketKey = head.webSocketKey
                if webSocketKey != nil { noteWebSocket() }
                self.head = nil
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
        guard isHeadDue, resetCode == nil, let head = head.take() else { return }
        isHeadDue = false
        let isAlone = isWritingOver && outgoing.isEmpty && trailersToSend.isEmpty
        submit(head, hasContent: !isAlone)
    }

    private func submit(_ head: consuming OutgoingHead, hasContent: Bool) {
        session.submit(head, on: self, hasContent: hasContent)
        session.memory.giveBack(head)
    }

    private func takeContent(_ bytes: UnsafeRawBufferPointer) -> Int {
        if isWritingOver || bytes.isEmpty || contentLeft == 0 { return bytes.count }
        var count = min(bytes.count, max(0, session.limits.outgoingBytes - outgoing.count))
        if let left = contentLeft {
            count = Int(min(UInt64(count), left))
            // Trailer fields may still follow: `finishMessage` is the end.
            contentLeft = left - UInt64(count)
        }
        if count == 0 { return 0 }
        outgoing.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]), session.memory)
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
        if outgoing.isEmpty { return isWritingOver ? .bytes(0, isLast: true) : .nothing }
        let wasFull = outgoing.count >= session.limits.outgoingBytes
        let count = outgoing.move(to: frame, session.memory)
        if count > 0 { quietLooks = 0 }
        if wasFull { waiter?.wake() }
        return .bytes(count, isLast: isWritingOver && outgoing.isEmpty)
    }

    /// Content of the peer's message came.
    func receive(_ bytes: UnsafeRawBufferPointer) {
        if bytes.isEmpty { return }
        received.append(bytes, session.memory)
        waiter?.wake()
    }

    /// A head of the peer's came.
    ///
    /// - Parameter write: Writes its text into a buffer, unless it is malformed.
    /// - Returns: what `write` does.
    func receiveHead(_ write: (ByteBuffer) -> Bool) -> Bool {
        let before = received.count
        let isWritten = received.append(session.memory, write)
        headBytes += received.count - before
        return isWritten
    }

    /// Forgets what came and was not read.
    ///
    /// - Returns: how much of it is content.
    func dropReceived() -> Int {
        let content = received.count - headBytes
        received.giveBack(to: session.memory)
        headBytes = 0
        return content
    }

    /// Trailer fields that are due behind the last content.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] {
        defer { trailersToSend = [] }
        return trailersToSend
    }
}
