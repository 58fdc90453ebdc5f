import Attestation
import Testing

@Suite("SHA-256")
struct SHA256Tests {
    static func hex(_ digest: SHA256Digest) -> String {
        var text = ""
        for index in digest.bytes.indices {
            let byte = digest.bytes[index]
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return text
    }

    @Test(
        "gives the digests of FIPS 180-4",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ])
    func vectors(input: String, expected: String) {
        let bytes = Array(input.utf8)
        #expect(Self.hex(SHA256.hash(bytes.span)) == expected)
        for cut in 0...bytes.count {
            let digest = SHA256.hash(bytes.span.extracting(..<cut), bytes.span.extracting(cut...))
            #expect(Self.hex(digest) == expected)
        }
    }

    @Test("hashes a byte like a run of one byte")
    func separator() {
        var hash = SHA256()
        hash.update(Array("seed".utf8).span)
        hash.update(UInt8(ascii: "."))
        hash.update(Array("id".utf8).span)
        #expect(hash.finalize() == SHA256.hash(Array("seed.id".utf8).span))
        #expect(SHA256.hash([0x61].span) != SHA256.hash([0x62].span))
    }

    @Test("takes the remainder of the digest as one big-endian number")
    func remainder() {
        var bytes = InlineArray<32, UInt8>(repeating: 0)
        bytes[31] = 1
        bytes[30] = 1
        #expect(SHA256Digest(bytes: bytes).remainder(dividingBy: 100) == 57)
        let digest = SHA256.hash(Array("abc".utf8).span)
        #expect(digest.remainder(dividingBy: 100_000_000) == 17_089_965)
    }
}
