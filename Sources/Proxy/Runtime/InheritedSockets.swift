public import Configuration
public import Reactor

/// Why sockets that a service manager opened cannot be used.
public struct InheritedSocketError: Error, Sendable, CustomStringConvertible {
    /// What is wrong, and what to do about it.
    public let description: String
}

/// Listening sockets that a service manager has opened and passed on (socket activation,
/// sd_listen_fds(3); pitfall O10). They stay open for as long as the process lives, whatever is
/// reloaded: their owner keeps them open anyway, so that binding their addresses anew would fail.
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

    private var named: [ListenAddress: [ListeningDescriptor]] = [:]
    private var others: [Passed] = []

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
        let places = Self.places(configuration)
        for passed in try Self.passed(process, environment) {
            if let place = places.first(where: { $0.name == passed.name }) {
                named[place.address, default: []].append(passed.descriptor)
            } else {
                others.append(passed)
            }
        }
        let unused = unused(by: configuration)
        if unused.isEmpty { return }
        let known = places.map { "\($0.address) (\($0.name))" }.joined(separator: ", ")
        throw InheritedSocketError(
            description: "passed sockets belong to no [[listener]] and not to [admin]: "
                + unused.joined(separator: ", ") + "; there are \(known); give both sides the same "
                + "address, or the socket unit a FileDescriptorName= out of the parentheses")
    }

    /// The sockets that were passed for an address; none when it has to be opened.
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
    init?(_ address: ListenAddress) {
        switch address {
        case .tcp(let host, let port): self.init(literal: host, port: port)
        case .unix(let path): self.init(unixPath: path)
        }
    }
}
