import Policy
import TestKit
import Testing

@Suite("Request targets in logs")
struct TargetRedactionTests {
    @Test(
        "O5: leaves ordinary targets as they are",
        arguments: [
            "/", "/v1/transfers", "/v1/transfers?limit=50&cursor=abc&sort=-created", "*", "",
            "/a/b.min.js?v=1.2.3", "/eyes/eyJ/x", "/v1/x:verify", "/?author=Ann&page=2",
            "http://api.example.com/x?y=z", "api.example.com:443", "/a%20b?c=%C3%A9", "/?a&b&&c=",
            "/users/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "/?passenger=1&design=2&monkeys=3",
            "/com.example.application.Main", "/keys/7", "/x?token=", "/tokens/7/sessions",
        ])
    func ordinary(target: String) {
        #expect(redacted(target) == target)
    }

    @Test(
        "H5: hides the values of parameters that tokens and other secrets go by",
        arguments: [
            ("/x?appCheckToken=abc&y=1", "/x?appCheckToken=[redacted]&y=1"),
            ("/x?X-Firebase-AppCheck=abc", "/x?X-Firebase-AppCheck=[redacted]"),
            (
                "/x?ac=0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9",
                "/x?ac=[redacted]"
            ),
            ("/x?%61c=abc", "/x?%61c=[redacted]"), ("/x?a=1;ac=b;c", "/x?a=1;ac=[redacted]"),
            ("/x?password=a%26b;c?d/e#f&g=h", "/x?password=[redacted]&g=h"),
            (
                "/x?api_key=1&API-KEY=2&key=3",
                "/x?api_key=[redacted]&API-KEY=[redacted]&key=[redacted]"
            ),
            ("/cb?code=abc&state=xyz", "/cb?code=[redacted]&state=xyz"),
            ("/cb#access_token=abc&x=1", "/cb#access_token=[redacted]&x=1"),
            ("/x?sig=a&sv=1&se=2", "/x?sig=[redacted]&sv=1&se=2"),
            (
                "/x?X-Amz-Signature=a&X-Amz-Credential=b",
                "/x?X-Amz-Signature=[redacted]&X-Amz-Credential=[redacted]"
            ),
            ("/x?user[password]=a", "/x?user[password]=[redacted]"),
            ("/x?pin[0]=a", "/x?pin[0]=[redacted]"),
            ("/x?u[pin]=a&filter[ac]=1", "/x?u[pin]=[redacted]&filter[ac]=1"),
            ("/x?next=/y?token=abc&z=1", "/x?next=/y?token=[redacted]&z=1"),
            (
                "/x?next=https%3A%2F%2Fy%2F%3Ftoken%3Dabc%26b%3D1&z=1",
                "/x?next=https%3A%2F%2Fy%2F%3Ftoken%3D[redacted]&z=1"
            ),
            ("/x?next=%252Fy%253Ftoken%253Dabc", "/x?next=%252Fy%253Ftoken%253D[redacted]"),
            ("/x;jsessionid=abc/y?z=1", "/x;jsessionid=[redacted]/y?z=1"),
            ("/token=abc/y", "/token=[redacted]/y"), ("/x?jwt=a.b.c", "/x?jwt=[redacted]"),
            ("/x?Authorization=Basic+abc", "/x?Authorization=[redacted]"),
            (
                "/x?authority=a&oauth_verifier=b",
                "/x?authority=[redacted]&oauth_verifier=[redacted]"
            ),
            ("http://ann:secret@host/x?y=z", "http://[redacted]@host/x?y=z"),
            ("ann:secret@host:443", "[redacted]@host:443"),
            ("http://ann:a@b@host", "http://[redacted]@host"),
        ])
    func secretNames(target: String, expected: String) {
        #expect(redacted(target) == expected)
    }

    @Test(
        "H5: hides the value behind every name that secrets go by",
        arguments: [
            "token", "access_token", "id_token", "refresh-token", "csrfToken", "key", "apiKey",
            "accessKeyId",
            "secret", "client_secret", "password", "passwd", "passphrase", "passcode", "pwd", "pw",
            "pass",
            "auth", "authorization", "x-auth", "signature", "sig", "hmac", "code", "user_code",
            "device_code",
            "session", "sessionid", "sid", "credential", "credentials", "jwt", "cookie",
            "SAMLResponse",
            "client_assertion", "attestation", "otp", "pin", "private_key", "TOKEN", "to%6ben",
            "to_ken",
            "token[]", "appCheck",
        ])
    func secretWords(name: String) {
        #expect(redacted("/x?a=1&\(name)=abc&b=2") == "/x?a=1&\(name)=[redacted]&b=2")
    }

