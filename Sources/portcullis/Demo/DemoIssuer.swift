internal import Attestation
internal import Reactor

/// The demo's issuer of App Check tokens: its own key, its own key set, no network.
///
/// Its tokens are good for the demo's proxy alone: the key is made at the start and dies with the
/// process.
struct DemoIssuer: Sendable {
    static let projectNumber = "123456789012"
    static let projectID = "demo-project"
    static let appID = "1:123456789012:ios:0a1b2c3d4e5f6a7b"

    let issuer: String
    private let mint: TokenMint
    private let keySet: String

    /// - Parameter address: Where it is asked for tokens and keys; a part of its name.
    init(at address: SocketAddress) throws(SigningKeyError) {
        issuer = "http://\(address)/\(Self.projectNumber)"
        mint = TokenMint(
            key: try SigningKey.generate(bits: 2048), keyID: "demo-1", issuer: issuer,
            projectNumber: Self.projectNumber, projectID: Self.projectID)
        keySet = try mint.keySet()
    }

    /// Hands out tokens and the key set.
    func answer(_ request: LoopbackRequest) -> LoopbackAnswer {
        let now = Syscalls.wallMicroseconds() / 1_000_000
        switch request.path {
        case "/jwks":
            return LoopbackAnswer(contentType: "application/json", body: keySet)
        case "/token":
            return token { () throws(SigningKeyError) in
                try mint.sessionToken(appID: Self.appID, now: now)
            }
        case "/limited-use-token":
            return token { () throws(SigningKeyError) in
                try mint.limitedUseToken(appID: Self.appID, now: now)
            }
        default:
            return LoopbackAnswer(
                status: 404, body: "ask for /token, /limited-use-token or /jwks\n")
        }
    }

    private func token(_ make: () throws(SigningKeyError) -> String) -> LoopbackAnswer {
        do throws(SigningKeyError) {
            return LoopbackAnswer(body: try make() + "\n")
        } catch {
            return LoopbackAnswer(status: 500, body: "the token could not be signed\n")
        }
    }
}
