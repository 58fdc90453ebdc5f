import Policy
import TestKit
import Testing

/// The form of a token: 3 segments; the tests' issuer is known by its payload.
let sampleToken =
    "eyJraWQiOiJ2Q2NrQWciLCJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9"
    + ".eyJpc3MiOiJodHRwczovL2ZpcmViYXNlYXBwY2hlY2suZ29vZ2xlYXBpcy5jb20vMTIzIn0"
    + ".c2lnbmF0dXJlLW9mLXRoZS1zYW1wbGUtdG9rZW4tdGhhdC1pcy1sb25nLWVub3VnaA"

@Suite("Tokens in query strings")
struct URLTokenScannerTests {
    @Test(
        "H5: finds a token by the name of its parameter, however that is written",
        arguments: [
            "X-Firebase-AppCheck=x", "x-firebase-appcheck=x", "X_Firebase_AppCheck=x",
            "X-Firebase_AppCheck=x", "XFirebaseAppCheck=x", "appCheckToken=x", "appchecktoken=x",
            "APPCHECKTOKEN=x", "app_check_token=x", "app-check-token=x", "firebaseAppCheckToken=x",
            "firebase_app_check_token=x", "ac=x", "AC=x", "a=1&ac=x", "a=1;ac=x", "a=1&b&ac=x&c=2",
            "%61c=x", "a%63=x", "%41%43=x", "app%5Fcheck%5ftoken=x", "app+check+token=x",
            "appCheckToken[]=x", "appCheckToken[0]=x", "ac[]=x", "appCheckToken", "appCheckToken=",
            "&&;appCheckToken=x", "=&appCheckToken=x", "x.firebase.appcheck=x",
            "_app_check_token=x",
        ])
    func byName(query: String) {
        #expect(carriesToken(query))
    }

    @Test(
        "H5: leaves other parameters alone, malformed ones too",
        arguments: [
            "", "&", "=", ";", "?", "a=b", "ac", "ac=", "ac&b=1", "a_c=x", "acc=x", "mac=x",
            "%ac=x", "tac=x",
            "xappCheckToken=x", "appCheckTokens=x", "token=x", "a=ac", "a=appCheckToken",
            "a=b=ac=x", "%",
            "%6", "%zz=1", "%61%", "a%=%", "ac%00=x", "%25%36%31c=x",
            "x-firebase-appcheck-version=1",
            "q=%26ac=x", "limit=50&cursor=abc&sort=-created", "[ac]=x", "filter[ac]=x",
        ])
    func otherNames(query: String) {
        #expect(!carriesToken(query))
    }

    @Test("H5: finds a JWT of a served issuer as a value, plain or encoded, under any name or none")
    func byValue() {
        let encoded = sampleToken.utf8.map { "%" + String($0, radix: 16) }.joined()
        let dots = sampleToken.replacing(".", with: "%2E")
        for value in [sampleToken, encoded, dots] {
            for query in ["t=\(value)", value, "\(value)=", "a=1;t=\(value);b=2", "t[]=\(value)&b"]
            {
                #expect(carriesToken(query))
                #expect(!carriesToken(query, isServed: false))
            }
        }
    }

    @Test("H5: asks about nothing that does not have the form of a JWT")
    func otherValues() {
        var asked = 0
        for value in [
            "a.b.c", "https://www.example.com/a-longer-path", "1.2.3.4.5.6.7.8.9.10.11.12",
            sampleToken + ".more", sampleToken + "!", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            sampleToken + "%",
            sampleToken.replacing(".", with: "%252E"), "aaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbb",
        ] {
            let query = Array("t=\(value)".utf8)
            let isFound = URLTokenScanner.carriesToken(query.span) { _ in
                asked += 1
                return true
            }
            #expect(!isFound, "\(value)")
        }
        #expect(asked == 0)
    }

    @Test("H5: no bytes whatever make it trap")
    func anyBytes() {
        var generator = SeededGenerator(seed: 5)
        let alphabet = Array("aacc%%&&;==+[].6X".utf8) + [0, 0x80, 0xff, 0x0d]
        var found = 0
        for _ in 0..<20_000 {
            let query = (0..<Int.random(in: 0...30, using: &generator)).map { _ in
                alphabet.pick(using: &generator)
            }
            if URLTokenScanner.carriesToken(query.span, isToken: { $0.count > 20 }) { found += 1 }
        }
        #expect(found > 0)
    }

    /// Whether the query carries a token, where the sample's issuer is the only one served.
    private func carriesToken(_ query: String, isServed: Bool = true) -> Bool {
        URLTokenScanner.carriesToken(Array(query.utf8).span) { bytes in
            isServed && isSample(bytes)
        }
    }

    private func isSample(_ bytes: Span<UInt8>) -> Bool {
        let sample = Array(sampleToken.utf8)
        return bytes.count == sample.count && sample.indices.allSatisfy { sample[$0] == bytes[$0] }
    }
}
