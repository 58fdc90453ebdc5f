internal import HTTP
internal import Reactor

/// Who answers for an HTTP/2 connection.
protocol HTTP2LinkOwner: AnyObject {
    /// Bytes came and were taken, or bytes went out.
    func linkMoved()
    /// There is more to read, and others had their turn.
    func linkHasMore()
    /// The connection broke, or the peer ended it; its streams were told.
    func linkClosed()
}

/// Moves bytes between a transport and an HTTP/2 session. It needs no task: its owner calls it when
/// the transport has something, and the loop once after its jobs when streams have written.
final class HTTP2Link {
    /// What is produced in advance of what the transport takes.
    private static let outputLimit = 64 << 10
    /// Reads in a row before others have their turn: a piece of 64 KiB can hold thousands of frames.
    private static let turnLimit = 1
    /// What is read of a connection that failed, so that the peer learns why; more is an attack.
    private static let lingerBytes = 1 << 20

    let transport: any Transport
    let session: HTTP2Session
    /// The session ended the connection; what explains it may still go out.
    var hasFailed: Bool { session.failure != nil }
    private(set) var isClosed = false
    weak var owner: (any HTTP2LinkOwner)?

    private let state: LoopState
    /// What the transport did not take yet; nil when it took all.
    private var pending: ByteBuffer?
    /// When bytes came last.
    private(set) var lastRead: MonotonicInstant
    /// Since when the transport has taken nothing; nil while nothing waits.
    private(set) var stalledSince: MonotonicInstant?
    private var discarded = 0
    private var isContinuationDue = false
    private var isFlushDue = false
    private var hasFinishedWriting = false

    /// Begins a connection; nothing is sent before the loop's jobs have run.
    ///
    /// - Throws: `noMemory`.
    init(
        _ transport: any Transport, role: HTTP2Session.Role, limits: HTTP2Limits, state: LoopState
    ) throws(Errno) {
        self.transport = transport
        self.state = state
        lastRead = state.loop.now
        session = try HTTP2Session(
            role: role, limits: limits, now: state.loop.now, memory: state.http2Memory)
        session.onOutput = { [unowned self] in scheduleFlush() }
        scheduleFlush()
    }

    /// Everything that was said has been taken by the transport.
    var isFlushed: Bool { pending == nil && !isFlushDue && (try? transport.flush()) != false }

    /// Takes what the transport has; of a peer that sends and sends, some of it.
    func readAll() {
        let scratch = state.scratch
        var reads = 0
        while transport.isReadable && !isClosed {
            reads += 1
            if reads > Self.turnLimit {
                return readLater()
            }
            scratch.removeAll()
            switch try? transport.read(into: scratch) {
            case .bytes: take(scratch)
            case .wouldBlock: return
            case .endOfStream, nil: return close()
            }
        }
    }

    private func readLater() {
        if isContinuationDue { return }
        isContinuationDue = true
        state.continueReading(self)
    }

    /// Others had their turn: the owner may go on with what `readAll` left.
    func goOn() {
        isContinuationDue = false
        owner?.linkHasMore()
    }

    /// Takes bytes that came already.
    func take(_ buffer: ByteBuffer) {
        lastRead = state.loop.now
        if hasFailed {
            discarded += buffer.count
            if discarded > Self.lingerBytes { close() }
            return
        }
        do throws(HTTP2Failure) {
            try session.receive(buffer.bytes, now: state.loop.now)
        } catch {
            scheduleFlush()
        }
    }

    /// Sends at the end of this turn of the loop.
    func scheduleFlush() {
        if isFlushDue || isClosed { return }
        isFlushDue = true
        state.flushAfterJobs(self)
    }

    /// The transport may take what it did not take before.
    func resumeSending() {
        _ = try? transport.flush()
        if pending != nil { scheduleFlush() }
    }

    /// Sends what the session and its streams have to say.
    func flush() {
        isFlushDue = false
        if isClosed { return }
        let output = pending ?? state.scratch
        if pending == nil { output.removeAll() }
        var hasMore = true
        while hasMore || !output.isEmpty {
            if hasMore && output.count < Self.outputLimit {
                hasMore = session.produce(into: output, limit: Self.outputLimit)
            }
            if output.isEmpty { break }
            let result = try? output.withUnsafeBytes { bytes throws(Errno) in
                try transport.write(bytes)
            }
            guard case .bytes(let count)? = result else {
                if result == nil { return close() }
                break
            }
            output.consume(count)
            if count > 0 { stalledSince = nil }
        }
        keep(output)
        owner?.linkMoved()
    }

    /// Keeps what was not taken: the loop's own buffer is for everybody.
    private func keep(_ output: ByteBuffer) {
        if output.isEmpty {
            pending = nil
            stalledSince = nil
            return
        }
        if stalledSince == nil { stalledSince = state.loop.now }
        if pending == nil {
            let kept = ByteBuffer(capacity: output.count)
            kept.append(output.bytes)
            output.removeAll()
            pending = kept
        }
    }

    /// Ends our side, once.
    func finishWriting() {
        if hasFinishedWriting { return }
        hasFinishedWriting = true
        transport.finishWriting()
    }

    /// Gives the connection up; its streams fail.
    func close() {
        if isClosed { return }
        isClosed = true
        session.abandon()
        owner?.linkClosed()
    }
}
