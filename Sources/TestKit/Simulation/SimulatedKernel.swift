#if DEBUG
    internal import Reactor

    /// A machine with a network and a clock of its own, for one event loop: it answers the loop's
    /// calls into the kernel, and its time passes when the loop sleeps. Everything in it follows from
    /// its seed.
    ///
    /// Safe to be Sendable: it is for one thread, which makes it, runs the loop and lets go of it.
    public final class SimulatedKernel: @unchecked Sendable {
        /// What a call takes, nanoseconds.
        private static let callTime: Int64 = 400
        /// A loop that asks so often without anything happening spins.
        private static let spinLimit = 200_000

        /// Nanoseconds since the simulated machine started.
        public private(set) var now: Int64 = 7_200_000_000_000
        /// Everything that happened.
        public private(set) var trace: SimulationTrace
        public var faults = SimulatedFaults()
        /// What the proxy must never do; the first of it ends the run.
        public private(set) var violation: String?
        /// Called at the first violation.
        public var onViolation: () -> Void = {}
        /// Descriptors that the proxy has open.
        public var openCount: Int { descriptors.count }

        private let wallStart: Int64
        private var generator: SeededGenerator
        private var events = EventQueue()
        /// What the proxy has open.
        var descriptors = SimulatedDescriptors()
        /// Who listens on a port, unless it is the proxy.
        private(set) var servers: [UInt16: any SimulatedListener] = [:]
        /// Descriptors with which the proxy listens, by port.
        var listeners: [UInt16: Int32] = [:]
        private var streamCount = 0
        private var idleWaits = 0

        /// - Parameters:
        ///   - wallSeconds: What the clock shows at the beginning, seconds since 1970.
        ///   - keepsTrace: All that happens is kept, not only the last of it.
        public init(seed: UInt64, wallSeconds: Int64, keepsTrace: Bool = false) {
            trace = SimulationTrace(keepsAll: keepsTrace)
            generator = SeededGenerator(seed: seed)
            wallStart = wallSeconds * 1_000_000 - now / 1000
        }

        // MARK: The world

        /// Seconds since 1970.
        public var wallSeconds: Int64 { wallMicroseconds / 1_000_000 }

        /// A number from `low` to `high`, from the seed.
        public func random(_ low: Int, _ high: Int) -> Int {
            Int.random(in: low...high, using: &generator)
        }

        /// Whether something happens that happens once in so many times.
        public func happens(oneIn times: Int) -> Bool {
            times > 0 && random(1, times) == 1
        }

        /// Has something happen later; `delay` in nanoseconds.
        public func plan(after delay: Int64, _ action: @escaping () -> Void) {
            plan(at: now + delay, action)
        }

        /// Says what happens, for the trace.
        public func note(_ text: String) {
            trace.note(now, text)
        }

        /// The proxy did what it must not do.
        public func report(_ text: String) {
            if violation != nil { return }
            violation = text
            note("VIOLATION: \(text)")
            onViolation()
        }

        /// Has a server listen on a port of 127.0.0.1.
        public func serve(_ port: UInt16, by server: any SimulatedListener) {
            servers[port] = server
        }

        /// Connects to a port that the proxy listens on.
        ///
        /// - Returns: nil when it does not.
        public func connect(
            to port: UInt16, from host: String, _ peer: any SimulatedPeer
        ) -> SimulatedStream? {
            guard let listener = listeners[port], descriptors[listener] != nil,
                let address = SocketAddress(literal: host, port: UInt16(random(20_000, 60_000)))
            else { return nil }
            let stream = makeStream(isEstablished: true)
            stream.peer = peer
            plan(at: now + latency()) { [self] in
                guard listeners[port] == listener, let entry = descriptors[listener] else {
                    stream.refuse(.connectionRefused)
                    peer.reset(stream)
                    return
                }
                note("connect", stream.number, 0)
                entry.backlog.append((stream, address))
                raise(listener)
            }
            return stream
        }

        /// Nothing happens any more.
        public func cancelEvents() {
            events.removeAll()
        }

        // MARK: For streams

        func plan(at time: Int64, _ action: @escaping () -> Void) {
            events.plan(at: time, action)
        }

        func note(_ name: StaticString, _ subject: Int, _ value: Int) {
            trace.note(now, name, subject, value)
        }

        func note(_ bytes: UnsafeRawBufferPointer) {
            trace.note(bytes)
        }

        /// How long a packet takes, nanoseconds: mostly tenths of milliseconds, sometimes very long.
        func latency() -> Int64 {
            Int64(happens(oneIn: 50) ? random(1_000_000, 200_000_000) : random(20_000, 900_000))
        }

        /// Something happened to a descriptor: an edge, if somebody watches.
        func raise(_ descriptor: Int32) {
            descriptors.raise(descriptor)
        }

        /// A writer was told to wait though there is room: the kernel has to tell it.
        func wakeWriter(_ stream: SimulatedStream) {
            plan(at: now + 50_000) { stream.noteRoom() }
        }

        func makeStream(isEstablished: Bool) -> SimulatedStream {
            streamCount += 1
            let capacity = happens(oneIn: 4) ? random(100, 5_000) : random(20_000, 200_000)
            return SimulatedStream(
                streamCount, kernel: self, capacity: capacity, isEstablished: isEstablished)
        }

        // MARK: For calls

        /// What clock_gettime(2) says, nanoseconds; asking takes a moment, in which nothing happens.
        func readClock() -> Int64 {
            now += 20
            return now
        }

        /// Microseconds since 1970.
        var wallMicroseconds: Int64 { wallStart + now / 1000 }

        /// A word from the seed.
        func randomWord() -> UInt64 { generator.next() }

        /// A call takes its time, in which other things happen.
        func passCallTime() {
            runDueEvents(through: now + Self.callTime)
        }

        func close(_ descriptor: Int32) {
            guard let entry = descriptors.close(descriptor) else {
                return report("closed descriptor \(descriptor), which is not open")
            }
            switch entry.kind {
            case .stream(let stream): stream.close()
            case .listener(let address):
                if let port = address.port { listeners[port] = nil }
                for (stream, _) in entry.backlog { stream.close() }
            default: break
            }
        }

        // MARK: Sleeping

        private func runDueEvents(through time: Int64) {
            now = max(now, time)
            while let action = events.next(dueAt: now) { action() }
        }

        /// epoll_wait(2): time passes until something happens.
        func wait(capacity: Int, milliseconds: Int32) -> [(events: UInt32, data: UInt64)] {
            let deadline =
                milliseconds < 0 ? Int64.max : now + Int64(milliseconds) * 1_000_000
            passCallTime()
            while !descriptors.hasReady, now < deadline, violation == nil {
                guard let next = events.nextTime, next <= deadline else {
                    if deadline == .max {
                        report("everything sleeps for ever")
                        break
                    }
                    now = deadline
                    idleWaits = 0
                    break
                }
                runDueEvents(through: next)
            }
            if violation != nil { return [] }
            let result = descriptors.takeReady(capacity: capacity)
            noteWait(result.count, milliseconds)
            return result
        }

        private func noteWait(_ count: Int, _ milliseconds: Int32) {
            if count > 0 || milliseconds != 0 {
                idleWaits = 0
                return
            }
            idleWaits += 1
            if idleWaits > Self.spinLimit { report("the loop spins") }
        }
    }
#endif
