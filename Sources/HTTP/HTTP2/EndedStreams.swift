/// The client's last streams that are over for good: those that it ended or reset itself, and those
/// whose numbers it skipped. Another header block for one of them is wrong (RFC 9113, sections 5.1
/// and 5.1.1).
///
/// Streams that we reset are not among them: what was on its way by then is no fault of the client.
/// Nor are those of long ago, which cannot be told from these without remembering all.
struct EndedStreams {
    /// Why a stream is over.
    enum Cause {
        /// The client sent END_STREAM, and the answer is out.
        case ended
        /// The client reset it.
        case reset
        /// The client began one with a higher number.
        case skipped
    }

    private var ended = SIMD8<Int32>.zero
    private var endedCount = 0
    private var reset = SIMD8<Int32>.zero
    private var resetCount = 0
    private var last: Int32 = 0
    private var gap: Range<Int32> = 0..<0

    /// A header block came for a stream; its number may be new.
    mutating func began(_ id: Int32) {
        if id <= last { return }
        if id &- last > 2 { gap = last &+ 1..<id }
        last = id
    }

    /// A stream came to its end after the client's END_STREAM.
    mutating func noteEnd(of id: Int32) {
        ended[endedCount & 7] = id
        endedCount &+= 1
    }

    /// The client reset a stream.
    mutating func noteReset(of id: Int32) {
        reset[resetCount & 7] = id
        resetCount &+= 1
    }

    /// Why the stream is over; nil when it is not, or when that is not remembered.
    func cause(of id: Int32) -> Cause? {
        // Zeroes stand for places that are free.
        if id <= 0 { return nil }
        if any(ended .== SIMD8(repeating: id)) { return .ended }
        if any(reset .== SIMD8(repeating: id)) { return .reset }
        return gap.contains(id) ? .skipped : nil
    }

    /// The client was told about a stream that it reset; once is enough.
    mutating func forgetReset(of id: Int32) {
        reset.replace(with: 0, where: reset .== SIMD8(repeating: id))
    }
}
