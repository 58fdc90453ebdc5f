internal import Reactor

/// Where a connection goes: a host and port, or a socket in the file system.
public enum HTTPEndpoint: Sendable, Hashable, CustomStringConvertible {
    /// `host` is a name, or an IPv4 or IPv6 literal without brackets.
    case tcp(host: String, port: UInt16)
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port):
            host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// Why a text is no URL that the client can get.
public struct HTTPURLError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is wrong, as the end of a sentence that starts with the URL.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// An absolute `http` or `https` URL (RFC 9110, section 4.2), taken apart.
///
/// The caller decides where plain `http` is allowed.
public struct HTTPURL: Sendable, Equatable {
    /// https.
    public let isSecure: Bool
    /// Lower case; an IPv6 literal has no brackets.
    public let host: String
    /// The scheme's own when the URL has none.
    public let port: UInt16
    /// Path and query, at least "/"; visible ASCII only.
    public let target: String

    /// Takes a URL apart. User information and fragments are refused: neither belongs into a key
    /// set's address.
    public init(_ text: String) throws(HTTPURLError) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw HTTPURLError("has a space, a control character or a character outside ASCII")
        }
        let lowered = text.lowercased()
        isSecure = lowered.hasPrefix("https://")
        guard isSecure || lowered.hasPrefix("http://") else {
            throw HTTPURLError("does not start with https:// or http://")
        }
        let rest = text.dropFirst(isSecure ? 8 : 7)
        if rest.contains("#") { throw HTTPURLError("has a fragment") }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rest.dropFirst(authority.count)
        target = path.hasPrefix("/") ? String(path) : "/\(path)"
        if authority.contains("@") { throw HTTPURLError("carries a user name or password") }
        (host, port) = try Self.split(authority, defaultPort: isSecure ? 443 : 80)
    }

    /// Where a direct connection goes.
    public var endpoint: HTTPEndpoint { .tcp(host: host, port: port) }

    /// Whether the host is an IPv4 or IPv6 literal.
    public var hasLiteralHost: Bool { SocketAddress(literal: host, port: port) != nil }

    /// Value of the Host field: the port only when it is not the scheme's own (RFC 9110, section
    /// 7.2).
    var hostField: String {
        if port != (isSecure ? 443 : 80) { return endpoint.description }
        return host.contains(":") ? "[\(host)]" : host
    }

    private static func split(
        _ authority: Substring, defaultPort: UInt16
    ) throws(HTTPURLError) -> (String, UInt16) {
        var host = authority
        var port = defaultPort
        let bracketed = authority.hasPrefix("[")
        let colon =
            bracketed ? authority.firstRange(of: "]:")?.lowerBound : authority.lastIndex(of: ":")
        if let colon {
            let digits = authority[colon...].drop { !$0.isNumber }
            let separator = bracketed ? 2 : 1
            guard digits.count == authority[colon...].count - separator,
                let number = UInt16(digits), number > 0
            else { throw HTTPURLError("has a port that is not a number from 1 to 65535") }
            port = number
            host = bracketed ? authority[...colon] : authority[..<colon]
        }
        if bracketed {
            guard host.hasSuffix("]") else { throw HTTPURLError("has an unclosed bracket") }
            host = host.dropFirst().dropLast()
            guard SocketAddress(literal: String(host), port: port) != nil, host.contains(":") else {
                throw HTTPURLError("has brackets around something that is no IPv6 address")
            }
        } else {
            let isName = host.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
            guard isName, 1...253 ~= host.utf8.count else {
                throw HTTPURLError("has no valid host name")
            }
        }
        return (host.lowercased(), port)
    }
}
