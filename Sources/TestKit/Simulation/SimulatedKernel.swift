#if DEBUG
    public import Reactor

    /// A machine with a network and a clock of its own, for one event loop: it answers the loop's
    /// calls into the kernel, and its time passes when the loop sleeps. Everything in it follows from
    /// its seed.
    ///
    /// Safe to be Sendable: it is for one thread, which makes it, runs the loop and lets go of it.
    public final class SimulatedKernel: KernelStandIn, @unchecked Sendable {
        private typealias Descriptor = SimulatedDescriptors.Entry

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
        private var descriptors = SimulatedDescriptors()
        private var servers: [UInt16: any SimulatedListener] = [:]
        private var listeners: [UInt16: Int32] = [:]
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
        public var wallSeconds: Int64 { (wallStart + now / 1000) / 1_000_000 }

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

        private func makeStream(isEstablished: Bool) -> SimulatedStream {
            streamCount += 1
            let capacity = happens(oneIn: 4) ? random(100, 5_000) : random(20_000, 200_000)
            return SimulatedStream(
                streamCount, kernel: self, capacity: capacity, isEstablished: isEstablished)
        }

        // MARK: Descriptors

        private func close(_ descriptor: Int32) {
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

        // MARK: Calls

        public func answer(_ call: SystemCall) -> SystemCallAnswer? {
            switch call {
            case .monotonicClock:
                now += 20
                return .value(Int(now))
            case .wallClock: return .value(Int(wallStart + now / 1000))
            case .randomNumber: return .value(Int(truncatingIfNeeded: generator.next()))
            case .makeEpoll: return .value(Int(descriptors.open(.epoll)))
            case .makeEventDescriptor: return .value(Int(descriptors.open(.flag)))
            case .socket:
                if isExhausted() { return failure("socket", 0, .tooManyOpenFiles) }
                return .value(Int(descriptors.open(.socket)))
            case .epollWait(_, let capacity, let milliseconds):
                return .events(wait(capacity: capacity, milliseconds: milliseconds))
            default: break
            }
            guard let descriptor = call.descriptor, descriptor >= SimulatedDescriptors.first else {
                return nil
            }
            runDueEvents(through: now + Self.callTime)
            if case .close = call {
                note("close", Int(descriptor), 0)
                close(descriptor)
                return .value(0)
            }
            guard let entry = descriptors[descriptor] else {
                report("\(call.name) of descriptor \(descriptor), which is not open")
                return .failure(Errno(rawValue: 9))
            }
            return answer(call, entry, descriptor)
        }

        private func answer(_ call: SystemCall, _ entry: Descriptor, _ descriptor: Int32)
            -> SystemCallAnswer
        {
            switch call {
            case .receive(_, let memory): return receive(entry, descriptor, memory)
            case .send(_, let first, let second): return send(entry, descriptor, first, second)
            case .peek(_, let memory): return peek(entry, descriptor, memory)
            case .accept: return accept(entry, descriptor)
            case .connect(_, let address): return connect(entry, descriptor, address)
            case .bind(_, let address):
                entry.kind = .listener(address)
                if let port = address.port { listeners[port] = descriptor }
                return .value(0)
            case .localAddress:
                if case .listener(let address) = entry.kind { return .address(address) }
                return .value(0)
            case .pendingError:
                guard case .stream(let stream) = entry.kind, let error = stream.takeError() else {
                    return .value(0)
                }
                return .failure(error)
            case .resetOnClose:
                if case .stream(let stream) = entry.kind { stream.setResetOnClose() }
                return .value(0)
            case .shutdown, .shutdownWrite:
                guard case .stream(let stream) = entry.kind else { return .value(0) }
                note("shutdown", Int(descriptor), 0)
                if case .shutdown = call {
                    stream.shut(receiving: true)
                } else {
                    stream.shut(receiving: false)
                }
                return .value(0)
            case .epollAdd(_, _, let events, let data):
                if happens(oneIn: faults.watchFailures), case .stream = entry.kind {
                    return failure("epoll_ctl", Int(descriptor), .noMemory)
                }
                entry.watch = (events, data)
                if entry.readiness & events != 0 { raise(descriptor) }
                return .value(0)
            case .epollRemove:
                entry.watch = nil
                return .value(0)
            case .raise:
                entry.isUp = true
                raise(descriptor)
                return .value(0)
            case .lower:
                entry.isUp = false
                return .value(0)
            default: return .value(0)
            }
        }

        private func failure(_ name: StaticString, _ subject: Int, _ error: Errno)
            -> SystemCallAnswer
        {
            note(name, subject, -Int(error.rawValue))
            return .failure(error)
        }

        private func isExhausted() -> Bool {
            faults.isExhausted || happens(oneIn: faults.exhaustions)
        }

        private func receive(
            _ entry: Descriptor, _ descriptor: Int32, _ memory: UnsafeMutableRawBufferPointer
        ) -> SystemCallAnswer {
            guard case .stream(let stream) = entry.kind else { return .failure(.invalidArgument) }
            if happens(oneIn: faults.interruptions) { return .failure(.interrupted) }
            if happens(oneIn: faults.resets) { stream.cutOff() }
            // Who asks for one byte wants to know whether there is any: the kernel does not lie.
            if memory.count > 1, !stream.isShown, happens(oneIn: faults.spuriousBlocks) {
                raise(descriptor)
                return failure("recv", stream.number, .wouldBlock)
            }
            let isShort = happens(oneIn: faults.shortTransfers) && !stream.isReadWhole
            let limit = isShort ? random(1, 100) : Int.max
            switch stream.receive(memory, atMost: limit) {
            case .success(let count):
                note("recv", stream.number, count)
                trace.note(UnsafeRawBufferPointer(rebasing: memory[..<count]))
                return .value(count)
            case .failure(let error): return failure("recv", stream.number, error)
            }
        }

        private func peek(
            _ entry: Descriptor, _ descriptor: Int32, _ memory: UnsafeMutableRawBufferPointer
        ) -> SystemCallAnswer {
            guard case .stream(let stream) = entry.kind else { return .failure(.invalidArgument) }
            if happens(oneIn: faults.interruptions) { return .failure(.interrupted) }
            if happens(oneIn: faults.resets) { stream.cutOff() }
            if happens(oneIn: faults.spuriousBlocks) {
                raise(descriptor)
                return failure("peek", stream.number, .wouldBlock)
            }
            switch stream.peek(memory) {
            case .success(let count):
                note("peek", stream.number, count)
                trace.note(UnsafeRawBufferPointer(rebasing: memory[..<count]))
                return .value(count)
            case .failure(let error): return failure("peek", stream.number, error)
            }
        }

        private func send(
            _ entry: Descriptor, _ descriptor: Int32, _ first: UnsafeRawBufferPointer,
            _ second: UnsafeRawBufferPointer
        ) -> SystemCallAnswer {
            guard case .stream(let stream) = entry.kind else { return .failure(.invalidArgument) }
            if happens(oneIn: faults.interruptions) { return .failure(.interrupted) }
            if happens(oneIn: faults.resets) { stream.cutOff() }
            var limit = happens(oneIn: faults.shortTransfers) ? random(1, 100) : Int.max
            if happens(oneIn: faults.spuriousBlocks) { limit = 0 }
            switch stream.send(first, second, atMost: limit) {
            case .success(let count):
                note("send", stream.number, count)
                trace.note(UnsafeRawBufferPointer(rebasing: first.prefix(count)))
                let behind = second.prefix(max(0, count - first.count))
                trace.note(UnsafeRawBufferPointer(rebasing: behind))
                return .value(count)
            case .failure(let error): return failure("send", stream.number, error)
            }
        }

        private func accept(_ entry: Descriptor, _ descriptor: Int32) -> SystemCallAnswer {
            if happens(oneIn: faults.interruptions) { return .failure(.interrupted) }
            if isExhausted() { return failure("accept", Int(descriptor), .tooManyOpenFiles) }
            if entry.backlog.isEmpty { return .failure(.wouldBlock) }
            let (stream, address) = entry.backlog.removeFirst()
            if happens(oneIn: faults.abortedAccepts) {
                stream.setResetOnClose()
                stream.close()
                return failure("accept", Int(descriptor), .connectionAborted)
            }
            let accepted = descriptors.open(.stream(stream))
            stream.descriptor = accepted
            note("accept", Int(accepted), stream.number)
            return .accepted(accepted, from: address)
        }

        private func connect(_ entry: Descriptor, _ descriptor: Int32, _ address: SocketAddress)
            -> SystemCallAnswer
        {
            let stream = makeStream(isEstablished: false)
            entry.kind = .stream(stream)
            stream.descriptor = descriptor
            note("connect", Int(descriptor), stream.number)
            let server = address.port.flatMap { servers[$0] }
            switch server?.admits(stream) ?? .refused {
            case .accepted: plan(at: now + latency()) { stream.establish() }
            case .refused:
                if happens(oneIn: 3) {
                    stream.refuse(.connectionRefused)
                    _ = stream.takeError()
                    return failure("connect", stream.number, .connectionRefused)
                }
                plan(at: now + latency()) { stream.refuse(.connectionRefused) }
            case .ignored: break
            }
            return .failure(.inProgress)
        }

        // MARK: Sleeping

        private func runDueEvents(through time: Int64) {
            now = max(now, time)
            while let action = events.next(dueAt: now) { action() }
        }

        /// epoll_wait(2): time passes until something happens.
        private func wait(capacity: Int, milliseconds: Int32) -> [(events: UInt32, data: UInt64)] {
            let deadline =
                milliseconds < 0 ? Int64.max : now + Int64(milliseconds) * 1_000_000
            runDueEvents(through: now + Self.callTime)
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
