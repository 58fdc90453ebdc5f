#if DEBUG
    import Attestation
    import TestKit

    /// What comes in place of a token, and what it is worth.
    enum TokenKind: CaseIterable {
        case none, session, expired, stranger, otherApp, malformed
        /// For one request only, and never used before.
        case limitedUse
        /// For one request only, and used before.
        case replayed
    }

    /// Makes the tokens of a simulation. Its keys are fixed, as everything in a run has to follow from
    /// the seed; nothing else knows them.
    final class SimulatedTokens {
        static let keyID = "simulated"
        private static let signingKey = key(
            """
            -----BEGIN PRIVATE KEY-----
            MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCoffp3thPJO0T3
            2pvV1Er08+051jHLPtml/3ionOi9U16E8+sFeaGZN3ANjHKC1bupQteKvGqlG2Vj
            FEoSLwS3uD9Lj8NjQgVUAe0t8rPUGqyRn8YdQMshmdASAOfVDWQe6MoK6hwnqhjC
            6Mx6Fh8sbunYJ1V2OIoKiqjIPWtTeF/jB3E3jyR6lgw2FGoUZgJVJbInZX6z6NVj
            kGZwlBIjX8S+RzbfaclwExDas98QDWJxFuVbbEH34h2pCgUOehnrBTvTdbfnqSFV
            CB1k5HyIR9W1fw5zRscIQQJs2wbqI7hWob3+hKvbZXe1EaIP4eHEwsNNURLDzV20
            zjMiv1M1AgMBAAECggEADDk7ewTUEaTBn6OV66DfoT6zBp+h9CdGnfLXO5BKmDWc
            pVOWyMpmrVlmwSzfv9smpqRpQ7DgocLHi7UUnJYZpwRwXxh6adCH12zeWpeBcVFQ
            FK59LnEda34fqLa1GvFCQrXLtpf+W+hMrJM8Bl1lfJE9WMedvRpj9VjS3tgJ2b/D
            Pku7LRQu6boo9tSHfuu7jciRksLaHx/rs6XEMIzMvnFDianVRgoRBWu5KWWu0ijG
            Mak5LfqLqSDEp986w5goB2vr9v/FlMr+L3cdT0k+nmlEXdi1IDuzqDE9zMOEA+lh
            5Gg44IP+3vIXyIiNo/blEdMyENr4TiUumdK+gbqA7wKBgQDRoEcsJVZHAX6/c8li
            Bc6QLiJsO1sip9lABlF2RTi2bViyvs2Ag4Cpo0TLB+VfdsWx9IKYz01EaZ6fUovz
            4TVbKZLOxKaze/qBNseyUot0/cVOlDeZQyJnoQUQW1Try6tTCND6qjkqUvhDCQNk
            mGAQCwdLc4YQrfzyhPKPTjKFuwKBgQDNxCpzfqTgRxfa2mN1fz9OGmghUUVMPseF
            4Wgw9AhzM2b+dON94kJk1A++BemmnfWV6xIxuOgrh2cD3N2a/9QmuUPwJQiLgtS4
            l6cw7QEUsoyAO1zIB6JKyWx1jfd1eQOXodwARH+o5VX8nS03wijXNKuQL3TZexhJ
            bTijIbwDzwKBgAZql4McaXWm8BBAJQvhDZ+QKfGSJ4n6BUZWayvploDO/AYMnRGv
            9MI8gyCLz1OKuSZnS5AN2FmdugM6bZo7bHyr2xiFIG0iAFrwKFCnAinEksOC+eix
            C16MqTEE+qZ1B3t1K6BgkXtgKsUyg24S0+3pyIFgudvM1488zofgZt99AoGAJMQO
            ScCxORm623H2H4JzD0OMo5df6HW3NObHtSeFcwAWQRUlqNKKxnVVssBftVO4E+eC
            wrulUFHLSFdoiU942spzpy8Wzca8t5bxWr6eWNJmZGs28s7aYr6G0KJjOuw6hhd3
            tdyHaug/avmyoKninkFc/lBccpeaCVSosA1RCOUCgYEAs8UacnhrWzk8dBLhVC9Q
            tzZL1bM6kJw4pGQw1eCniGzPkjioolqVcoOUxGKwJy0k4c/68jf7K8J0LWSKLvJb
            swLP2ICWmVln1VuD91nmS70QP+7ENy+LPAZaJVbL6lQlAZN5XmVEHJoOyOk4om36
            rDHjxwKBp0tAgif0inRe6AA=
            -----END PRIVATE KEY-----
            """)
        private static let strangersKey = key(
            """
            -----BEGIN PRIVATE KEY-----
            MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCXb3yGrhPdSSYP
            /NCe9my08NyBLIc4F1inE/dczvbuq7TUMGPxf2KvlegMTc07r2Dk3RxnEA2Erv0p
            Irbh3SN7jfnFXmKsNXxoGI3O1glVhSJqXs3Z3jkocvHv0cYPzRXmzZldKNShNjE+
            KL/ePvzHGMOEWCyCNUs69jJ6a6v/BsninabphJC78oXrQ8xdGoj+TQJxvgYIFv/S
            ENTJjAUx6BRb8UDAeFagP5GluxPeQ/l/zg8/SlL6OkHaGVzS+MzyZMa6ec4tMRsT
            qSPfndCTVchBCR0KsDA4hs8+kIeT9Csn04UTAaSm4a8L7a+aRDNFGqeMK220gJQI
            raJIIpSlAgMBAAECggEAONIpsOU3aeQNBpmvc731+wyXSFa7Y/YKmyJYQfgcWmCO
            KMIBdjd8gXKnj5pPxDHhku5OPnOdBuib8Cfo5CXULwOOMRrhvkkRZYO1DeNsvCyI
            xc3Nwo5p9v3uPrSA8yPaMHB7t6Ne6SCK6I5ks9EBivkFP67QAIlbsYN4XEvzTOyc
            k8B+G7CXjN3q+aeiK3LofCZPl1EHm6X/Nl2ajMoGRhe5N6jwBJgjnUWBm4yiSZK1
            E8Wexvm3u41gPDIov8uTg8Wt0hIaWf702NEitRo6S/9tPAYdvf7l68mrZMYHt9n7
            WSW/f5zFD8xB7lAcIl1WeBGg3OIvafBt4xfv8QkTLwKBgQDSivBxE+W3XRe1x9b0
            96A43qUzliwnI7RlNfojQUSLMX4foJ/hm9CdzfKTp0Ki7K7RWHZ2G0+a/+d/h/e3
            m/zuGOLn3sEaArfWJ6u8lP/Ngu22YdsDBfAmufn92qCzx/KtL+py17RoIf1EXXw5
            4/8oYN0/S97XfUxAwCq2SfbyawKBgQC4IZaG94vbmUtnjbHVcY2dYn+W9QG03kHq
            lbV7G3O3Jt19Hwc7M1UWFHQDFuLGpsB5NdI30mxiQTfC9yz/pXJRd0QxQpwItBuo
            0CxReUcjHvabuSg+MaeMFP8vodqtrhQlSPXn52aG5s9xPUPHa1RvrUQeFiLTuuou
            8fB3Wob5LwKBgAFbD61KuYHywYJUJRgyt/9lv56Tavldi33TWSb89poG2Y8Ok7j6
            Ld+2Qcednho6d+21Kh4ckuimmTEDCR9Pi9NkqaFgl9G5DsH8Q2jVdMg3/ZvdCXH9
            icxWCjwOOlauBOwEkPfoV6sL/PuBtpkQ1MXHyeTsciTlE6afFidSVpq9AoGACadZ
            KQJZhs3msisvo60sa4/6eIOn7z+n3RC0TxwFWRjki+bQjj4Gu/2eh3rvsNKVTMWR
            m/OgUxZwQfyLk2utLrA+FwcS/zHSMWuYpzzgierZqxhuD7SywBlpt6mYuXpi/AFz
            QxFSwsffIGTB5PavmptO8vTeJpOqK4Prw5YvdWkCgYBKqB2g0DJ2bR5YZulYk7e7
            0SR4LPTkF64ElOkWf1o9NxrzywHZAiz53MOv+IEVbzFf35gRME6Wpe20xfH6Edge
            vI5Cw1fMg/cSf3wmLCGYBFBcJn/x9qT2KhEBmkf9Hs91yT97Qld2UgfjvF/JPHhK
            qkRTaN/q2X5aGaH6JgsHfw==
            -----END PRIVATE KEY-----
            """)

        private let issuer = TestIssuer(key: signingKey, keyID: keyID)
        private let stranger = TestIssuer(key: strangersKey, keyID: keyID)
        private var session: (text: String, issuedAt: Int64)?
        private var count = 0

        /// What verifies the good ones.
        var keySet: KeySet { issuer.keySet }

        /// A token for many requests.
        func sessionToken(at now: Int64) -> String {
            if let session, now < session.issuedAt + 1800 { return session.text }
            let text = issuer.token(now: now - 5)
            session = (text, now)
            return text
        }

        /// A token for one request, and its id.
        func limitedUseToken(at now: Int64) -> String {
            count += 1
            return issuer.token(
                claims: ["jti": "\"jti-\(count)-aaaaaaaaaaaaaaaaaa\"", "exp": "\(now + 290)"],
                now: now - 5)
        }

        /// One that nobody may accept.
        func badToken(_ kind: TokenKind, at now: Int64) -> String {
            switch kind {
            case .expired: issuer.token(claims: ["exp": "\(now - 200)"], now: now - 3800)
            case .stranger: stranger.token(now: now - 5)
            case .otherApp: issuer.token(claims: ["sub": "\"1:123:web:other\""], now: now - 5)
            default: "not.a.token"
            }
        }

        private static func key(_ pem: String) -> SigningKey {
            guard let key = try? SigningKey(pem: pem) else {
                preconditionFailure("a key of our own")
            }
            return key
        }
    }
#endif
