import Attestation
import TestKit
import Testing

/// The cases that were put to the official Python SDK (firebase-admin 7.7.0), with our verdict.
/// Where the two differ, ours is the stricter one, and `difference` says so.
@Suite("The cases of the official SDK")
struct OfficialSDKTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        let token: String
        let outcome: Outcome
        /// Whether the SDK accepts what we refuse, and why we do.
        var difference: String?
        var testDescription: String { name }
    }

    static let issuer = TestIssuer.standard
    static let now = TestIssuer.now
    static let google = "https://firebaseappcheck.googleapis.com"

    static func claims(_ replacing: [String: String?]) -> String { issuer.token(claims: replacing) }

    static func signed(_ signature: [UInt8]) -> String {
        let segments = issuer.token().split(separator: ".")
        let last = base64URL(signature)
        return "\(segments[0]).\(segments[1]).\(last)"
    }

    static let form: [Case] = [
        Case(name: "valid", token: issuer.token(), outcome: .verified),
        Case(
            name: "placeholder", token: "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==",
            outcome: .attestationFailed),
        Case(name: "empty", token: "", outcome: .invalid(.malformed)),
        Case(
            name: "2 segs",
            token: issuer.token().split(separator: ".")[..<2].joined(separator: "."),
            outcome: .invalid(.malformed)),
        Case(name: "leading space", token: " " + issuer.token(), outcome: .invalid(.malformed)),
    ]

    static let header: [Case] = [
        Case(
            name: "no kid", token: issuer.token(header: ["kid": nil]), outcome: .invalid(.malformed)
        ),
        Case(
            name: "unknown kid", token: issuer.token(header: ["kid": "\"zz\""]),
            outcome: .unknownKey),
        Case(
            name: "typ missing", token: issuer.token(header: ["typ": nil]),
            outcome: .invalid(.malformed)),
        Case(
            name: "typ jwt lower", token: issuer.token(header: ["typ": "\"jwt\""]),
            outcome: .invalid(.malformed)),
        Case(
            name: "alg none",
            token: issuer.token(header: ["alg": "\"none\""]).split(separator: ".")[..<2]
                .joined(separator: ".") + ".",
            outcome: .invalid(.algorithm)),
        Case(
            name: "alg RS384 hdr", token: issuer.token(header: ["alg": "\"RS384\""]),
            outcome: .invalid(.algorithm)),
        Case(
            name: "bad sig", token: signed([UInt8](repeating: 1, count: 256)),
            outcome: .invalid(.signature)),
    ]

    static let times: [Case] = [
        Case(
            name: "expired 1s", token: claims(["exp": "\(now - 61)", "iat": "\(now - 3600)"]),
            outcome: .invalid(.expired)),
        Case(
            name: "exp=now", token: claims(["exp": "\(now - 60)", "iat": "\(now - 3600)"]),
            outcome: .invalid(.expired)),
        Case(
            name: "exp missing", token: claims(["exp": nil]), outcome: .invalid(.malformed),
            difference: "a token without an end would be one for ever"),
        Case(
            name: "exp string", token: claims(["exp": "\"\(now + 3600)\""]),
            outcome: .invalid(.malformed), difference: "App Check writes whole numbers"),
        Case(
            name: "exp float", token: claims(["exp": "\(now + 3600).5"]),
            outcome: .invalid(.malformed), difference: "App Check writes whole numbers"),
        Case(
            name: "iat +5s", token: claims(["iat": "\(now + 65)"]), outcome: .invalid(.notYetValid)),
        Case(
            name: "iat +3600", token: claims(["iat": "\(now + 3600)", "exp": "\(now + 7200)"]),
            outcome: .invalid(.notYetValid)),
        Case(
            name: "iat missing", token: claims(["iat": nil]), outcome: .invalid(.malformed),
            difference: "without it nobody can tell the token's life"),
        Case(
            name: "nbf future", token: claims(["nbf": "\(now + 61)"]),
            outcome: .invalid(.notYetValid)),
    ]

    static let names: [Case] = [
        Case(
            name: "aud string ok", token: claims(["aud": "\"projects/pid\""]),
            outcome: .invalid(.audience)),
        Case(
            name: "aud only number", token: claims(["aud": "[\"projects/123\"]"]),
            outcome: .invalid(.audience)),
        Case(name: "aud missing", token: claims(["aud": nil]), outcome: .invalid(.audience)),
        Case(
            name: "aud bare id", token: claims(["aud": "[\"pid\"]"]), outcome: .invalid(.audience)),
        Case(
            name: "iss other project", token: claims(["iss": "\"\(google)/999\""]),
            outcome: .invalid(.issuer), difference: "the SDK compares the host alone (T7)"),
        Case(
            name: "iss no suffix", token: claims(["iss": "\"\(google)/\""]),
            outcome: .invalid(.issuer), difference: "the SDK compares the host alone (T7)"),
        Case(
            name: "iss evil prefix", token: claims(["iss": "\"\(google).evil/123\""]),
            outcome: .invalid(.issuer)),
        Case(name: "iss missing", token: claims(["iss": nil]), outcome: .invalid(.issuer)),
        Case(
            name: "sub empty", token: claims(["sub": "\"\""]), outcome: .invalid(.subject),
            difference: "nobody's app (T8)"),
        Case(name: "sub missing", token: claims(["sub": nil]), outcome: .invalid(.subject)),
        Case(name: "sub number", token: claims(["sub": "5"]), outcome: .invalid(.subject)),
        Case(name: "jti number", token: claims(["jti": "5"]), outcome: .invalid(.malformed)),
    ]

    @Test("get the verdict that is meant", arguments: form + header + times + names)
    func verdict(_ example: Case) {
        #expect(judge(example.token) == example.outcome)
    }

    @Test("are all here: 33, of which seven differ")
    func completeness() {
        let all = Self.form + Self.header + Self.times + Self.names
        #expect(Set(all.map(\.name)).count == 33)
        let differing = all.filter { $0.difference != nil }
        #expect(differing.count == 7)
        #expect(differing.allSatisfy { $0.outcome != .verified })
    }
}
