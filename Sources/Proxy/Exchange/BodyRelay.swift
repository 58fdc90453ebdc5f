internal import HTTP
internal import Reactor

/// How far a relay came, and what it needs to go on.
enum RelayProgress {
    case complete
    case needsSource
    case needsSink
    /// A lot was moved at once: others should have their turn.
    case pausing
    /// The source ended or broke inside the body.
    case sourceFailed
    /// The sink takes nothing more.
    case sinkFailed
    case malformed(MalformedMessage)
    case tooLarge
}

/// Moves one message body from a socket to another, whatever its size, through bounded memory: it
/// reads only when what it read before is on its way.
///
/// What waits in the sink's buffer (the head, framing) goes out with the first content in one
/// system call.
struct BodyRelay {
    /// Content up to this size is copied behind the head; a second vector would cost more.
    private static let copyLimit = 4 << 10
    private static let outputLimit = 16 << 10
    private static let smallRead = 16 << 10
    /// For a body that fills small reads.
    private static let largeRead = 48 << 10
    private static let turnLimit = 512 << 10

    private var decoder: BodyDecoder
    private let endsWithSource: Bool
    private let isChunked: Bool
    private let limit: UInt64
    private var chunkLeft = 0
    private var isContentComplete = false
    private var readSize = smallRead
    /// Content bytes moved.
    private(set) var contentBytes: UInt64 = 0
    /// Trailer fields that came behind the body; they go on with it where it is chunked.
    private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []
    /// Something, be it a part of the head, was taken by the sink.
    private(set) var hasSunk = false
    /// Grows whenever the source gave or the sink took something.
    private(set) var activity: UInt64 = 0

    /// - Parameters:
    ///   - incoming: How the source delimits the body.
    ///   - outgoing: How the sink is told: `chunked`, or as is.
    ///   - limit: Content bytes that are allowed.
    init(incoming: BodyFraming, outgoing: BodyFraming, limit: UInt64 = .max) {
        decoder = BodyDecoder(incoming)
        endsWithSource = incoming == .untilClose
        isChunked = outgoing == .chunked
        self.limit = limit
    }

    /// How `source` delimits a body whose head says `framing`. On a stream of its own the end of the
    /// stream does, as trailer fields may follow content of known length (RFC 9113, section 8.1);
    /// that the content has that length is seen to where frames are read.
    static func framing(_ framing: BodyFraming, from source: any Transport) -> BodyFraming {
        if case .length = framing, source.carriesOneMessage { return .untilClose }
        return framing
    }

    /// Moves what can be moved now.
    mutating func advance(
        from source: any Transport, _ input: ByteBuffer, to sink: any Transport,
        _ output: ByteBuffer
    ) -> RelayProgress {
        var moved = 0
        while !isContentComplete {
            let step: BodyStep
            do throws(MalformedMessage) {
                step = try decoder.next(input.bytes)
            } catch {
                return .malformed(error)
            }
            switch step {
            case .content(let skip, let count):
                input.consume(skip)
                if UInt64(count) > limit - contentBytes { return .tooLarge }
                switch move(count, input, to: sink, output) {
                case .moved(let bytes): moved += bytes
                case .blocked: return .needsSink
                case .failed: return .sinkFailed
                }
                if moved > Self.turnLimit { return .pausing }
            case .needsMore(let skip):
                input.consume(skip)
                input.reserve(readSize)
                switch readMore(from: source, input) {
                case .bytes(let count):
                    activity &+= 1
                    if count >= Self.smallRead && input.count == count { readSize = Self.largeRead }
                case .wouldBlock: return flush(output, to: sink) ?? .needsSource
                case .endOfStream:
                    if !endsWithSource { return .sourceFailed }
                    trailers = source.trailers
                    finishContent(output)
                // A connection that broke did not end: something may be missing.
                case nil: return .sourceFailed
                }
            case .end(let skip):
                input.consume(skip)
                trailers = decoder.trailers
                finishContent(output)
            }
        }
        return flush(output, to: sink) ?? .complete
    }

    private enum Move {
        case moved(Int)
        case blocked, failed
    }

    private mutating func move(
        _ available: Int, _ input: ByteBuffer, to sink: any Transport, _ output: ByteBuffer
    ) -> Move {
        if isChunked && chunkLeft == 0 {
            output.appendChunkHeader(available)
            chunkLeft = available
        }
        let count = isChunked ? min(available, chunkLeft) : available
        if count <= Self.copyLimit && output.count < Self.outputLimit {
            output.append(input.bytes.extracting(first: count))
            take(count, input, output)
            return .moved(count)
        }
        let waiting = output.count
        let result = try? output.withUnsafeBytes { head throws(Errno) in
            try input.withUnsafeBytes { content throws(Errno) in
                try sink.write(head, UnsafeRawBufferPointer(rebasing: content[..<count]))
            }
        }
        guard case .bytes(let written)? = result else { return result == nil ? .failed : .blocked }
        hasSunk = hasSunk || written > 0
        activity &+= 1
        output.consume(min(written, waiting))
        let taken = max(0, written - waiting)
        take(taken, input, output)
        // A sink that took a part may take more at once: only when it says so, something wakes us.
        return .moved(taken)
    }

    private mutating func take(_ count: Int, _ input: ByteBuffer, _ output: ByteBuffer) {
        input.consume(count)
        decoder.consumed(count)
        contentBytes += UInt64(count)
        if isChunked && count > 0 {
            chunkLeft -= count
            if chunkLeft == 0 { output.append("\r\n") }
        }
    }

    private mutating func finishContent(_ output: ByteBuffer) {
        isContentComplete = true
        if isChunked { output.appendLastChunk(trailers: trailers) }
    }

    /// nil when everything went out.
    private mutating func flush(_ output: ByteBuffer, to sink: any Transport) -> RelayProgress? {
        while !output.isEmpty {
            let result = try? output.withUnsafeBytes { bytes throws(Errno) in try sink.write(bytes)
            }
            guard case .bytes(let count)? = result else {
                return result == nil ? .sinkFailed : .needsSink
            }
            hasSunk = true
            activity &+= 1
            output.consume(count)
        }
        // TLS may hold what the socket did not take.
        switch try? sink.flush() {
        case true?: return nil
        case false?: return .needsSink
        case nil: return .sinkFailed
        }
    }

    /// nil when the connection broke.
    private func readMore(from source: any Transport, _ input: ByteBuffer) -> TransferResult? {
        do throws(Errno) {
            return try source.read(into: input)
        } catch {
            return nil
        }
    }
}
