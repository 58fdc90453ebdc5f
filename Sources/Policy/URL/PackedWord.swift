/// The last eight bytes of a text as one number, to compare words in one step.
///
/// The optimiser makes constants of words written in the source.
@inline(__always)
func packed(_ word: StaticString) -> UInt64 {
    word.withUTF8Buffer { bytes in
        var packed: UInt64 = 0
        for byte in bytes { packed = packed << 8 | UInt64(byte) }
        return packed
    }
}
