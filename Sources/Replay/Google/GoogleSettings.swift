public import HTTP

/// How to reach Google's replay protection, as `[replay] google = { … }` says.
public struct GoogleSettings: Sendable, Equatable {
    /// Where the API is, up to its version.
    public static let defaultURL = "https://firebaseappcheck.googleapis.com/v1beta"

    /// Path of a service account's key file (JSON).
    public var credentials: String
    /// The API's address up to its version; plain http only for a loopback address.
    public var url = GoogleSettings.defaultURL
    /// PEM file with the certificates that are believed instead of the system's: for the API and
    /// for the place where access tokens come from.
    public var authority: String?
    /// An HTTP proxy that opens a tunnel (CONNECT) to both.
    public var egressProxy: HTTPEndpoint?
    /// A claim that was given less time than this, and had no answer, says nothing about Google:
    /// monitored requests are in a hurry, and must not open the breaker for enforced ones.
    /// The first one: see `ClaimStore.adopt(patience:)`.
    public var patience = Duration.zero
    /// Of this program, for `User-Agent: portcullis/VERSION`.
    public var version = "0"

    public init(credentials: String) {
        self.credentials = credentials
    }
}
