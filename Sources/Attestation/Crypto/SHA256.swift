internal import COpenSSL

/// The 32 bytes of a SHA-256 (FIPS 180-4).
public struct SHA256Digest: Sendable, Equatable {
    /// In the order of FIPS 180-4.
    public let bytes: InlineArray<32, UInt8>

    /// A digest that was made elsewhere.
    public init(bytes: InlineArray<32, UInt8>) {
        self.bytes = bytes
    }

    public static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
        var difference: UInt8 = 0
        for index in left.bytes.indices {
            difference |= left.bytes[index] ^ right.bytes[index]
        }
        return difference == 0
    }

    /// The digest, read as one big-endian number, modulo `modulus`: how Remote Config makes a
    /// percentile of a digest (docs/app-check-tokens.md 5).
    ///
    /// - Parameter modulus: 1 to 2^32 - 1, ours and never a client's.
    public func remainder(dividingBy modulus: UInt32) -> UInt32 {
        precondition(modulus > 0)
        var remainder: UInt64 = 0
        var index = 0
        while index < 32 {
            let word =
                UInt64(bytes[index]) << 24 | UInt64(bytes[index + 1]) << 16
                | UInt64(bytes[index + 2]) << 8 | UInt64(bytes[index + 3])
            remainder = (remainder << 32 | word) % UInt64(modulus)
            index += 4
        }
        return UInt32(truncatingIfNeeded: remainder)
    }
}

/// SHA-256 of bytes that come in pieces. Allocates nothing.
public struct SHA256: ~Copyable {
    private var context = SHA256_CTX()

    public init() {
        COpenSSL_SHA256_Init(&context)
    }

    /// Adds bytes to what is hashed.
    public mutating func update(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { pointer in
            COpenSSL_SHA256_Update(&context, pointer.baseAddress, pointer.count)
        }
    }

    /// Adds one byte, such as a separator, to what is hashed.
    public mutating func update(_ byte: UInt8) {
        var byte = byte
        COpenSSL_SHA256_Update(&context, &byte, 1)
    }

    /// The digest of everything added.
    public consuming func finalize() -> SHA256Digest {
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        var span = bytes.mutableSpan
        // Safe: SHA256_Final writes exactly 32 bytes, and `bytes` has 32.
        span.withUnsafeMutableBufferPointer { pointer in
            COpenSSL_SHA256_Final(pointer.baseAddress, &context)
        }
        return SHA256Digest(bytes: bytes)
    }

    /// The digest of one run of bytes.
    public static func hash(_ bytes: Span<UInt8>) -> SHA256Digest {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finalize()
    }

    /// The digest of two runs of bytes, one behind the other.
    public static func hash(_ first: Span<UInt8>, _ second: Span<UInt8>) -> SHA256Digest {
        var hash = SHA256()
        hash.update(first)
        hash.update(second)
        return hash.finalize()
    }
}
