internal import CPlatform
internal import Glibc

/// Every call into the kernel that the program makes; nothing else calls it. Each wrapper names its
/// C function, retries when a signal interrupts it, and turns errno into a typed error.
public enum Syscalls {
    /// Runs a call that reports failure as -1; EINTR is retried.
    ///
    /// - Parameters:
    ///   - call: What is asked, for a stand-in of the kernel (debug builds only).
    ///   - takeAnswer: Gets what a stand-in answers besides a number.
    @inline(__always)
    static func checked<I: FixedWidthInteger>(
        _ call: @autoclosure () -> SystemCall, takeAnswer: (SystemCallAnswer) -> Void = { _ in },
        _ body: () -> I
    ) throws(Errno) -> I {
        while true {
            if let answer = answer(call()) {
                guard case .failure(let error) = answer else {
                    takeAnswer(answer)
                    return I(truncatingIfNeeded: answer.value)
                }
                if error != .interrupted { throw error }
                continue
            }
            let result = body()
            if result != -1 { return result }
            let error = Errno(rawValue: Glibc.errno)
            if error != .interrupted { throw error }
        }
    }

    /// What a stand-in says to a call. In release builds that is nil to the compiler already, so
    /// nothing is left of it.
    @inline(__always)
    static func answer(_ call: @autoclosure () -> SystemCall) -> SystemCallAnswer? {
        #if DEBUG
            return StandIn.current?.answer(call())
        #else
            return nil
        #endif
    }

    // MARK: Descriptors

    /// read(2). 0 is the end of the stream.
    public static func read(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer)
        throws(Errno) -> Int
    {
        try checked(.read(descriptor, bytes)) {
            Glibc.read(descriptor, bytes.baseAddress, bytes.count)
        }
    }

