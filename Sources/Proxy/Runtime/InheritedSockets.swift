public import Configuration
public import Reactor
internal import Synchronization

/// Why sockets that a service manager opened cannot be used.
public struct InheritedSocketError: Error, Sendable, CustomStringConvertible {
    /// What is wrong, and what to do about it.
    public let description: String
}

/// Listening sockets that were open before this process: those of a service manager (socket
/// activation, sd_listen_fds(3); pitfall O10), and those of the process whose place it takes.
///
/// A manager's stay open for as long as the process lives, whatever is reloaded: their owner keeps
/// them open anyway, so that binding their addresses anew would fail.
///
/// A socket belongs to the listener or the admin listener of its address, or of its name (`admin`,
/// `listener-1` for the first `[[listener]]`) where the addresses are written differently. One that
/// belongs to none is refused: clients would connect to it and wait for ever.
public struct InheritedSockets: Sendable {
    private struct Passed {
        let descriptor: ListeningDescriptor
        let name: String

        var description: String {
            let address = descriptor.address
            let place = address.path.map { "unix:\($0)" } ?? address.description
            return name.isEmpty ? place : "\(place) (\(name))"
        }
    }

    /// The first descriptor that is passed (SD_LISTEN_FDS_START).
    private static let firstDescriptor: Int32 = 3
    /// What a service manager may pass; more is a mistake.
    private static let countLimit: Int32 = 1024

    /// A manager's, by address of the configuration.
    private var named: [ListenAddress: [ListeningDescriptor]] = [:]
    /// A manager's that go by their own address.
    private var others: [Passed] = []
    /// A manager's as they came, for the next process.
    private var all: [Passed] = []
    /// The predecessor's own, by the address in its configuration. Shared by all copies of this
    /// value: whoever takes one over takes it out, and nothing here keeps it open.
    private let opened = Opened()

    private final class Opened: Sendable {
        let descriptors = Mutex<[ListenAddress: [ListeningDescriptor]]>([:])
    }

    /// No socket was passed.
    public static let none = InheritedSockets()

    private init() {}

    /// Takes over what was passed to this process, for this configuration and its successors.
    ///
    /// - Parameters:
    ///   - process: Sockets can be meant for another process that left its environment behind.
    ///   - environment: A variable of the environment.
    /// - Throws: which descriptor is no listening socket, or which ones belong to no listener.
    public init(
        for configuration: Configuration, process: Int32, environment: (String) -> String?
    ) throws(InheritedSocketError) {
        take(try Self.passed(process, environment), for: configuration)
        let unused = unused(by: configuration)
        if unused.isEmpty { return }
        let known = Self.places(configuration).map { "\($0.address) (\($0.name))" }
            .joined(separator: ", ")
        throw InheritedSocketError(
            description: "passed sockets belong to no [[listener]] and not to [admin]: "
                + unused.joined(separator: ", ") + "; there are \(known); give both sides the same "
                + "address, or the socket unit a FileDescriptorName= out of the parentheses")
    }

    /// Takes over what the process passed on whose place this one takes. A manager's socket that
    /// belongs to no listener is no error here: that process had it, too, after a reload.
    ///
    /// - Throws: which descriptor is no listening socket.
    public init(handedOver sockets: [PassedSocket], for configuration: Configuration)
        throws(InheritedSocketError)
    {
        var passed: [Passed] = []
        for socket in sockets {
            let descriptor: ListeningDescriptor
            do throws(Errno) {
                descriptor = try ListeningDescriptor(inherited: socket.number)
            } catch {
                throw InheritedSocketError(
                    description: "the descriptor \(socket.number) that was handed over is no "
                        + "stream socket that listens (\(error))")
            }
            switch socket.origin {
            case .opened(let address):
                opened.descriptors.withLock { $0[address, default: []].append(descriptor) }
            case .manager(let name): passed.append(Passed(descriptor: descriptor, name: name))
            }
        }
        take(passed, for: configuration)
    }

    private mutating func take(_ passed: [Passed], for configuration: Configuration) {
        let places = Self.places(configuration)
        all = passed
        for passed in passed {
            if let place = places.first(where: { $0.name == passed.name }) {
                named[place.address, default: []].append(passed.descriptor)
            } else {
                others.append(passed)
            }
        }
    }

    /// A manager's sockets, for the process that takes the place of this one.
    public var managed: [PassedSocket] {
        all.map { PassedSocket(number: $0.descriptor.number, origin: .manager(name: $0.name)) }
    }

    /// Whether a manager opened it.
    public func isManaged(_ descriptor: ListeningDescriptor) -> Bool {
        all.contains { $0.descriptor === descriptor }
    }

    /// Takes the predecessor's own sockets of an address over; none where it had none.
    public func takeOpened(for address: ListenAddress) -> [ListeningDescriptor] {
        opened.descriptors.withLock { $0.removeValue(forKey: address) } ?? []
    }

    /// Forgets what nobody took over: closed, unless somebody else has it.
    public func forgetOpened() {
        opened.descriptors.withLock { $0.removeAll() }
    }

    /// The sockets that a manager passed for an address; none when it has to be opened.
    public func descriptors(for address: ListenAddress) -> [ListeningDescriptor] {
        if let descriptors = named[address] { return descriptors }
        guard let bound = SocketAddress(address) else { return [] }
        return others.filter { $0.descriptor.address == bound }.map(\.descriptor)
    }

    /// Sockets on which nobody would accept anything, as addresses.
    public func unused(by configuration: Configuration) -> [String] {
        let addresses = Self.places(configuration).map(\.address)
        let bound = addresses.compactMap { SocketAddress($0) }
        return named.keys.filter { !addresses.contains($0) }.map(\.description)
            + others.filter { !bound.contains($0.descriptor.address) }.map(\.description)
    }

    private static func places(_ configuration: Configuration)
        -> [(address: ListenAddress, name: String)]
    {
        var places = configuration.listeners.enumerated().map {
            (address: $1.listen, name: "listener-\($0 + 1)")
        }
        if let admin = configuration.admin { places.append((admin.listen, "admin")) }
        return places
    }

    private static func passed(_ process: Int32, _ environment: (String) -> String?)
        throws(InheritedSocketError) -> [Passed]
    {
        guard let owner = environment("LISTEN_PID"), Int32(owner) == process,
            let text = environment("LISTEN_FDS"), let count = Int32(text), count > 0
        else { return [] }
        if count > countLimit {
            throw InheritedSocketError(
                description: "LISTEN_FDS=\(count) is more than \(countLimit)")
        }
        let names = (environment("LISTEN_FDNAMES") ?? "")
            .split(separator: ":", omittingEmptySubsequences: false)
        var passed: [Passed] = []
        for place in 0..<count {
            let name = Int(place) < names.count ? String(names[Int(place)]) : ""
            let number = firstDescriptor + place
            do throws(Errno) {
                let descriptor = try ListeningDescriptor(inherited: number)
                passed.append(Passed(descriptor: descriptor, name: name))
            } catch {
                throw InheritedSocketError(
                    description: "the passed descriptor \(number) (\(name)) is no stream socket "
                        + "that listens (\(error)); its socket unit needs ListenStream= and "
                        + "Accept=no")
            }
        }
        return passed
    }
}

extension SocketAddress {
    /// The place where a listener binds; nil for what is no IP address and no path that fits.
    public init?(_ address: ListenAddress) {
        switch address {
        case .tcp(let host, let port): self.init(literal: host, port: port)
        case .unix(let path): self.init(unixPath: path)
        }
    }
}
