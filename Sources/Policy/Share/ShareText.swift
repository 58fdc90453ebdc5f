/// Reads a share as people write it: "2%", "2.5%", "0.000001", digits with at most one point.
///
/// Exact: the text is never turned into a binary fraction.
///
/// - Returns: Millionths of a percent, 0 to 100,000,000; nil for anything else, such as a sign, an
///   exponent, more than 100 %, or digits behind the sixth decimal that are not 0.
public func parseShare(_ text: String) -> UInt32? {
    var bytes = text.utf8[...]
    if bytes.last == UInt8(ascii: "%") { bytes.removeLast() }
    let parts = bytes.split(
        separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first, (1...12).contains(whole.count) else { return nil }
    var share: UInt64 = 0
    for byte in whole {
        guard let digit = decimalDigit(byte) else { return nil }
        share = share * 10 + digit
    }
    var decimals = 0
    if parts.count == 2 {
        guard !parts[1].isEmpty else { return nil }
        for byte in parts[1] {
            guard let digit = decimalDigit(byte) else { return nil }
            if decimals < 6 {
                share = share * 10 + digit
                decimals += 1
            } else if digit != 0 {
                return nil
            }
        }
    }
    for _ in decimals..<6 { share *= 10 }
    return share <= EnforcedShare.everybody ? UInt32(share) : nil
}

/// Reads a share from a number whose text is gone: the nearest millionth of a percent.
///
/// - Returns: Nil when the number is outside 0...100, or is not a multiple of 0.000001 within a
///   double's precision.
public func parseShare(_ percent: Double) -> UInt32? {
    guard percent >= 0, percent <= 100 else { return nil }
    let millionths = percent * 1_000_000
    // `rounded()` would be a call into libm, which nothing else here needs.
    let nearest = UInt32(millionths + 0.5)
    return abs(millionths - Double(nearest)) < 1e-6 ? nearest : nil
}

private func decimalDigit(_ byte: UInt8) -> UInt64? {
    let digit = byte &- UInt8(ascii: "0")
    return digit < 10 ? UInt64(digit) : nil
}
