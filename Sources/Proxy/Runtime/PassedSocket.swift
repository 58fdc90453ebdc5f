public import Configuration

/// A listening socket on its way from a process to the one that takes its place.
public struct PassedSocket: Sendable, Equatable {
    /// Who opened it first.
    public enum Origin: Sendable, Hashable {
        /// A process of this program, for this address: closing it is ours.
        case opened(ListenAddress)
        /// A service manager, under this name: it stays open.
        case manager(name: String)
    }

    /// The descriptor's number, the same in both processes.
    public var number: Int32
    /// Who opened it first.
    public var origin: Origin

    public init(number: Int32, origin: Origin) {
        self.number = number
        self.origin = origin
    }
}
