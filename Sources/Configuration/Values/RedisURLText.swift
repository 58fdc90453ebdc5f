/// Where Redis is and who asks, in one URL:
///
/// - `redis://[user[:password]@]host[:port][/db]`
/// - `redis+unix://[user[:password]@]/path.sock[?db=N]`
/// - `redis+cluster://[user[:password]@]host:port,host:port`
/// - `redis+sentinel://[user[:password]@]host:port,host:port/MASTER[/db]`
///
/// "rediss" instead of "redis" is TLS. What is thrown quotes nothing that could be a password, not
/// even of a URL whose parts are not where they belong.
struct RedisURLText {
    /// The server, with nothing but what the URL says.
    private(set) var server: RedisServer

    /// Splits a URL.
    init(_ text: String) throws(Misspelling) {
        guard let separator = text.firstRange(of: "://") else { throw Self.noURL(text) }
        let (kind, usesTLS) = try Self.scheme(text[..<separator.lowerBound].lowercased())
        if !text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C && $0 != 0x22 }) {
            throw Misspelling("has characters that a URL cannot have", hint: Self.escapes)
        }
        let behind = text[separator.upperBound...]
        if behind.contains("#") {
            throw Misspelling("must not have a fragment", hint: Self.escapes)
        }
        let authority = behind.prefix { $0 != "/" && $0 != "?" }
        let rest = behind[authority.endIndex...]
        if rest.contains("@") {
            throw Misspelling(
                "has a \"/\" or \"?\" in its user or password, or a \"@\" behind them",
                hint: Self.escapes)
        }
        let parts = authority.split(separator: "@", omittingEmptySubsequences: false)
        if parts.count > 2 { throw Misspelling("has more than one \"@\"", hint: Self.escapes) }
        let hosts = parts.last ?? ""
        switch kind {
        case .single: server = try Self.single(hosts, rest)
        case .unix: server = try Self.unix(hosts, rest)
        case .cluster: server = try Self.cluster(hosts, rest)
        case .sentinel: server = try Self.sentinel(hosts, rest)
        }
        server.usesTLS = usesTLS
        if parts.count == 2 { try readUser(parts[0]) }
    }

    // MARK: The scheme

    private enum Kind { case single, unix, cluster, sentinel }

    private static let schemes: [(name: String, kind: Kind, usesTLS: Bool)] = [
        ("redis", .single, false), ("rediss", .single, true), ("redis+unix", .unix, false),
        ("redis+cluster", .cluster, false), ("rediss+cluster", .cluster, true),
        ("redis+sentinel", .sentinel, false), ("rediss+sentinel", .sentinel, true),
    ]

    private static func scheme(_ name: String) throws(Misspelling) -> (Kind, usesTLS: Bool) {
        for scheme in schemes where scheme.name == name { return (scheme.kind, scheme.usesTLS) }
        let meant: String? =
            switch name {
            case "valkey": "redis"
            case "valkeys", "redis+tls", "redis+ssl": "rediss"
            case "unix", "redis-socket", "rediss+unix": "redis+unix"
            case "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster":
                name.replacing("-", with: "+")
            default: nearest(to: name, among: schemes.map(\.name))
            }
        // The scheme of something that only looks like a URL may be anything.
        let isShort = name.utf8.count <= 16 && name.utf8.allSatisfy { $0 != 0x40 && $0 != 0x3A }
        throw Misspelling(
            "has no scheme that Redis is reached by" + (isShort ? ": \(quoted(name))" : ""),
            suggestion: meant.map { $0 + "://" },
            hint: meant == nil ? "schemes: " + schemes.map(\.name).joined(separator: ", ") : nil)
    }

    private static func noURL(_ text: String) -> Misspelling {
        let isAddress = (try? AddressText.connect(text)) != nil && !text.contains("@")
        if isAddress, text.hasPrefix("unix:") {
            return Misspelling(
                "must be a URL", suggestion: "redis+unix://" + text.dropFirst("unix:".count))
        }
        return Misspelling(
            "must be a URL", suggestion: isAddress ? "redis://" + text : nil,
            hint: isAddress ? nil : "such as \"rediss://cache.internal:6379/0\"")
    }

    // MARK: What the scheme decides

    private static func single(
        _ hosts: Substring, _ rest: Substring
    ) throws(Misspelling) -> RedisServer {
        if hosts.contains(",") {
            throw Misspelling(
                "names several servers",
                hint: "\"redis+cluster://\" is a Cluster, \"redis+sentinel://\" are Sentinels")
        }
        var server = RedisServer(topology: .single, addresses: [try address(hosts, port: 6379)])
        try refuseQuery(rest, hint: "the database is the path: \"/0\"")
        server.database = try database(rest.dropFirst())
        return server
    }

    private static func unix(
        _ hosts: Substring, _ rest: Substring
    ) throws(Misspelling) -> RedisServer {
        let path = rest.prefix { $0 != "?" }
        guard hosts.isEmpty, path.count > 1,
            let socket = try? AddressText.connect("unix:" + decoded(path))
        else {
            throw Misspelling(
                "must name a socket by an absolute path of at most 107 bytes",
                hint: "such as \"redis+unix:///run/redis.sock\", with three slashes")
        }
        var server = RedisServer(topology: .single, addresses: [socket])
        let query = rest[path.endIndex...]
        if query.isEmpty { return server }
        guard query.hasPrefix("?db=") else {
            throw Misspelling("has a query that is not \"?db=N\"")
        }
        server.database = try database(query.dropFirst("?db=".count), mayBeEmpty: false)
        return server
    }

    private static func cluster(
        _ hosts: Substring, _ rest: Substring
    ) throws(Misspelling) -> RedisServer {
        let server = RedisServer(topology: .cluster, addresses: try addresses(hosts, port: 6379))
        try refuseQuery(rest)
        if try database(rest.dropFirst()) != 0 {
            throw Misspelling("has a database number, but a Cluster has only database 0")
        }
        return server
    }

    private static func sentinel(
        _ hosts: Substring, _ rest: Substring
    ) throws(Misspelling) -> RedisServer {
        let addresses = try addresses(hosts, port: 26379)
        try refuseQuery(rest)
        let path = rest.dropFirst()
        let master = path.prefix { $0 != "/" }
        // What Sentinel itself accepts as a name.
        let isName = master.utf8.allSatisfy {
            isLetterOrDigit($0) || [0x2D, 0x2E, 0x5F].contains($0)
        }
        guard !master.isEmpty, isName else {
            throw Misspelling(
                master.isEmpty
                    ? "does not name the master" : "has no valid name of the master",
                hint: "such as \"redis+sentinel://s1:26379,s2:26379/mymaster/0\"")
        }
        var server = RedisServer(
            topology: .sentinel(master: String(master)), addresses: addresses)
        server.database = try database(path[master.endIndex...].dropFirst())
        return server
    }

    // MARK: Parts

    private static func refuseQuery(
        _ rest: Substring, hint: String? = nil
    ) throws(Misspelling) {
        if rest.contains("?") { throw Misspelling("must not have a query", hint: hint) }
    }

    private static func database(
        _ text: Substring, mayBeEmpty: Bool = true
    ) throws(Misspelling) -> Int {
        if text.isEmpty, mayBeEmpty { return 0 }
        let isNumber = (1...4).contains(text.utf8.count) && text.utf8.allSatisfy(isDigit)
        if isNumber, let number = Int(text) { return number }
        throw Misspelling("needs a database number from 0 to 9999, not \(quoted(String(text)))")
    }

    private static func addresses(
        _ hosts: Substring, port: UInt16
    ) throws(Misspelling) -> [ListenAddress] {
        var addresses: [ListenAddress] = []
        for host in hosts.split(separator: ",", omittingEmptySubsequences: false) {
            let address = try address(host, port: port)
            if addresses.contains(address) { throw Misspelling("names a server twice") }
            addresses.append(address)
        }
        return addresses
    }

    private static func address(
        _ text: Substring, port standard: UInt16
    ) throws(Misspelling) -> ListenAddress {
        var host = text
        var port = standard
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            let digits = text[text.index(after: colon)...]
            host = text[..<colon]
            let isNumber = !digits.isEmpty && digits.utf8.allSatisfy(isDigit)
            guard isNumber, let number = UInt16(digits), number > 0 else {
                // Where the host was forgotten, what looks like a port is the password.
                let quote =
                    isNumber && digits.utf8.count <= 5 ? ", not \(quoted(String(digits)))" : ""
                throw Misspelling("needs a port from 1 to 65535 behind the host\(quote)")
            }
            port = number
        }
        if host.isEmpty {
            throw Misspelling("has no host", hint: "such as \"redis://cache.internal:6379\"")
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            let literal = String(host.dropFirst().dropLast())
            if literal.contains(":"), AddressText.isLiteral(literal) {
                return .tcp(host: literal, port: port)
            }
            throw Misspelling("has no IPv6 address in its brackets")
        }
        if host.contains(":") { throw Misspelling("needs brackets around its IPv6 address") }
        if HostText.isName(host) { return .tcp(host: host.lowercased(), port: port) }
        throw Misspelling("has no valid host", hint: escapes)
    }

    private mutating func readUser(_ text: Substring) throws(Misspelling) {
        let user = text.prefix { $0 != ":" }
        if !user.isEmpty { server.user = try Self.decoded(user) }
        let password = text[user.endIndex...].dropFirst()
        if !password.isEmpty { server.password = try Self.decoded(password) }
        if server.user == nil, server.password == nil {
            throw Misspelling("has an \"@\", but neither user nor password before it")
        }
    }

    /// Undoes percent-encoding (RFC 3986, section 2.1).
    private static func decoded(_ text: Substring) throws(Misspelling) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            let value = String(digits).flatMap { UInt8($0, radix: 16) }
            guard digits.count == 2, digits.first != UInt8(ascii: "+"), let value else {
                throw Misspelling(
                    "has a \"%\" without two hexadecimal digits behind it", hint: escapes)
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard let text = String(validating: bytes, as: UTF8.self), SecretKind.password.accepts(text)
        else { throw Misspelling("hides what is no text behind its \"%\"", hint: escapes) }
        return text
    }

    private static let escapes =
        "in a user or password write \"%23\" for \"#\", \"%25\" for \"%\", \"%2F\" for \"/\", "
        + "\"%3F\" for \"?\" and \"%40\" for \"@\", or put the password into \"redis_password\""
}
