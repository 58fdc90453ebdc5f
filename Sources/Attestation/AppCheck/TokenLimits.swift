/// The bounds of a token, all in one place. Lengths are in bytes, times in seconds.
public enum TokenLimits {
    /// Google's tokens have some 1000 bytes; a longer value is refused before anything is decoded
    /// (pitfall T13).
    public static let tokenBytes = 8192
    /// The longest life that App Check issues: 7 days.
    public static let lifetime: Int64 = 7 * 24 * 3600
    /// A leeway beyond this is no clock that differs but a broken one.
    static let leeway: Int64 = 300
    /// Longest claim `sub`, in bytes.
    static let subjectBytes = 256
    /// App Check's own bound for `jti`.
    static let tokenIDBytes = 500
}
