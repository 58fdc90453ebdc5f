import Attestation
import TestKit
import Testing

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

/// The way back from `base64URL`, for texts of our own.
func bytes(ofBase64URL text: String) throws -> [UInt8] {
    let bits = try text.flatMap { character in
        let value = try #require(alphabet.firstIndex(of: character))
        return (0..<6).reversed().map { (value >> $0) & 1 }
    }
    return stride(from: 0, through: bits.count - 8, by: 8).map { start in
        UInt8(bits[start..<start + 8].reduce(0) { $0 * 2 + $1 })
    }
}

/// The modulus of an issuer's key, big-endian.
func modulusBytes(of issuer: TestIssuer) throws -> [UInt8] {
    let jwk = try issuer.mint.key.publicJWK(keyID: "k")
    let start = try #require(jwk.firstRange(of: "\"n\":\"")?.upperBound)
    let end = try #require(jwk[start...].firstIndex(of: "\""))
    return try bytes(ofBase64URL: String(jwk[start..<end]))
}

/// The sum of two big-endian numbers of the same length, or nil when it needs one more byte.
func add(_ left: [UInt8], _ right: [UInt8]) -> [UInt8]? {
    guard left.count == right.count else { return nil }
    var sum = left
    var carry: UInt16 = 0
    for index in left.indices.reversed() {
        let digit = UInt16(left[index]) + UInt16(right[index]) + carry
        sum[index] = UInt8(truncatingIfNeeded: digit)
        carry = digit >> 8
    }
    return carry == 0 ? sum : nil
}
