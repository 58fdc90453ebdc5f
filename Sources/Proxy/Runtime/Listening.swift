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
    /// Addresses whose descriptors the process before this one opened: its files are not ours yet,
    /// and it may have had another number of loops.
    private var takenOver: Set<ListenAddress> = []

    /// Nothing is open but what was passed to the process.
    init(inherited: InheritedSockets = .none) {
        self.inherited = inherited
    }

    /// The descriptors of an address, opened when they are not open yet: as many as there are loops,
    /// or as many as somebody else has opened.
    mutating func descriptors(for address: ListenAddress, count: Int) throws(ListenError)
        -> [ListeningDescriptor]
    {
        if let descriptors = open[address] { return descriptors }
        let passed = inherited.descriptors(for: address)
        if !passed.isEmpty {
            open[address] = passed
            return passed
        }
        let opened = inherited.takeOpened(for: address)
        if !opened.isEmpty {
            open[address] = opened
            takenOver.insert(address)
            return opened
        }
        let descriptors: [ListeningDescriptor]
        switch address {
        case .tcp(let host, let port):
            descriptors = try Self.listenTCP(address, host, port, count: count)
        case .unix:
            // One queue for all loops: local sockets have no SO_REUSEPORT.
            descriptors = [try ListeningDescriptor.open(address)]
        }
        open[address] = descriptors
        return descriptors
    }

    /// The descriptors of each listener, all of them or none.
    ///
    /// - Throws: for the first address that cannot be opened; those that were opened for the others
    ///   are closed again.
    mutating func open(_ listeners: [Listener], count: Int) throws(ListenError)
        -> [(Listener, [ListeningDescriptor])]
    {
        var opened: [(Listener, [ListeningDescriptor])] = []
        do throws(ListenError) {
            for listener in listeners {
                opened.append((listener, try descriptors(for: listener.listen, count: count)))
            }
        } catch {
            let added = Set(opened.map(\.0.listen))
            close(except: addresses.filter { !added.contains($0) })
            throw error
        }
        return opened
    }

    /// The descriptors of an address that is open; nil for another one.
    func known(_ address: ListenAddress) -> [ListeningDescriptor]? { open[address] }

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

    /// What each of `count` loops accepts from. Loops share a descriptor where there are fewer; all
    /// of them share those that are left over, so that no queue is nobody's and no loop has two.
    static func spread(_ descriptors: [ListeningDescriptor], over count: Int)
        -> [[ListeningDescriptor]]
    {
        if descriptors.isEmpty { return [] }
        let surplus = descriptors.dropFirst(count)
        return (0..<count).map { [descriptors[$0 % descriptors.count]] + surplus }
    }

    // MARK: From one process to the next

    /// Closes the predecessor's descriptors that no listener took over.
    func forgetOpened() {
        inherited.forgetOpened()
    }

    /// What was taken over is this process's own: its predecessor has let go. Where loops are more
    /// than descriptors the missing ones are opened; before, connections would have come to them
    /// that nobody accepts if the predecessor stays after all.
    ///
    /// - Returns: addresses for which that failed; their loops share what is there.
    mutating func settle(count: Int) -> [ListenError] {
        var errors: [ListenError] = []
        for address in takenOver {
            guard let descriptors = open[address], let first = descriptors.first else { continue }
            switch address {
            case .unix(let path): first.own(path)
            case .tcp:
                do throws(Errno) {
                    let missing = max(0, count - descriptors.count)
                    let added = try Self.openShared(first.address, count: missing)
                    open[address] = descriptors + added
                } catch {
                    errors.append(ListenError(address: address, error))
                }
            }
        }
        takenOver.removeAll()
        return errors
    }

    /// What a process that takes the place of this one has to inherit.
    var passed: [PassedSocket] {
        let managed = inherited.managed
        let numbers = Set(managed.map(\.number))
        return managed
            + open.flatMap { address, descriptors in
                descriptors.filter { !numbers.contains($0.number) }.map {
                    PassedSocket(number: $0.number, origin: .opened(address))
                }
            }
    }

    /// Socket files of these addresses are the next process's now.
    func disown(_ addresses: [ListenAddress]) {
        for address in addresses { open[address]?.forEach { $0.disown() } }
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