    @Test("H5: hides what looks like a JWT wherever it stands")
    func tokens() {
        let encoded = sampleToken.utf8.map { "%" + String($0, radix: 16) }.joined()
        for token in [
            sampleToken, encoded, encoded.replacing("%", with: "%25"),
            String(sampleToken.prefix(40)),
        ] {
            #expect(redacted("/\(token)") == "/[redacted]")
            #expect(redacted("/a~\(token)/b") == "/a~[redacted]/b")
            #expect(redacted("/x?q=\(token)&r=1") == "/x?q=[redacted]&r=1")
            #expect(redacted("/x?\(token)") == "/x?[redacted]")
            #expect(redacted("/x?q=Bearer+\(token)") == "/x?q=Bearer+[redacted]")
            #expect(redacted("/x?q=(\(token),\(token))!") == "/x?q=([redacted])!")
        }
        let odd =
            "ewogICJhbGciOiJSUzI1NiJ9.ewogICJpc3MiOiJ4In0K." + String(repeating: "x", count: 43)
        #expect(redacted("/x?q=\(odd)") == "/x?q=[redacted]")
    }

    @Test("O5: line breaks, control characters and other bytes come out encoded")
    func controls() {
        #expect(redacted("/a\r\nb\u{0}c\u{7f} é\t") == "/a%0D%0Ab%00c%7F%20%C3%A9%09")
        #expect(redacted("\r\n") == "%0D%0A")
    }

    @Test("O5: a long target is cut after the limit, and never before it is redacted")
    func cut() {
        #expect(redacted("/aaaa", limit: 5) == "/aaaa")
        #expect(redacted("/aaaaa", limit: 5) == "/aaaa…")
        #expect(redacted("/aaaa?b=1", limit: 5) == "/aaaa…")
        #expect(redacted("/?token=abcdefgh", limit: 12) == "/?token=[red…")
        let long = redacted("/" + String(repeating: "\n", count: 5_000))
        #expect(long.utf8.count == 2_048 + 3)
        #expect(long.hasSuffix("…"))
        #expect(redacted("/" + String(repeating: "x", count: 9_000)).utf8.count == 2_051)
    }

    @Test("O5: a cut at any place shows no more than the whole shows")
    func cutAnywhere() {
        for target in [
            "/x?token=abcdef&a=1&key=ghijkl", "/\(sampleToken)/x?q=\(sampleToken)",
            "/é?pin=\r\n&a=\n",
        ] {
            let whole = redacted(target)
            for limit in 0..<whole.utf8.count {
                #expect(redacted(target, limit: limit) == whole.prefix(limit) + "…")
            }
            #expect(redacted(target, limit: whole.utf8.count) == whole)
        }
    }

    @Test("O5: appends to what is there")
    func appends() {
        var output = Array("GET ".utf8)
        TargetRedaction.append(Array("/x?token=abc".utf8).span, to: &output)
        #expect(String(decoding: output, as: UTF8.self) == "GET /x?token=[redacted]")
    }

    @Test("H5, O5: no 20 bytes of a token survive, wherever it stands in whatever URL")
    func property() {
        var generator = SeededGenerator(seed: 2)
        for round in 0..<1_000 {
            let token = mint(&generator)
            let target = randomTarget(holding: token, &generator)
            let output = Array(redacted(target).utf8)
            #expect(
                output.allSatisfy { $0 > 0x20 && $0 < 0x7f }
                    || output.suffix(3) == [0xe2, 0x80, 0xa6])
            let survivors = runs(of: Array(token.utf8)).intersection(runs(of: output))
            #expect(survivors.isEmpty, "round \(round): \(target) became \(redacted(target))")
        }
    }

    /// All runs of 20 bytes.
    private func runs(of bytes: [UInt8]) -> Set<ArraySlice<UInt8>> {
        guard bytes.count >= 20 else { return [] }
        return Set((0...(bytes.count - 20)).map { bytes[$0..<($0 + 20)] })
    }

    private func redacted(_ target: String, limit: Int = TargetRedaction.longest) -> String {
        var output: [UInt8] = []
        TargetRedaction.append(Array(target.utf8).span, to: &output, limit: limit)
        return String(decoding: output, as: UTF8.self)
    }

    private func mint(_ generator: inout SeededGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        func text(_ count: Int) -> String {
            String((0..<count).map { _ in alphabet.pick(using: &generator) })
        }
        return "eyJ" + text(.random(in: 20...60, using: &generator)) + ".eyJ"
            + text(.random(in: 20...300, using: &generator)) + "."
            + text([43, 86, 342, 512].pick(using: &generator))
    }

    private func randomTarget(
        holding token: String, _ generator: inout SeededGenerator
    ) -> String {
        let junk = [
            "", "a", "/", "?", "&", "=", ";", "#", ".", "-", "_", "~", "%", "%2", "%41", "%3D",
            "%2F", "+", "x=1",
            "&y=", "eyJ", "ey", "é", "\r\n", ":", "@", "//", "name", "[0]", "%25", "token=",
            "aaaaaaaaaaaaaaaa.",
            "\"", "%22", ",", "!",
        ]
        func some() -> String {
            (0..<Int.random(in: 0...6, using: &generator)).map { _ in junk.pick(using: &generator) }
                .joined()
        }
        return ["/", "/", "", "http://h/"].pick(using: &generator) + some() + token + some()
    }
}
