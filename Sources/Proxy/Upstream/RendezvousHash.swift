/// Consistent hashing by the highest random weight (Thaler and Ravishankar, 1998): every key has an
/// order of preference among the servers, and when one goes only its keys move. The same in every
/// loop, process and machine.
enum RendezvousHash {
    /// Condenses a key, or a server's label (FNV-1a and a finalizer).
    static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return mix(hash)
    }

    /// How much a key wants a server.
    @inline(__always)
    static func weight(ofKey key: UInt64, server: UInt64) -> UInt64 {
        mix(key ^ server)
    }

    /// Whether a key comes along to a server that gets only a part, 0 to 1, of its keys. A key that
    /// came along at a smaller part comes along at a larger one.
    static func isWithin(_ share: Double, key: UInt64, server: UInt64) -> Bool {
        let place = mix(weight(ofKey: key, server: server) ^ 0x9E37_79B9_7F4A_7C15)
        return Double(place >> 11) / Double(1 << 53) < share
    }

    /// The finalizer of SplitMix64: every bit of the input reaches every bit of the result.
    @inline(__always)
    private static func mix(_ value: UInt64) -> UInt64 {
        var value = value
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
