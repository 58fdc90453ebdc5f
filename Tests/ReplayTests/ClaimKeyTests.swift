import Replay
import Testing

@Suite("Claim keys")
struct ClaimKeyTests {
    @Test("R5: one id of one issuer is one key, whatever else the token says")
    func sameTokenID() {
        #expect(ClaimKey(issuer: "a", tokenID: "1") == ClaimKey(issuer: "a", tokenID: "1"))
    }

    @Test("R5: keys of other issuers, other ids and shifted borders differ")
    func others() {
        let key = ClaimKey(issuer: "ab", tokenID: "c")
        #expect(key != ClaimKey(issuer: "a", tokenID: "bc"))
        #expect(key != ClaimKey(issuer: "ab", tokenID: "d"))
        #expect(key != ClaimKey(issuer: "b", tokenID: "c"))
    }

    @Test("R5: an id that spells another token's signed bytes is not that token")
    func idsAndBytes() {
        let bytes: [UInt8] = Array("e30.e30".utf8)
        #expect(
            ClaimKey(issuer: "a", tokenID: "e30.e30")
                != ClaimKey(issuer: "a", signedBytes: bytes.span))
    }
}
