/// Base64url, written a second time and in the plainest way, so that tests do not lean on what they test.
func base64URL(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    let bits = bytes.flatMap { byte in (0..<8).reversed().map { (byte >> $0) & 1 } }
    return String(
        stride(from: 0, to: bits.count, by: 6).map { start in
            let group = bits[start..<min(start + 6, bits.count)]
            let padded = Array(group) + Array(repeating: 0, count: 6 - group.count)
            return alphabet[padded.reduce(0) { $0 * 2 + Int($1) }]
        })
}
