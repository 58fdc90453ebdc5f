/// The authority that was read last, as it came and as it is understood: reading the same text again
/// costs a comparison.
struct LastHost {
    /// The text as it came; empty before the first, and after one that was refused.
    private var text: [UInt8] = []
    /// Its canonical host.
    private(set) var host: [UInt8] = []
    /// Its port, or nil when there is none.
    private(set) var port: UInt16?

    /// Whether it came as `bytes`. Never for no bytes at all, which are no authority.
    @inline(__always)
    func isWritten(_ bytes: Span<UInt8>) -> Bool {
        if bytes.isEmpty || bytes.count != text.count { return false }
        for index in bytes.indices where bytes[index] != text[index] { return false }
        return true
    }

    /// Reads the authority in `range`, in place of the last one.
    ///
    /// - Throws: `host`.
    mutating func read(_ bytes: Span<UInt8>, _ range: ByteRange) throws(MalformedMessage) {
        // Requests that are still in hand may share the array.
        host = []
        text.removeAll(keepingCapacity: true)
        port = try Authority.parse(bytes, range, into: &host)
        bytes.slice(range).withUnsafeBufferPointer { text.append(contentsOf: $0) }
    }
}
