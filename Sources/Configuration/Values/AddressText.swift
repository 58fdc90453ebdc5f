internal import Policy

/// Socket addresses as the configuration spells them: `host:port`, `[v6]:port`, `unix:/path`.
enum AddressText {
    /// Reads an address to listen on: an IP literal (port 0 lets the system choose), or a Unix
    /// socket.
    static func listen(_ text: String) throws(Misspelling) -> ListenAddress {
        let example =
            "write an address such as \"127.0.0.1:8080\", \"[::1]:8080\" or \"unix:/path\""
        if let path = try unixPath(text) { return .unix(path: path) }
        let (host, port) = try hostAndPort(text, example: example, lowestPort: 0)
        if isLiteral(host) { return .tcp(host: host, port: port) }
        let literal =
            switch host {
            case "", "*": "0.0.0.0"
            case "localhost": "127.0.0.1"
            default: nil as String?
            }
        throw Misspelling(
            "must be an IP address, not \(quoted(text))",
            suggestion: literal.map { "\($0):\(port)" }, hint: literal == nil ? example : nil)
    }

    /// Reads an address to connect to: an IP literal or a name, or a Unix socket.
    static func connect(_ text: String) throws(Misspelling) -> ListenAddress {
        let example =
            "write an address such as \"127.0.0.1:9000\", \"api.internal:80\" or \"unix:/path\""
        if let path = try unixPath(text) { return .unix(path: path) }
        if let scheme = text.firstRange(of: "://") {
            throw Misspelling(
                "must be an address without a scheme or path, not \(quoted(redacted(text)))",
                suggestion: withoutScheme(text[scheme.upperBound...]), hint: example)
        }
        let (host, port) = try hostAndPort(text, example: example, lowestPort: 1)
        if host.isEmpty || !(isLiteral(host) || HostText.isName(host)) {
            throw Misspelling("has no valid host: \(quoted(text))", hint: example)
        }
        return .tcp(host: host, port: port)
    }

    /// Whether a host is an IPv4 or (without brackets) IPv6 address.
    static func isLiteral(_ host: String) -> Bool {
        !host.contains("/") && IPNetwork(host) != nil
    }

    /// Whether only this machine reaches the address.
    static func isLoopback(_ address: ListenAddress) -> Bool {
        switch address {
        case .unix: true
        case .tcp(let host, _): isLoopback(host: host)
        }
    }

    /// Whether a host is a loopback address or `localhost`.
    static func isLoopback(host: String) -> Bool {
        guard let address = IPNetwork(host)?.bytes else { return host == "localhost" }
        if address.count == 4 { return address.first == 127 }
        return address == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// Whether two sockets cannot both listen, or one would answer for the other: the same address,
    /// or the same port where one takes every address of the machine.
    static func overlap(_ left: ListenAddress, _ right: ListenAddress) -> Bool {
        if case .tcp(_, 0) = left { return false }
        if left == right { return true }
        guard case .tcp(let leftHost, let leftPort) = left,
            case .tcp(let rightHost, let rightPort) = right, leftPort == rightPort
        else { return false }
        guard let leftBytes = IPNetwork(leftHost)?.bytes,
            let rightBytes = IPNetwork(rightHost)?.bytes, leftBytes.count == rightBytes.count
        else { return false }
        let isEverywhere = { (bytes: [UInt8]) in bytes.allSatisfy { $0 == 0 } }
        return leftBytes == rightBytes || isEverywhere(leftBytes) || isEverywhere(rightBytes)
    }

    /// The path behind "unix:", or nil for another kind of address.
    private static func unixPath(_ text: String) throws(Misspelling) -> String? {
        guard text.hasPrefix("unix:") else { return nil }
        let path = String(text.dropFirst("unix:".count))
        // sockaddr_un holds 108 bytes with the NUL.
        if path.hasPrefix("/"), path.utf8.count <= 107, !path.utf8.contains(0) { return path }
        throw Misspelling(
            "must name a socket by an absolute path of at most 107 bytes, not \(quoted(text))",
            suggestion: path.hasPrefix("//") ? "unix:" + path.dropFirst(2) : nil)
    }

    private static func hostAndPort(
        _ text: String, example: String, lowestPort: UInt16
    ) throws(Misspelling) -> (host: String, port: UInt16) {
        guard let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") else {
            throw Misspelling("has no port: \(quoted(text))", hint: example)
        }
        let digits = text[text.index(after: colon)...]
        let isNumber = !digits.isEmpty && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard isNumber, let port = UInt16(digits), port >= lowestPort else {
            throw Misspelling(
                "needs a port from \(lowestPort) to 65535, not \(quoted(text))", hint: example)
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            if !host.contains(":") || !isLiteral(String(host)) {
                throw Misspelling("has no IPv6 address in its brackets: \(quoted(text))")
            }
        } else if host.contains(":") {
            throw Misspelling(
                "needs brackets around its IPv6 address: \(quoted(text))",
                suggestion: isLiteral(String(host)) ? "[\(host)]:\(port)" : nil)
        }
        return (String(host), port)
    }

    private static func withoutScheme(_ rest: Substring) -> String? {
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        return authority.contains(":") && !authority.contains("@") ? String(authority) : nil
    }
}

extension ListenAddress {
    /// Reads "host:port", "[v6]:port" or "unix:/path" as `listen` in a configuration has it; nil
    /// when it is none of these.
    public init?(_ text: String) {
        guard let address = try? AddressText.listen(text) else { return nil }
        self = address
    }
}
