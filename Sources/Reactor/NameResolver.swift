internal import Glibc

/// Why a name has no address.
public struct ResolutionError: Error, Sendable, CustomStringConvertible {
    /// The name that was asked for.
    public let host: String
    /// The resolver's own text (gai_strerror(3)).
    public let reason: String

    public var description: String { "cannot resolve \"\(host)\": \(reason)" }
}

/// Looks host names up with the system's resolver (getaddrinfo(3)).
public enum NameResolver {
    /// The addresses of a host, in the system's order of preference. Blocks: never call it on a
    /// loop that serves requests. A literal answers at once.
    public static func resolveBlocking(_ host: String, port: UInt16) throws(ResolutionError)
        -> [SocketAddress]
    {
        if let literal = SocketAddress(literal: host, port: port) { return [literal] }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        if status != 0 {
            throw ResolutionError(host: host, reason: String(cString: gai_strerror(status)))
        }
        var addresses: [SocketAddress] = []
        var entry = list
        while let info = entry?.pointee {
            if let address = info.ai_addr, let literal = numericHost(address, info.ai_addrlen),
                let parsed = SocketAddress(literal: literal, port: port)
            {
                addresses.append(parsed)
            }
            entry = info.ai_next
        }
        if addresses.isEmpty { throw ResolutionError(host: host, reason: "it has no address") }
        return addresses
    }

    /// Looks a host up on a thread of its own and resumes on the caller's executor.
    public static func resolve(_ host: String, port: UInt16) async throws(ResolutionError)
        -> [SocketAddress]
    {
        if let literal = SocketAddress(literal: host, port: port) { return [literal] }
        let result: Result<[SocketAddress], ResolutionError> = await withCheckedContinuation {
            done in
            let started = Thread.start(named: "resolver") {
                let result: Result<[SocketAddress], ResolutionError>
                do throws(ResolutionError) {
                    result = .success(try resolveBlocking(host, port: port))
                } catch {
                    result = .failure(error)
                }
                done.resume(returning: result)
            }
            if !started {
                let error = ResolutionError(host: host, reason: "no thread could be started")
                done.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }

    private static func numericHost(_ address: UnsafeMutablePointer<sockaddr>, _ length: socklen_t)
        -> String?
    {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let status = getnameinfo(
            address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
        if status != 0 { return nil }
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
