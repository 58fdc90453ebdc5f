internal import Glibc

/// A socket address of the families that the proxy speaks: IPv4, IPv6, and local (`unix:`).
public struct SocketAddress: Sendable, Equatable, CustomStringConvertible {
    private var storage = sockaddr_storage()
    private var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

    /// Room for an address that the kernel fills in.
    init() {}

    /// An IPv4 or IPv6 literal (without brackets) and a port; nil when `literal` is neither.
    public init?(literal: String, port: UInt16) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, literal, &v4) == 1 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr = v4
            self.init(copying: address)
        } else if inet_pton(AF_INET6, literal, &v6) == 1 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = v6
            self.init(copying: address)
        } else {
            return nil
        }
    }

    /// A path in the file system; nil when it does not fit (107 bytes) or holds a NUL.
    public init?(unixPath: String) {
        var address = sockaddr_un()
        let path = Array(unixPath.utf8)
        if path.isEmpty || path.count >= MemoryLayout.size(ofValue: address.sun_path)
            || path.contains(0)
        {
            return nil
        }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        self.init(copying: address)
    }

    /// A name in Linux' abstract namespace (unix(7)), which no file stands for; nil when it does not
    /// fit (107 bytes).
    public init?(abstractName: String) {
        var address = sockaddr_un()
        let name = Array(abstractName.utf8)
        if name.isEmpty || name.count >= MemoryLayout.size(ofValue: address.sun_path) { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: name) }
        self.init(copying: address)
        // The name ends where the address ends; zeros behind it would belong to it.
        length = socklen_t(Self.pathOffset + 1 + name.count)
    }

    /// Where `sun_path` begins.
    private static let pathOffset = MemoryLayout<sa_family_t>.size

    private init<Address>(copying address: Address) {
        length = socklen_t(MemoryLayout<Address>.size)
        // Safe: every sockaddr_* type fits into sockaddr_storage, and all are plain bytes.
        withUnsafeMutableBytes(of: &storage) { target in
            withUnsafeBytes(of: address) { target.copyMemory(from: $0) }
        }
    }

    /// AF_INET, AF_INET6 or AF_UNIX.
    var family: Int32 { Int32(storage.ss_family) }

    /// Whether it is the path of a local socket.
    public var isLocal: Bool { family == AF_UNIX }

    /// The path of a local socket in the file system; nil for other addresses.
    public var path: String? {
        let bytes = localName
        return bytes.isEmpty || bytes.first == 0 ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// The bytes of a path, or a zero and the bytes of an abstract name; none for an IP address.
    private var localName: [UInt8] {
        let end = Int(length)
        if !isLocal || end <= Self.pathOffset { return [] }
        return withUnsafeBytes(of: storage) { storage in
            let bytes = storage[Self.pathOffset..<min(end, storage.count)]
            return Array(bytes.first == 0 ? bytes[...] : bytes.prefix { $0 != 0 })
        }
    }

    /// Whether two addresses name the same place.
    public static func == (left: SocketAddress, right: SocketAddress) -> Bool {
        left.family == right.family && left.port == right.port && left.ipBytes == right.ipBytes
            && left.localName == right.localName
    }

    /// The port, or nil for a local address.
    public var port: UInt16? {
        // Safe: sin_port and sin6_port both lie at offset 2 of the storage.
        isLocal
            ? nil
            : withUnsafeBytes(of: storage) {
                UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
            }
    }

    /// The address bytes in network order: 4 for IPv4 (also when mapped into IPv6), 16 for IPv6,
    /// none for a local one.
    public var ipBytes: [UInt8] {
        withUnsafeBytes(of: storage) { bytes in
            if family == AF_INET { return Array(bytes[4..<8]) }
            if family != AF_INET6 { return [] }
            let mapped =
                bytes[8..<18].allSatisfy { $0 == 0 } && bytes[18] == 0xFF && bytes[19] == 0xFF
            return Array(mapped ? bytes[20..<24] : bytes[8..<24])
        }
    }

    /// The IP address as text, without port; "unix" for a local one.
    public var host: String {
        let bytes = ipBytes
        if bytes.isEmpty { return "unix" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "?" }
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    public var description: String {
        guard let port else { return path.map { "unix:\($0)" } ?? "unix" }
        let host = host
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Whether this is the path of a local socket that a dead process left behind: it is there, and
    /// refuses.
    public var isAbandonedSocket: Bool {
        guard isLocal, let descriptor = try? Syscalls.socket(family: family) else { return false }
        defer { Syscalls.close(descriptor) }
        do throws(Errno) {
            try Syscalls.connect(descriptor, self)
            return false
        } catch {
            return error == .connectionRefused
        }
    }

    /// Lends the address to a system call.
    func withUnsafeStorage<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        // Safe: sockaddr is the common initial part of what the storage holds.
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// Lends room for an address to a system call, which says how much it used.
    mutating func withUnsafeMutableStorage<R>(
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> R
    ) -> R {
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        // Safe: as above; the kernel writes at most `length` bytes.
        return withUnsafeMutablePointer(to: &storage) { pointer in
            withUnsafeMutablePointer(to: &length) { length in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
            }
        }
    }
}
