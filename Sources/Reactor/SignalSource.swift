internal import CPlatform
internal import Glibc

/// Signals of the process as something to wait for (signalfd(2)). Make it before any other thread
/// starts: threads inherit the mask that keeps the signals from killing the process.
///
/// Safe to be Sendable: immutable but for the registration, which only the loop of `attach` touches.
public final class SignalSource: @unchecked Sendable {
    private let descriptor: Int32
    private var registration: Registration?

    /// - Throws: what signalfd(2) says.
    public init(_ signals: [Int32]) throws(Errno) {
        descriptor = try Syscalls.makeSignalDescriptor(signals)
    }

    /// Wakes `waiter` when a signal comes.
    public func attach(to loop: EventLoop, waiter: Waiter) throws(Errno) {
        let registration = Registration(descriptor: descriptor, loop: loop)
        registration.waiter = waiter
        try loop.register(registration, events: CPlatform_EPOLLIN)
        self.registration = registration
    }

    /// The next signal that has come, or nil.
    public func next() -> Int32? {
        var info = signalfd_siginfo()
        let count = withUnsafeMutableBytes(of: &info) { try? Syscalls.read(descriptor, $0) }
        return count == MemoryLayout<signalfd_siginfo>.size
            ? Int32(bitPattern: info.ssi_signo) : nil
    }
}
