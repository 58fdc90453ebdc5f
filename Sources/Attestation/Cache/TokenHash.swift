/// Where a verified token lies in a table: made of bytes of its signature, which are as good as
/// random.
///
/// Hashing a whole token would cost more than finding it. Nobody can choose tokens that collide,
/// because only verified ones are in the table, and their signatures are the issuer's; the seed
/// keeps the order of the table from being known.
struct TokenHash {
    private let first = UInt64.random(in: .min ... .max)
    private let second = UInt64.random(in: .min ... .max)

    /// The hash, never 0; nil for a value too short to be a token.
    @inline(__always)
    func value(of token: Span<UInt8>) -> UInt64? {
        // The last characters stay out: a signature's end can hold bits that are always zero.
        let start = token.count - 24
        guard start >= 0 else { return nil }
        // Safe: both loads lie inside the 24 bytes that were counted.
        let (low, high) = token.withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt64.self)
            )
        }
        let product = (low ^ first).multipliedFullWidth(by: high ^ second)
        return (product.high ^ product.low) | 1
    }
}
