public import Configuration
public import Reactor

/// Why a listener cannot be opened: which, and what to do.
public struct ListenError: Error, Sendable, CustomStringConvertible {
    /// The address as configured.
    public let address: ListenAddress
    /// What is wrong, and what to do about it.
    public let reason: String

    public var description: String { "cannot listen on \(address): \(reason)" }
}

/// The listening descriptors of the whole process. They outlive configurations: a reload that keeps
/// an address keeps its descriptors, and with them every connection that waits to be accepted.
struct Listening {
    private let inherited: InheritedSockets
    private var open: [ListenAddress: [ListeningDescriptor]] = [:]

    /// Nothing is open but what was passed to the process.
    init(inherited: InheritedSockets = .none) {
        self.inherited = inherited
    }

    /// The descriptors of an address, one for each of `count` loops, opened when they are not open
    /// yet.
    mutating func descriptors(for address: ListenAddress, count: Int) throws(ListenError)
        -> [ListeningDescriptor]
    {
        if let descriptors = open[address] { return descriptors }
        let passed = try inherited(for: address, count: count)
        if !passed.isEmpty {
            open[address] = passed
            return passed
        }
        let descriptors: [ListeningDescriptor]
        switch address {
        case .tcp(let host, let port):
            descriptors = try Self.listenTCP(address, host, port, count: count)
        case .unix:
            let descriptor = try ListeningDescriptor.open(address)
            // One queue for all loops: local sockets have no SO_REUSEPORT.
            descriptors = Array(repeating: descriptor, count: count)
        }
        open[address] = descriptors
        return descriptors
    }

    /// Whether descriptors of this address are there.
    func isOpen(_ address: ListenAddress) -> Bool {
        open[address] != nil
    }

    /// The addresses that are listened on, in no order.
    var addresses: [ListenAddress] { Array(open.keys) }

    /// Forgets the descriptors of addresses that are listened on no more.
    mutating func close(except kept: [ListenAddress]) {
        open = open.filter { kept.contains($0.key) }
    }

    /// Sockets that were passed, one for each loop; several loops accept from the same one when there
    /// are fewer.
    private func inherited(for address: ListenAddress, count: Int) throws(ListenError)
        -> [ListeningDescriptor]
    {
        let passed = inherited.descriptors(for: address)
        if passed.isEmpty { return [] }
        if passed.count > count {
            throw ListenError(
                address: address,
                reason: "\(passed.count) sockets were passed for it, and [server] workers are "
                    + "\(count): nobody would accept from the last ones")
        }
        return (0..<count).map { passed[$0 % passed.count] }
    }

    private static func listenTCP(
        _ address: ListenAddress, _ host: String, _ port: UInt16, count: Int
    ) throws(ListenError) -> [ListeningDescriptor] {
        guard let bound = SocketAddress(literal: host, port: port) else {
            throw ListenError(
                address: address, reason: "\"\(host)\" is no IP address of this machine")
        }
        do throws(Errno) {
            return try openShared(try unusedAddress(bound), count: count)
        } catch {
            throw ListenError(address: address, error)
        }
    }

    /// The address, with a free port when 0 was asked for. With SO_REUSEPORT a second process would
    /// share a port silently; a socket without it is told when the address is in use.
    private static func unusedAddress(_ address: SocketAddress) throws(Errno) -> SocketAddress {
        try ListeningDescriptor(address, isShared: false).address
    }

    private static func openShared(_ address: SocketAddress, count: Int) throws(Errno)
        -> [ListeningDescriptor]
    {
        var descriptors: [ListeningDescriptor] = []
        for _ in 0..<count {
            descriptors.append(try ListeningDescriptor(address, isShared: true))
        }
        return descriptors
    }
}

extension ListeningDescriptor {
    /// Opens one descriptor for an address of the configuration. A path that a dead process left
    /// behind is taken over; one on which somebody listens is not.
    public static func open(_ address: ListenAddress) throws(ListenError) -> ListeningDescriptor {
        switch address {
        case .tcp(let host, let port):
            guard let bound = SocketAddress(literal: host, port: port) else {
                throw ListenError(address: address, reason: "\"\(host)\" is no IP address")
            }
            do throws(Errno) {
                return try ListeningDescriptor(bound, isShared: false)
            } catch {
                throw ListenError(address: address, error)
            }
        case .unix(let path):
            guard let bound = SocketAddress(unixPath: path) else {
                throw ListenError(address: address, reason: "the path is longer than 107 bytes")
            }
            do throws(Errno) {
                if bound.isAbandonedSocket { try Syscalls.unlink(path) }
                return try ListeningDescriptor(bound, unixPath: path, isShared: false)
            } catch {
                throw ListenError(address: address, error)
            }
        }
    }
}

extension ListenError {
    /// Words for what the kernel said.
    init(address: ListenAddress, _ error: Errno) {
        let reason =
            switch error {
            case .addressInUse:
                "the address is in use by another process; stop it or choose another one"
            case .permissionDenied:
                "permission denied; ports below 1024 need CAP_NET_BIND_SERVICE, and a socket's folder "
                    + "must be writable"
            case .addressNotAvailable: "no interface of this machine has that address"
            default: error.description
            }
        self.init(address: address, reason: reason)
    }
}
