internal import CNGHTTP2
public import Reactor

/// One HTTP/2 connection (RFC 9113) without its socket: bytes go in, bytes come out, and each stream
/// is an `HTTP2Stream`. Framing, HPACK and flow control are nghttp2's; what a message may be and
/// what a connection may cost is decided here.
///
/// A session belongs to one event loop and is not thread-safe.
public final class HTTP2Session {
    public enum Role: Sendable {
        /// We accepted the connection.
        case server
        /// We opened it.
        case client
    }

    /// Which side we are.
    public let role: Role
    /// What the connection may cost.
    public let limits: HTTP2Limits
    /// Requests go over TLS: their scheme is https.
    public var isSecure = false
    /// Called for each request, once its head is there.
    public var onRequest: (HTTP2Stream) -> Void = { _ in }
    /// Called when there is something to send, once until `produce`.
    public var onOutput: () -> Void = {}
    /// Called when another stream of ours may begin, since one ended or the peer said how many may.
    public var onCapacity: () -> Void = {}
    /// Called for each stream of the peer's that was refused because there were too many.
    public var onRefusal: () -> Void = {}
    /// The peer takes no more streams on this connection; those under way go on.
    public internal(set) var isGoingAway = false
    /// The peer said how many streams it takes.
    public internal(set) var isGreeted = false
    /// Why we ended the connection; nil while we did not.
    public internal(set) var failure: HTTP2Failure?

    // Safe: made in `init`, freed in `deinit`, and used by this object's loop alone.
    private(set) var pointer: OpaquePointer?
    let memory: HTTP2Memory
    /// Where the header block is collected that is under way.
    private(set) var assembly: HeadAssembly?
    // The same, for the call that is made for each field: counting a reference there would cost more
    // than adding the field. Safe: set and cleared with `assembly`, and used only within a call.
    private var fields: Unmanaged<HeadAssembly>?
    /// The streams under way, in no order; the library knows each by a pointer, too.
    private(set) var streams: [HTTP2Stream] = []
    /// Streams for requests of ours whose head was not written yet: the library does not know them.
    var reservedCount = 0
    /// What the peer may still do that moves nothing.
    var allowance: PeerAllowance
    private(set) var now: MonotonicInstant
    /// When the header block began that is not complete yet.
    public private(set) var headBegan: MonotonicInstant?
    private var headStream: Int32 = 0
    /// Which of the client's streams nothing more may come for.
    var ended = EndedStreams()
    /// Streams that the application is done with and the peer is not.
    public private(set) var leftoverCount = 0
    private(set) var isAbandoned = false
    /// Streams whose head goes out with the next bytes.
    private var dueHeads = Backlog<HTTP2Stream>()
    private var isOutputAnnounced = false
    private var windowUpdates = 256
    /// Requests that came with the bytes that are being taken.
    private var arrivals = Backlog<HTTP2Stream>()

    /// A connection whose first bytes are to be exchanged.
    ///
    /// - Parameter memory: What the streams borrow from; shared by the connections of a loop.
    /// - Throws: `noMemory`.
    public init(
        role: Role, limits: HTTP2Limits, now: MonotonicInstant, memory: HTTP2Memory = HTTP2Memory()
    ) throws(Errno) {
        self.role = role
        self.limits = limits
        self.now = now
        self.memory = memory
        allowance = PeerAllowance(limits, now: now)
        pointer = HTTP2Callbacks.makeSession(role: role, for: self)
        if pointer == nil { throw .noMemory }
        submitSettings()
        isOutputAnnounced = true
    }

    deinit {
        nghttp2_session_del(pointer)
    }

    /// Streams that are under way.
    public var streamCount: Int { streams.count + reservedCount }

    /// Whether a stream is under way: from the moment at which `openStream` gave it, or else the
    /// connection could be closed before the request is on it.
    public var hasStreams: Bool { !streams.isEmpty || reservedCount > 0 }

    /// Neither side has anything to say any more.
    public var isOver: Bool {
        nghttp2_session_want_read(pointer) == 0 && nghttp2_session_want_write(pointer) == 0
    }

    // MARK: Bytes

    /// Takes bytes that the peer sent.
    ///
    /// - Throws: when the connection has to end; send what `produce` still gives, then close.
    public func receive(_ bytes: Span<UInt8>, now: MonotonicInstant) throws(HTTP2Failure) {
        self.now = now
        let result = bytes.withUnsafeBytes { bytes in
            nghttp2_session_mem_recv(
                pointer, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        if let failure {
            arrivals.removeAll()
            throw failure
        }
        if result < 0 {
            arrivals.removeAll()
            let failure: HTTP2Failure =
                switch Int32(clamping: result) {
                case NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue: .preface
                // The library counts what it has to acknowledge.
                case NGHTTP2_ERR_FLOODED.rawValue: .flood
                default: .protocolError
                }
            end(failure, code: failure == .flood ? .enhanceYourCalm : .protocolError)
            throw failure
        }
        startArrivals()
        if nghttp2_session_want_write(pointer) != 0 { hasOutput() }
    }

    /// Requests begin when the library is done with the bytes. One that was reset by then never
    /// begins, which is all that a flood of those gets (pitfall W9); one whose content turned out to
    /// be wrong begins, so that somebody says so.
    private func startArrivals() {
        while !arrivals.isEmpty {
            let streams = arrivals.take()
            for stream in streams {
                if stream.isBroken && !stream.isMalformed {
                    discard(stream)
                } else {
                    onRequest(stream)
                }
            }
            arrivals.reuse(streams)
        }
    }

    func arrived(_ stream: HTTP2Stream) {
        arrivals.append(stream)
    }

    /// Appends what is to be sent, until `output` holds about `limit` bytes.
    ///
    /// - Returns: whether there is more.
    public func produce(into output: ByteBuffer, limit: Int) -> Bool {
        isOutputAnnounced = false
        submitDueHeads()
        while output.count < limit {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(pointer, &bytes)
            guard count > 0, let bytes else { return false }
            output.reserve(count)
            _ = output.appendUnsafe { free in
                // Safe: the library gave `count` bytes that are valid until its next call.
                free.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count))
                return count
            }
        }
        return true
    }

