#if DEBUG
    internal import Glibc
    internal import Synchronization

    /// Answers calls into the kernel in the kernel's place: with faults that the kernel would make
    /// once in a year, or for a whole machine that is not there (docs/decisions/0070-simulation.md).
    ///
    /// Debug builds only. In release builds there is no such thing, and every wrapper is the call
    /// alone.
    public protocol KernelStandIn: AnyObject, Sendable {
        /// - Returns: nil where the kernel itself is to be asked.
        func answer(_ call: SystemCall) -> SystemCallAnswer?
    }

    /// Who answers for the kernel: on one thread and those that it starts, or in the whole process.
    public enum StandIn {
        private static let ofProcess = Mutex<(any KernelStandIn)?>(nil)

        /// Its values are retained seats, each of which only its own thread touches.
        private static let key: pthread_key_t = {
            var key = pthread_key_t()
            pthread_key_create(&key) { seat in
                guard let seat else { return }
                Unmanaged<Seat>.fromOpaque(seat).release()
            }
            return key
        }()

        /// What one thread has.
        private final class Seat {
            var standIn: (any KernelStandIn)?
            var isSuspended = false
        }

        private static var seat: Seat {
            if let known = pthread_getspecific(key) {
                return Unmanaged<Seat>.fromOpaque(known).takeUnretainedValue()
            }
            let seat = Seat()
            pthread_setspecific(key, Unmanaged.passRetained(seat).toOpaque())
            return seat
        }

        /// The stand-in of the calling thread; nil where the kernel answers.
        static var current: (any KernelStandIn)? {
            let seat = seat
            if seat.isSuspended { return nil }
            return seat.standIn ?? ofProcess.withLock { $0 }
        }

        /// The stand-in that threads started by the calling one begin with.
        static var inherited: (any KernelStandIn)? { seat.standIn }

        /// Has `standIn` answer the calling thread until it ends, and threads that it starts.
        static func occupy(_ standIn: (any KernelStandIn)?) {
            seat.standIn = standIn
        }

        /// Has `standIn` answer all threads that have none of their own.
        public static func occupyProcess(_ standIn: any KernelStandIn) {
            ofProcess.withLock { $0 = standIn }
        }

        /// Has `standIn` answer what `body` asks on this thread, and threads that it starts for as
        /// long as they live.
        public static func use<R, E: Error>(
            _ standIn: any KernelStandIn, _ body: () throws(E) -> R
        ) throws(E) -> R {
            let seat = seat
            let before = seat.standIn
            seat.standIn = standIn
            defer { seat.standIn = before }
            return try body()
        }

        /// Has the kernel itself answer what `body` asks: for a stand-in that asks it in turn.
        public static func suspended<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
            let seat = seat
            let before = seat.isSuspended
            seat.isSuspended = true
            defer { seat.isSuspended = before }
            return try body()
        }
    }
#endif
