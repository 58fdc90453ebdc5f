internal import CPlatform
internal import Glibc
internal import Synchronization

/// One thread, one epoll instance, and the tasks that run there.
///
/// The loop is a serial executor (an actor's) and a task executor, so tasks of a `LoopActor` and
/// everything that they call stay on its thread. Other threads may only `enqueue` and `stop`.
///
/// Safe to be Sendable: the inbox is behind a lock, the flags are atomic, and everything else is
/// touched by the loop's own thread alone (`checkIsolated` traps otherwise).
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    private static let eventCapacity = 256
    private static let pauseNanoseconds: Int64 = 100_000

    private let epoll: Int32
    private let wakeDescriptor: Int32
    private let inbox = Mutex<[UnownedJob]>([])
    private let isWakePending = Atomic<Bool>(false)
    private let isStopping = Atomic<Bool>(false)
    private let threadID = Atomic<UInt>(0)

    private var ready: [UnownedJob] = []
    private var running: [UnownedJob] = []
    private let events: UnsafeMutableBufferPointer<epoll_event>
    private var registrations: [Registration?] = []
    private var freeSlots: [Int] = []
    private var generation: UInt32 = 0
    private var expired: [Waiter] = []
    /// The deadlines of this loop's waiters.
    var timers: TimerWheel

    /// The monotonic clock as the loop read it when it last woke.
    public private(set) var now: MonotonicInstant
    /// The wall clock as the loop read it when it last woke, microseconds since 1970.
    public private(set) var wallMicroseconds: Int64
    /// Since when the loop has had something to do all the time; shorter pauses than a tenth of a
    /// millisecond are none.
    public private(set) var busySince: MonotonicInstant

    /// Runs on the loop each time the jobs that were ready have run. Returns whether there is more to
    /// do: then the loop looks for events without sleeping.
    public var afterJobs: (() -> Bool)?
    /// Runs on the loop each time it has nothing left to do before it sleeps.
    public var beforeSleep: (() -> Void)?

    /// Makes a loop; nothing runs before `run()`.
    public init() throws(Errno) {
        epoll = try Syscalls.makeEpoll()
        do throws(Errno) {
            wakeDescriptor = try Syscalls.makeEventDescriptor()
        } catch {
            Syscalls.close(epoll)
            throw error
        }
        events = .allocate(capacity: Self.eventCapacity)
        now = .now
        busySince = now
        wallMicroseconds = Syscalls.wallMicroseconds()
        timers = TimerWheel(now: now)
        // Last: only a complete object closes its descriptors when this fails.
        try Syscalls.epollAdd(epoll, wakeDescriptor, events: CPlatform_EPOLLIN, data: .max)
    }

    deinit {
        events.deallocate()
        Syscalls.close(wakeDescriptor)
        Syscalls.close(epoll)
    }

    // MARK: Executor

    /// Takes a job of any thread; one that comes from the loop itself needs no lock.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isOnLoop {
            ready.append(job)
            return
        }
        inbox.withLock { $0.append(job) }
        wakeUp()
    }

    /// The executor of actors that live here.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// Traps when the caller is on another thread.
    public func checkIsolated() {
        precondition(isOnLoop, "not on the event loop's thread")
    }

    /// Whether the caller is on the loop's thread: the runtime asks before it traps.
    public func isIsolatingCurrentContext() -> Bool? {
        isOnLoop
    }

    /// Whether the caller runs on this loop's thread.
    @inline(__always)
    public var isOnLoop: Bool {
        threadID.load(ordering: .relaxed) == UInt(pthread_self())
    }

    // MARK: Running

    /// Runs jobs and events on the calling thread until `stop()`.
    public func run() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        updateClocks()
        while !isStopping.load(ordering: .relaxed) {
            runReadyJobs()
            let isBusy = afterJobs?() ?? false
            if ready.isEmpty && !isBusy { beforeSleep?() }
            poll(isBusy: isBusy)
            expireWaiters()
        }
        runReadyJobs()
        threadID.store(0, ordering: .relaxed)
    }

    /// Ends `run()` soon; callable from any thread.
    public func stop() {
        isStopping.store(true, ordering: .relaxed)
        wakeUp()
    }

    private func wakeUp() {
        if isWakePending.exchange(true, ordering: .acquiringAndReleasing) { return }
        Syscalls.raise(wakeDescriptor)
    }

    private func runReadyJobs() {
        // One round only: what these jobs make ready waits until sockets had their turn.
        swap(&ready, &running)
        let executor = asUnownedSerialExecutor()
        let taskExecutor = asUnownedTaskExecutor()
        for job in running {
            unsafe job.runSynchronously(isolatedTo: executor, taskExecutor: taskExecutor)
        }
        running.removeAll(keepingCapacity: true)
    }

    private func poll(isBusy: Bool) {
        let mayNotSleep = isBusy || !ready.isEmpty
        let timeout = mayNotSleep ? 0 : timers.sleepMilliseconds(now: now)
        let asleepSince = mayNotSleep ? nil : MonotonicInstant.now
        let count = Syscalls.epollWait(epoll, events, milliseconds: timeout)
        updateClocks()
        if let asleepSince, now > asleepSince.advanced(byNanoseconds: Self.pauseNanoseconds) {
            busySince = now
        }
        for index in 0..<count {
            dispatch(events[index])
        }
    }

    private func expireWaiters() {
        timers.advance(to: now, &expired)
        for waiter in expired { waiter.expire() }
        expired.removeAll(keepingCapacity: true)
    }

    private func dispatch(_ event: epoll_event) {
        if event.data.u64 == .max {
            takeInbox()
            return
        }
        let slot = Int(event.data.u64 & 0xFFFF_FFFF)
        // An event of a descriptor that an earlier event of this batch closed is stale.
        guard let registration = registrations[slot],
            registration.generation == UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        else { return }
        registration.signal(event.events)
    }

    private func takeInbox() {
        Syscalls.lower(wakeDescriptor)
        isWakePending.store(false, ordering: .releasing)
        inbox.withLock { jobs in
            ready.append(contentsOf: jobs)
            jobs.removeAll(keepingCapacity: true)
        }
    }

    private func updateClocks() {
        now = .now
        wallMicroseconds = Syscalls.wallMicroseconds()
    }

    // MARK: Registrations

    /// Watches a descriptor from now on.
    ///
    /// - Throws: what epoll_ctl(2) says.
    func register(_ registration: Registration, events: UInt32) throws(Errno) {
        generation &+= 1
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = registrations.count
            registrations.append(nil)
        }
        let data = UInt64(generation) << 32 | UInt64(slot)
        do throws(Errno) {
            try Syscalls.epollAdd(epoll, registration.descriptor, events: events, data: data)
        } catch {
            freeSlots.append(slot)
            throw error
        }
        registration.slot = UInt32(truncatingIfNeeded: slot)
        registration.generation = generation
        registrations[slot] = registration
    }

    /// Forgets a registration; closing the descriptor afterwards takes it out of epoll.
    func unregister(_ registration: Registration) {
        registrations[Int(registration.slot)] = nil
        freeSlots.append(Int(registration.slot))
    }

    /// Takes a descriptor that stays open out of epoll.
    func removeFromPoll(_ registration: Registration) {
        Syscalls.epollRemove(epoll, registration.descriptor)
    }
}