    // MARK: The life of the connection

    /// The connection is gone: every stream with it, and whoever listened.
    public func abandon() {
        isAbandoned = true
        onRequest = { _ in }
        onOutput = {}
        onCapacity = {}
        onRefusal = {}
        arrivals.removeAll()
        dueHeads.removeAll()
        let ended = streams
        streams.removeAll()
        for stream in ended {
            stream.place = -1
            // What never left cannot have been acted upon.
            let isUntouched = role == .client && !stream.hasHeadLeft
            stream.ended((isUntouched ? HTTP2ErrorCode.refusedStream : .cancel).rawValue)
        }
    }

    /// Asks the peer for a sign of life.
    public func ping() {
        nghttp2_submit_ping(pointer, 0, nil)
        hasOutput()
    }

    /// Looks at the streams that the application is done with, and resets those that the peer does
    /// not end.
    ///
    /// - Parameter patience: After so many calls, a peer that took nothing of an answer in between
    ///   has no more time.
    public func dropLeftovers(patience: Int) {
        for stream in streams where stream.isReceivingUnwanted {
            stream.look(patience: patience)
        }
    }

    func hasOutput() {
        if isOutputAnnounced { return }
        isOutputAnnounced = true
        onOutput()
    }

    // MARK: Streams

    func stream(_ id: Int32) -> HTTP2Stream? {
        // What the library still knows then is not there any more.
        if isAbandoned { return nil }
        // Safe: `began` gave the library this pointer, and `streams` holds the object until the
        // library says that the stream is closed, or until the session is abandoned.
        return nghttp2_session_get_stream_user_data(pointer, id).map {
            Unmanaged<HTTP2Stream>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// Calls `body` with a stream that it does not make the session forget; nil when there is none.
    @inline(__always)
    func withStream<Result>(_ id: Int32, _ body: (HTTP2Stream) -> Result) -> Result? {
        if isAbandoned { return nil }
        // Safe: as in `stream(_:)`, and as `body` lets go of nothing, the object outlives it.
        return nghttp2_session_get_stream_user_data(pointer, id).map {
            Unmanaged<HTTP2Stream>.fromOpaque($0)._withUnsafeGuaranteedRef(body)
        }
    }

    func beganHead(of stream: HTTP2Stream, id: Int32) {
        headBegan = now
        headStream = id
        began(stream, id: id)
    }

    func beginAssembly(isTrailing: Bool, answersHandshake: Bool) {
        let assembly = self.assembly ?? memory.takeAssembly()
        assembly.limits = limits.head
        assembly.begin(isTrailing: isTrailing, answersHandshake: answersHandshake)
        fields = Unmanaged.passUnretained(assembly)
        self.assembly = assembly
    }

    /// A field of the block that is under way came.
    ///
    /// - Returns: false when it is too much of it.
    @inline(__always)
    func addField(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        guard let fields else { return true }
        return fields._withUnsafeGuaranteedRef { $0.add(name, value) }
    }

    func endAssembly() {
        fields = nil
        if let assembly = assembly.take() { memory.giveBack(assembly) }
    }

    func endedHead() {
        headBegan = nil
    }

    func began(_ stream: HTTP2Stream, id: Int32) {
        unreserve(stream)
        stream.id = id
        if isAbandoned { return }
        stream.place = streams.count
        streams.append(stream)
        nghttp2_session_set_stream_user_data(
            pointer, id, Unmanaged.passUnretained(stream).toOpaque())
    }

    func forget(_ stream: HTTP2Stream) {
        guard stream.place >= 0, let last = streams.popLast() else { return }
        if last !== stream {
            streams[stream.place] = last
            last.place = stream.place
        }
        stream.place = -1
        if stream.isReceivingUnwanted { leftoverCount -= 1 }
        if stream.id == headStream { endedHead() }
    }

    func leftOver(_ stream: HTTP2Stream) {
        if stream.place >= 0 { leftoverCount += 1 }
    }

    // MARK: Heads

    /// The head goes out with the next bytes: by then it is known whether content follows, and one
    /// that stands alone ends its stream itself.
    func submitSoon(_ stream: HTTP2Stream) {
        dueHeads.append(stream)
        hasOutput()
    }

    private func submitDueHeads() {
        if dueHeads.isEmpty { return }
        let streams = dueHeads.take()
        for stream in streams { stream.submitHead() }
        dueHeads.reuse(streams)
    }
}
