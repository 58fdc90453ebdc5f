internal import Glibc

/// A flag on which one thread without an event loop sleeps and that any other thread may raise
/// (eventfd(2)).
public final class EventDescriptor: Sendable {
    private let descriptor: Int32

    /// Makes a flag that is not raised.
    public init() throws(Errno) {
        descriptor = try Syscalls.makeEventDescriptor()
    }

    deinit {
        Syscalls.close(descriptor)
    }

    /// Raises the flag. Raising it twice before somebody waits is the same as once.
    public func signal() {
        Syscalls.raise(descriptor)
    }

    /// Sleeps until the flag is raised and takes it down.
    ///
    /// - Parameter limit: How long to sleep at most; nil is for ever.
    /// - Returns: false when the time passed first.
    @discardableResult
    public func wait(atMost limit: Duration? = nil) -> Bool {
        let deadline = limit.map { MonotonicInstant.now.advanced(by: $0) } ?? .never
        while true {
            var milliseconds: Int32 = -1
            if deadline != .never {
                // Rounded up, so that a wait does not end before its time.
                let left = deadline.microseconds(since: .now) / 1000 + 1
                milliseconds = Int32(clamping: max(0, left))
            }
            if Syscalls.poll(descriptor, events: Int16(POLLIN), milliseconds: milliseconds) {
                Syscalls.lower(descriptor)
                return true
            }
            if deadline <= .now { return false }
        }
    }
}
