/// Base64url without padding, written a second time and in the plainest way, so that tests do not
/// lean on what they test.
public func base64URL(_ bytes: [UInt8]) -> String {
    let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = bytes[start..<min(start + 3, bytes.count)]
        let padded = Array(group) + Array(repeating: 0, count: 3 - group.count)
        let bits = padded.reduce(0) { $0 << 8 | Int($1) }
        text += [18, 12, 6, 0].prefix(group.count + 1).map { alphabet[bits >> $0 & 63] }
    }
    return String(decoding: text, as: UTF8.self)
}
