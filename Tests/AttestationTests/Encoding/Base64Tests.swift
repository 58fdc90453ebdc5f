import TestKit
import Testing

@testable import Attestation

@Suite("Base64")
struct Base64Tests {
    @Test("spells RFC 4648's examples and reads them back")
    func examples() {
        let examples = [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
        ]
        for (plain, padded) in examples {
            let bytes = Array(plain.utf8)
            #expect(Base64.standard.encode(bytes.span) == Array(padded.utf8))
            #expect(Base64.standard.decode(Array(padded.utf8).span) == bytes)
            let unpadded = Array(padded.utf8.filter { $0 != UInt8(ascii: "=") })
            #expect(Base64.url.encode(bytes.span) == unpadded)
            #expect(Base64.url.decode(unpadded.span) == bytes)
        }
    }

    @Test("agrees with a plain implementation on every length and byte")
    func roundTrip() {
        for count in 0..<300 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ count) }
            let text = Array(base64URL(bytes).utf8)
            #expect(Base64.url.encode(bytes.span) == text)
            #expect(Base64.url.decode(text.span) == bytes)
        }
    }

    @Test(
        "T12: base64url has one spelling of each run of bytes",
        arguments: [
            "Zg==", "Zg=", "Zh", "Zm9", "Zm-", "Z", "Zm9vY", "Zm9v=", "=", "Zm 9v", "Zm9v\n",
            " Zm9v",
            "Zm+v", "Zm/v", "Zm9\u{0}", "Zm9vé", "Zm9v.", "%5Am9v",
        ])
    func oneSpelling(text: String) {
        #expect(Base64.url.decode(Array(text.utf8).span) == nil)
    }

    @Test("T12: of 64 last characters, only those without stray bits are read")
    func strayBits() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        let oneByte = alphabet.filter { Base64.url.decode(Array("Z\($0)".utf8).span) != nil }
        #expect(oneByte == "AQgw")
        let twoBytes = alphabet.filter { Base64.url.decode(Array("Zm\($0)".utf8).span) != nil }
        #expect(twoBytes == "AEIMQUYcgkosw048")
        let threeBytes = alphabet.filter { Base64.url.decode(Array("Zm9\($0)".utf8).span) != nil }
        #expect(threeBytes == alphabet)
    }

    @Test(
        "wants the padding that standard base64 has",
        arguments: ["Zg", "Zg=", "Zg===", "Zh==", "====", "Zm9v====", "Zm-v", "Z===", "Zm=v"])
    func padding(text: String) {
        #expect(Base64.standard.decode(Array(text.utf8).span) == nil)
    }

    @Test(
        "T12: reads any byte at any place, for each length modulo four, as a plain reader does",
        arguments: 1...9)
    func everyByteEverywhere(count: Int) throws {
        let alphabet = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var differing: [String] = []
        for place in 0..<count {
            for byte in UInt8.min...UInt8.max {
                var text = [UInt8](repeating: UInt8(ascii: "A"), count: count)
                text[place] = byte
                // Whether it is the one spelling of what it spells, by the plain implementations.
                let plain =
                    alphabet.contains(byte)
                    ? try bytes(ofBase64URL: String(decoding: text, as: UTF8.self)) : nil
                let spelled = plain.flatMap { Array(base64URL($0).utf8) == text ? $0 : nil }
                if Base64.url.decode(text.span) != spelled { differing.append("\(place): \(byte)") }
            }
        }
        #expect(differing == [])
    }
}
