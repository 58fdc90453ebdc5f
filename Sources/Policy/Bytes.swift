/// The value of a hexadecimal digit of either case, or nil.
@inline(__always)
func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
    let digit = byte &- UInt8(ascii: "0")
    if digit < 10 { return digit }
    let letter = (byte | 0x20) &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : nil
}

/// The small letter of a capital one (ASCII); any other byte as it is.
@inline(__always)
func lowercased(_ byte: UInt8) -> UInt8 {
    byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
}

/// Whether two runs of bytes are the same. For public bytes: the time that it takes tells where
/// they differ.
@inline(__always)
func isEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for index in left.indices where left[index] != right[index] { return false }
    return true
}
