internal import HTTP
internal import Reactor

/// One direction of a tunnel: bytes as they come, whatever they mean.
///
/// It reads only when what it read before is on its way, so no more than one `chunk` waits, and
/// while nothing waits it needs no memory: what is read lies in a buffer of the loop.
struct TunnelLeg {
    /// What is read at once.
    static let chunk = 64 << 10
    private static let turnLimit = 512 << 10

    enum Progress {
        /// Nothing can be moved now.
        case waiting
        /// A lot was moved at once: others should have their turn.
        case pausing
        /// The source broke: there is nobody left at that end.
        case sourceFailed
        /// The sink takes nothing more; what came for it is gone.
        case sinkFailed
    }

    private let source: any Transport
    private let sink: any Transport
    private let waiting: ByteBuffer
    /// Bytes at the front of `waiting` that belong to the handshake.
    private var headLeft: Int
    private var hasSourceEnded = false
    /// The source ended and the sink was told, or takes no more.
    private(set) var isOver = false
    /// Bytes that the sink took.
    private(set) var bytes: UInt64 = 0
    /// Grows whenever the source gave or the sink took something.
    private(set) var activity: UInt64 = 0

    /// - Parameters:
    ///   - waiting: What the sink has not taken yet; the leg keeps what it must here.
    ///   - head: How many bytes of that belong to the handshake.
    init(
        from source: any Transport, to sink: any Transport, waiting: ByteBuffer, head: Int = 0
    ) {
        self.source = source
        self.sink = sink
        self.waiting = waiting
        headLeft = head
    }

    /// Moves what can be moved now.
    ///
    /// - Parameter scratch: Room for a chunk, empty before and after.
    mutating func advance(_ scratch: ByteBuffer) -> Progress {
        var moved = 0
        while !isOver {
            if !waiting.isEmpty {
                guard let count = write(waiting) else { return endWithoutSink() }
                if count == 0 { return .waiting }
                moved += count
                if waiting.isEmpty { waiting.shrink(above: 64, to: 64) }
            } else if hasSourceEnded {
                sink.finishWriting()
                isOver = true
            } else {
                scratch.removeAll()
                scratch.reserve(Self.chunk)
                switch try? source.read(into: scratch) {
                case .bytes: activity &+= 1
                case .wouldBlock: return .waiting
                case .endOfStream:
                    hasSourceEnded = true
                    continue
                case nil: return .sourceFailed
                }
                guard let count = write(scratch) else { return endWithoutSink() }
                moved += count
                waiting.append(scratch.bytes)
                scratch.removeAll()
            }
            if moved > Self.turnLimit { return .pausing }
        }
        return .waiting
    }

    private mutating func endWithoutSink() -> Progress {
        isOver = true
        waiting.removeAll()
        return .sinkFailed
    }

    /// - Returns: how many bytes the sink took; nil when it takes nothing more.
    private mutating func write(_ buffer: ByteBuffer) -> Int? {
        let result = try? buffer.withUnsafeBytes { bytes throws(Errno) in try sink.write(bytes) }
        switch result {
        case .bytes(let count):
            buffer.consume(count)
            let ofHead = min(headLeft, count)
            headLeft -= ofHead
            bytes += UInt64(count - ofHead)
            activity &+= 1
            return count
        case .wouldBlock: return 0
        case .endOfStream, nil: return nil
        }
    }
}
