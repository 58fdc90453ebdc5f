/// A sign that a request without a token comes from an older build of one of our apps.
public enum ClientFingerprint: Sendable, Equatable {
    /// A request field of this name (lower case) is there.
    case fieldPresent(String)
    /// The User-Agent matches this pattern: literal text in which `*` stands for any run of bytes.
    case userAgent(pattern: String)
}
