/// The names of a store's keys on its servers.
struct RedisKeys: Sendable {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private let prefix: [UInt8]

    init(prefix: String) {
        self.prefix = Array(prefix.utf8)
    }

    /// The key of a claim: the prefix and 22 characters of base64url.
    func key(of claim: ClaimKey) -> [UInt8] {
        var key = prefix
        key.reserveCapacity(prefix.count + 22)
        Self.appendBase64URL(claim.high, claim.low, to: &key)
        return key
    }

    /// The key of the marker that tells since when the memory of a server is whole.
    var marker: [UInt8] { prefix + Array("epoch".utf8) }

    /// The marker's key on the master of a cluster that has `slot`.
    func marker(inSlot slot: UInt16) -> [UInt8] {
        // All keys of a prefix with a hash tag are in one slot, and on one master.
        if RedisSlot.hashTag(of: prefix) != nil { return marker }
        let tag = [UInt8(ascii: "{")] + RedisSlot.tag(in: slot) + [UInt8(ascii: "}")]
        // A lone brace in the prefix would take the tag's place.
        return prefix.contains(UInt8(ascii: "{")) ? tag + marker : marker + tag
    }

    /// Appends 128 bits as 22 characters (RFC 4648, section 5, without padding).
    static func appendBase64URL(_ high: UInt64, _ low: UInt64, to text: inout [UInt8]) {
        var rest = (high, low)
        for _ in 0..<21 {
            text.append(alphabet[Int(rest.0 >> 58)])
            rest = (rest.0 << 6 | rest.1 >> 58, rest.1 << 6)
        }
        // Two bits are left; the character's others are zero.
        text.append(alphabet[Int(rest.0 >> 58)])
    }
}
