internal import CPlatform
internal import Glibc

/// A thread of the operating system.
public enum Thread {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(_ name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = String(name.prefix(15))
            self.run = run
        }
    }

    /// Starts a detached thread (pthread_create(3)).
    ///
    /// - Parameter name: Shown by ps and top; at most 15 bytes.
    /// - Returns: false when the system has no thread left.
    @discardableResult
    public static func start(named name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        if case .failure? = Syscalls.answer(.startThread) { return false }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        defer { pthread_attr_destroy(&attributes) }
        // Safe: the retained body is released exactly once, by the new thread, or below when there
        // is none.
        let retained = Unmanaged.passRetained(Body(name, inheriting(body)))
        var thread = pthread_t()
        let status = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                CPlatform_name_thread(body.name)
                // Its own stack may be what a thread crashes of.
                let stack = CPlatform_begin_crash_stack()
                body.run()
                CPlatform_end_crash_stack(stack)
                return nil
            }, retained.toOpaque())
        if status != 0 {
            retained.release()
            return false
        }
        return true
    }

    /// A stand-in of the kernel answers the threads of its thread, too.
    private static func inheriting(_ body: @escaping @Sendable () -> Void)
        -> @Sendable () -> Void
    {
        #if DEBUG
            guard let standIn = StandIn.inherited else { return body }
            return {
                StandIn.occupy(standIn)
                body()
            }
        #else
            return body
        #endif
    }
}