    /// write(2).
    public static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer)
        throws(Errno) -> Int
    {
        try checked(.write(descriptor, bytes)) {
            Glibc.write(descriptor, bytes.baseAddress, bytes.count)
        }
    }

    /// close(2). EBADF would mean that somebody else's descriptor was closed: our bug, so it traps.
    public static func close(_ descriptor: Int32) {
        if answer(.close(descriptor)) != nil { return }
        if Glibc.close(descriptor) == -1 {
            precondition(Glibc.errno != EBADF, "closed a descriptor twice")
        }
    }

    /// open(2), close-on-exec.
    public static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o600) throws(Errno)
        -> Int32
    {
        try checked(.open(path)) { CPlatform_open(path, flags | O_CLOEXEC, mode) }
    }

    /// unlink(2).
    public static func unlink(_ path: String) throws(Errno) {
        _ = try checked(.unlink(path)) { Glibc.unlink(path) }
    }

    /// mkdir(2).
    public static func makeDirectory(_ path: String, mode: UInt32) throws(Errno) {
        _ = try checked(.makeDirectory(path)) { Glibc.mkdir(path, mode) }
    }

    /// access(2): whether this process may write there.
    public static func isWritable(_ path: String) -> Bool {
        if case .failure? = answer(.access(path)) { return false }
        return Glibc.access(path, W_OK) == 0
    }

    // MARK: Readiness

    /// epoll_create1(2).
    static func makeEpoll() throws(Errno) -> Int32 {
        try checked(.makeEpoll) { CPlatform_epoll_create() }
    }

    /// epoll_ctl(2), EPOLL_CTL_ADD.
    static func epollAdd(_ epoll: Int32, _ descriptor: Int32, events: UInt32, data: UInt64)
        throws(Errno)
    {
        var event = epoll_event()
        event.events = events
        event.data.u64 = data
        _ = try checked(.epollAdd(epoll: epoll, descriptor, events: events, data: data)) {
            epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event)
        }
    }

    /// epoll_ctl(2), EPOLL_CTL_DEL. A descriptor that is gone already is no error.
    static func epollRemove(_ epoll: Int32, _ descriptor: Int32) {
        if answer(.epollRemove(epoll: epoll, descriptor)) != nil { return }
        var event = epoll_event()
        _ = epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, &event)
    }

    /// epoll_wait(2). An interrupting signal counts as no events.
    static func epollWait(
        _ epoll: Int32, _ events: UnsafeMutableBufferPointer<epoll_event>, milliseconds: Int32
    ) -> Int {
        let answer = answer(
            .epollWait(epoll: epoll, capacity: events.count, milliseconds: milliseconds))
        if let answer {
            guard case .events(let ready) = answer else { return 0 }
            for (index, event) in ready.enumerated() {
                events[index].events = event.events
                events[index].data.u64 = event.data
            }
            return ready.count
        }
        let count = epoll_wait(
            epoll, events.baseAddress, Int32(truncatingIfNeeded: events.count), milliseconds)
        return max(0, Int(count))
    }

    /// eventfd(2), non-blocking.
    static func makeEventDescriptor() throws(Errno) -> Int32 {
        try checked(.makeEventDescriptor) { CPlatform_eventfd() }
    }

    /// eventfd_write(3): raises the flag. Raising it twice before somebody looks is the same as once.
    static func raise(_ descriptor: Int32) {
        if answer(.raise(descriptor)) != nil { return }
        // It fails when the counter is full: the flag is up already.
        _ = eventfd_write(descriptor, 1)
    }

    /// eventfd_read(3): takes the flag down.
    static func lower(_ descriptor: Int32) {
        if answer(.lower(descriptor)) != nil { return }
        var counter: eventfd_t = 0
        _ = eventfd_read(descriptor, &counter)
    }

    /// poll(2) of one descriptor, for threads that have no event loop: whether it is ready for
    /// `events`, or broken, within `milliseconds` (-1: wait for ever). A signal may end the wait
    /// early.
    static func poll(_ descriptor: Int32, events: Int16, milliseconds: Int32) -> Bool {
        if case .failure? = answer(.poll(descriptor)) { return false }
        var entry = pollfd(fd: descriptor, events: events, revents: 0)
        return Glibc.poll(&entry, 1, milliseconds) > 0
    }

    /// poll(2), POLLOUT: waits until a write would not block, or `milliseconds` passed.
    public static func waitWritable(_ descriptor: Int32, milliseconds: Int32) {
        _ = poll(descriptor, events: Int16(POLLOUT), milliseconds: milliseconds)
    }

    // MARK: Clocks

    /// clock_gettime(2), CLOCK_MONOTONIC, in nanoseconds.
    @inline(__always)
    static func monotonicNanoseconds() -> Int64 {
        if let answer = answer(.monotonicClock) { return Int64(answer.value) }
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// clock_gettime(2), CLOCK_REALTIME, in microseconds since 1970.
    @inline(__always)
    public static func wallMicroseconds() -> Int64 {
        if let answer = answer(.wallClock) { return Int64(answer.value) }
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec) / 1000
    }

    // MARK: The process

    /// getrandom(2), by way of the standard library.
    static func randomNumber() -> UInt64 {
        if let answer = answer(.randomNumber) { return UInt64(bitPattern: Int64(answer.value)) }
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }

    /// sched_getaffinity(2): how many CPUs the process may use, at least 1.
    public static func usableProcessors() -> Int {
        max(1, Int(CPlatform_usable_processors()))
    }

    /// sysconf(3), _SC_CLK_TCK: the unit of times in /proc.
    public static func clockTicksPerSecond() -> Int {
        max(1, sysconf(Int32(_SC_CLK_TCK)))
    }

    /// sysconf(3), _SC_PAGESIZE, in bytes.
    public static func pageSize() -> UInt64 {
        UInt64(clamping: sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Ignores SIGPIPE and SIGXFSZ: a peer that is gone and a file that may not grow are error
    /// codes, not the end of the process. signal(7).
    public static func ignoreWriteSignals() {
        CPlatform_ignore_write_signals()
    }

    /// Blocks the signals for every thread that starts later and gives a descriptor to read them
    /// from. pthread_sigmask(3), signalfd(2).
    public static func makeSignalDescriptor(_ signals: [Int32]) throws(Errno) -> Int32 {
        try checked(.makeEventDescriptor) { CPlatform_signalfd(signals, signals.count) }
    }

    /// getrlimit(2): how many descriptors the process may have.
    public static func descriptorLimit() -> UInt64 {
        CPlatform_descriptor_limit()
    }

    /// getrlimit(2), setrlimit(2): raises the soft limit of descriptors to the hard one and returns
    /// it.
    public static func raiseDescriptorLimit() -> UInt64 {
        CPlatform_raise_descriptor_limit()
    }
}
