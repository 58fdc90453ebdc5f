/// `cors` of a route.
public struct CORS: Sendable, Equatable {
    /// Exact origins, or "*".
    public var allowOrigins: [String]
    /// Scripts may send cookies and read the answer.
    public var allowCredentials = false
    /// Answer preflights here instead of forwarding them.
    public var answerPreflights = false
    /// Empty: the route's methods.
    public var allowMethods: [String] = []
    /// Fields that a browser may send; `X-Firebase-AppCheck` always is. Empty: the usual ones.
    public var allowHeaders: [String] = []
    /// Seconds that a browser may cache an answered preflight.
    public var maxAge = 600

    /// `cors` with its defaults.
    public init(allowOrigins: [String]) {
        self.allowOrigins = allowOrigins
    }
}

extension CORS {
    /// What an origin is granted.
    public enum Grant: Sendable, Equatable {
        case refused
        /// Named in `Access-Control-Allow-Origin`.
        case named
        /// `Access-Control-Allow-Origin: *`; never together with credentials.
        case anyone
    }

    /// What an origin is granted: it must be listed byte for byte, or everybody is.
    ///
    /// With credentials "*" is taken to mean "whoever asks": browsers refuse the star itself. The
    /// origin "null", which any sandboxed document has, is then granted only when it is listed.
    ///
    /// - Parameter origin: Value of the field Origin; empty when there is none.
    public func allowedOrigin(for origin: Span<UInt8>) -> Grant {
        guard isOrigin(origin) else { return .refused }
        var isAnyone = false
        for allowed in allowOrigins {
            let allowed = allowed.utf8.span
            if isEqual(allowed, origin) { return .named }
            if allowed.count == 1, allowed[0] == UInt8(ascii: "*") { isAnyone = true }
        }
        guard isAnyone else { return .refused }
        guard allowCredentials else { return .anyone }
        return isEqual("null".utf8.span, origin) ? .refused : .named
    }

    /// Whether these bytes may be repeated in a field of ours: a serialised origin is short and
    /// visible.
    private func isOrigin(_ bytes: Span<UInt8>) -> Bool {
        guard (1...300).contains(bytes.count) else { return false }
        for index in bytes.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7f {
            return false
        }
        return true
    }
}
