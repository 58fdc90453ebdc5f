internal import HTTP
internal import Policy

/// What the admin listener needs to know of a request.
struct AdminRequest {
    /// A bearer token as it came (RFC 6750, section 2.1).
    enum Authorization: Equatable {
        case none
        /// Something else than one bearer token.
        case unusable
        case bearer([UInt8])
    }

    var method: HTTP.Method
    /// In normal form, without the query.
    var path: String
    /// In canonical form, without the port; empty when there is none.
    var host = ""
    var authorization = Authorization.none
    /// Who asks, for the log.
    var client = ""

    init(_ method: HTTP.Method, _ path: String) {
        self.method = method
        self.path = path
    }

    /// - Parameters:
    ///   - head: A request without body.
    ///   - bytes: What it was parsed from.
    init(_ head: RequestHead, in bytes: Span<UInt8>, client: String) {
        self.init(head.method, head.target.pathText(in: bytes))
        host = String(decoding: head.target.host, as: UTF8.self)
        self.client = client
        guard let line = head.fields.first(.authorization) else { return }
        authorization =
            head.fields.count(of: .authorization) == 1
            ? Self.authorization(bytes.slice(line.value)) : .unusable
    }

    private static func authorization(_ value: Span<UInt8>) -> Authorization {
        let scheme = "bearer "
        let count = scheme.utf8.count
        guard value.count > count, value.hasPrefix("bearer ") else { return .unusable }
        let token = value.extracting(count...)
        return .bearer(token.indices.map { token[$0] }.drop { $0 == 0x20 }.map(\.self))
    }

    /// Whether the host is one that a page in a browser cannot have made its own name lead to: an
    /// IP address or `localhost` (RFC 6761, section 6.3).
    var isNamedDirectly: Bool {
        host.isEmpty || host.hasPrefix("[") || host == "localhost" || host.hasSuffix(".localhost")
            || host.utf8.allSatisfy { 0x30...0x39 ~= $0 || $0 == 0x2E }
    }
}

/// `/upstreams/NAME/servers/ADDRESS/drain` and `…/undrain`.
struct ServerChangePath: Equatable {
    let upstream: String
    let server: String
    let isDraining: Bool

    /// - Returns: nil for every other path.
    init?(_ path: String) {
        let words = path.split(separator: "/", omittingEmptySubsequences: false)
        // An address may be the path of a socket, so it is all that stands between.
        guard words.count >= 6, words[0].isEmpty, words[1] == "upstreams", words[3] == "servers",
            let verb = words.last, verb == "drain" || verb == "undrain",
            let upstream = Self.decoded(words[2]),
            let server = Self.decoded(words[4..<(words.count - 1)].joined(separator: "/"))
        else { return nil }
        if upstream.isEmpty || server.isEmpty { return nil }
        self.upstream = upstream
        self.server = server
        isDraining = verb == "drain"
    }

    /// What percent-encoding stands for (RFC 3986, section 2.1); nil when that is no text.
    private static func decoded(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
