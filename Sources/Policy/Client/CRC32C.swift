/// Castagnoli's checksum (RFC 9260, appendix A), a byte at a time: for a header now and then.
struct CRC32C {
    private var state: UInt32 = .max

    /// The checksum of what was added.
    var value: UInt32 { ~state }

    /// Adds one byte.
    mutating func add(_ byte: UInt8) {
        state ^= UInt32(byte)
        for _ in 0..<8 {
            let isOdd = state & 1 != 0
            state >>= 1
            if isOdd { state ^= 0x82f6_3b78 }
        }
    }
}
