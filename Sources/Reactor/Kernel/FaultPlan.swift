#if DEBUG
    internal import CPlatform
    internal import Glibc
    internal import Synchronization

    /// A kernel that works, but for the faults of some rules.
    ///
    /// A fault keeps the kernel's promises: what would block, or moved fewer bytes than it could, is
    /// followed by an edge of epoll(7), as the room and the bytes that were there before still are.
    public final class FaultPlan: KernelStandIn {
        private struct State {
            var rules: [Progress] = []
            /// How sockets are watched, by descriptor.
            var watched: [Int32: Watch] = [:]
        }

        private struct Progress {
            let rule: FaultRule
            /// Calls that the rule is about.
            var calls = 0
            /// Those that went wrong.
            var faults = 0

            /// The next call's fault; nil when it goes well.
            mutating func next() -> FaultRule.Fault? {
                calls += 1
                let due = calls - rule.skipped
                if due <= 0 || due % rule.period != 0 || faults >= rule.times { return nil }
                faults += 1
                return rule.fault
            }
        }

        private struct Watch {
            let epoll: Int32
            let events: UInt32
            let data: UInt64
        }

        private let state = Mutex(State())

        /// A plan; more rules may follow.
        public init(_ rules: [FaultRule] = []) {
            add(rules)
        }

        /// The plan that a text says; see `FaultRule.parse`.
        public convenience init(text: String) throws(FaultTextError) {
            self.init(try FaultRule.parse(text))
        }

        /// From now on these calls go wrong, too.
        public func add(_ rules: [FaultRule]) {
            state.withLock { $0.rules += rules.map { Progress(rule: $0) } }
        }

        /// From now on everything goes well. What was counted is forgotten.
        public func removeAll() {
            state.withLock { $0.rules.removeAll() }
        }

        /// How many calls of a name went wrong so far.
        public func faults(of call: String) -> Int {
            state.withLock { state in
                state.rules.reduce(0) { $0 + ($1.rule.call == call ? $1.faults : 0) }
            }
        }

        /// How many calls of a name rules were asked about so far.
        public func calls(of call: String) -> Int {
            state.withLock { state in
                state.rules.reduce(0) { $0 + ($1.rule.call == call ? $1.calls : 0) }
            }
        }

        public func answer(_ call: SystemCall) -> SystemCallAnswer? {
            let fault: FaultRule.Fault? = state.withLock { state in
                if case .epollAdd(let epoll, let descriptor, let events, let data) = call {
                    state.watched[descriptor] = Watch(epoll: epoll, events: events, data: data)
                }
                if case .close(let descriptor) = call { state.watched[descriptor] = nil }
                // A call counts for every rule that it concerns; the first one that is due decides.
                var fault: FaultRule.Fault?
                for index in state.rules.indices where state.rules[index].rule.concerns(call) {
                    let next = state.rules[index].next()
                    fault = fault ?? next
                }
                return fault
            }
            switch fault {
            case nil: return nil
            case .error(let error):
                if error == .wouldBlock, let descriptor = call.descriptor { raiseEdge(descriptor) }
                return .failure(error)
            case .short(let count): return shortened(call, to: count)
            }
        }

        /// Has the kernel move a part only.
        private func shortened(_ call: SystemCall, to count: Int) -> SystemCallAnswer? {
            let result: Result<Int, Errno>?
            result = StandIn.suspended { () -> Result<Int, Errno>? in
                do throws(Errno) {
                    switch call {
                    case .read(let descriptor, let bytes) where bytes.count > count:
                        return .success(
                            try Syscalls.read(descriptor, .init(rebasing: bytes[..<count])))
                    case .write(let descriptor, let bytes) where bytes.count > count:
                        return .success(
                            try Syscalls.write(descriptor, .init(rebasing: bytes[..<count])))
                    case .receive(let descriptor, let bytes) where bytes.count > count:
                        return .success(
                            try Syscalls.receive(descriptor, .init(rebasing: bytes[..<count])))
                    case .send(let descriptor, let first, let second)
                    where first.count + second.count > count:
                        let start = min(first.count, count)
                        return .success(
                            try Syscalls.send(
                                descriptor, .init(rebasing: first[..<start]),
                                .init(rebasing: second[..<(count - start)])))
                    default: return nil
                    }
                } catch {
                    return .failure(error)
                }
            }
            switch result {
            case nil: return nil
            case .success(let moved):
                if let descriptor = call.descriptor { raiseEdge(descriptor) }
                return .value(moved)
            case .failure(let error): return .failure(error)
            }
        }

        /// epoll_ctl(2), EPOLL_CTL_MOD, looks anew: what is ready then is an edge.
        private func raiseEdge(_ descriptor: Int32) {
            guard let watch = state.withLock({ $0.watched[descriptor] }) else { return }
            var event = epoll_event()
            event.events = watch.events
            event.data.u64 = watch.data
            _ = epoll_ctl(watch.epoll, EPOLL_CTL_MOD, descriptor, &event)
        }
    }
#endif
