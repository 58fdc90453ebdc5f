internal import Attestation

/// The share of a route's clients that is enforced: who is in, and who is only monitored.
///
/// A client's place is SHA-256(seed "." key), read as one unsigned number, modulo 100,000,000. It
/// is the same on every event loop, in every process and after every restart, and a client that is
/// inside stays inside when the share grows (pitfall M2). The rule is Remote Config's
/// (docs/app-check-tokens.md 5), so that with equal seeds and ids a roll-out there and one here
/// pick the same clients; like there, a place equal to the limit is inside. Nobody is inside a
/// share of 0.
public struct EnforcedShare: Sendable, Equatable {
    /// 100 %, in millionths of a percent.
    public static let everybody: UInt32 = 100_000_000

    /// Millionths of a percent, 0 to 100,000,000.
    public let limit: UInt32
    /// Makes two routes with equal shares pick different clients. Empty: the key alone is hashed,
    /// as in Remote Config.
    public let seed: [UInt8]

    public init(seed: String, limit: UInt32) {
        self.seed = Array(seed.utf8)
        self.limit = min(limit, Self.everybody)
    }

    /// Whether the client with this key is enforced. Does not allocate.
    public func isInside(_ key: Span<UInt8>) -> Bool {
        guard limit > 0 else { return false }
        guard limit < Self.everybody else { return true }
        return place(of: key) <= limit
    }

    /// Where a client stands among all, 0 to 99,999,999; for `explain`.
    public func place(of key: Span<UInt8>) -> UInt32 {
        var hash = SHA256()
        if !seed.isEmpty {
            hash.update(seed.span)
            hash.update(UInt8(ascii: "."))
        }
        hash.update(key)
        return hash.finalize().remainder(dividingBy: Self.everybody)
    }

    /// Whether `seed` may be written in a configuration: 1 to 32 of `-_.0-9a-zA-Z`, as Remote
    /// Config has it.
    public static func isSeed(_ seed: String) -> Bool {
        let bytes = seed.utf8
        return (1...32).contains(bytes.count)
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}

extension Route {
    /// Who is enforced on this route.
    public var share: EnforcedShare { EnforcedShare(seed: seed, limit: enforcedShare) }
}
