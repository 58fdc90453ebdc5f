extension RejectionCode {
    /// Title and detail of the problem document: what happened, and what the app's developer must
    /// do.
    var text: (title: String, detail: String) {
        switch self {
        case .tokenMissing:
            (
                "App Check token required",
                "Send a Firebase App Check token in the X-Firebase-AppCheck header."
            )
        case .tokenInvalid:
            (
                "App Check token not valid",
                "Send the token exactly as the App Check SDK of this project returns it, in one "
                    + "X-Firebase-AppCheck header."
            )
        case .tokenExpired:
            (
                "App Check token expired",
                "Ask the App Check SDK for a new token, forcing a refresh, and try again once."
            )
        case .attestationFailed:
            (
                "App attestation failed",
                "The App Check SDK could not attest this app and sent its placeholder. Look for "
                    + "its error in the app's log, and register the app or its debug token."
            )
        case .limitedUseRequired:
            (
                "Limited-use App Check token required",
                "This endpoint takes each token once. Before every request call limitedUseToken() "
                    + "(getLimitedUseToken() on Android and the web)."
            )
        case .tokenAlreadyUsed:
            (
                "App Check token already used",
                "This endpoint takes each token once. Call limitedUseToken() again "
                    + "(getLimitedUseToken() on Android and the web); do not send the same token."
            )
        case .appNotAllowed:
            ("App not allowed here", "The token is valid, but its app may not call this endpoint.")
        case .tokenInURL:
            (
                "App Check token in the URL",
                "URLs end up in logs and histories. Send the token in the X-Firebase-AppCheck "
                    + "header, and never in a URL."
            )
        case .verificationUnavailable:
            (
                "Verification unavailable",
                "The token could not be checked now. It may well be valid: try again later."
            )
        case .verificationLimited:
            (
                "Too many tokens that are not valid",
                "So many came from your network that no new token is checked now. Yours may well "
                    + "be valid: try again later, with the same one."
            )
        }
    }
}

extension ProxyProblem {
    /// Title and detail of the problem document.
    var text: (title: String, detail: String) {
        switch self {
        case .badRequest: ("Bad request", "The request does not follow HTTP.")
        case .notFound: ("Not found", "Nothing is served at this host and path.")
        case .methodNotAllowed: ("Method not allowed", "This method is not served.")
        case .requestTimeout: ("Request timeout", "The request did not arrive in time.")
        case .bodyTooLarge: ("Body too large", "The request body exceeds the limit.")
        case .uriTooLong: ("URI too long", "The request target exceeds the limit.")
        case .expectationFailed:
            ("Expectation failed", "The only expectation that can be met is 100-continue.")
        case .misdirectedRequest:
            (
                "Misdirected request",
                "This connection was made for another host. Open one for this host."
            )
        case .rateLimited:
            (
                "Too many requests",
                "This endpoint takes only so many requests in a time. Wait as long as Retry-After "
                    + "says; the token of this request was not used."
            )
        case .headerTooLarge: ("Header too large", "The request's header fields exceed the limit.")
        case .webSocketNotSupported:
            ("WebSocket not supported", "The backends of this endpoint take no WebSockets.")
        case .upstreamUnreachable: ("Upstream unreachable", "No backend server could be reached.")
        case .upstreamReset:
            ("Upstream failed", "The backend closed the connection before it answered.")
        case .upstreamProtocol: ("Upstream failed", "The backend's answer does not follow HTTP.")
        case .upstreamTimeout: ("Upstream timeout", "The backend did not answer in time.")
        case .upstreamUnavailable:
            ("Upstream unavailable", "The backend can take no requests now. Try again later.")
        case .overloaded:
            ("Overloaded", "The proxy can take no requests now. Try again later.")
        case .versionNotSupported: ("HTTP version not supported", "Use HTTP/1.1.")
        }
    }
}
