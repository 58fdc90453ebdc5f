#if DEBUG
    public import Reactor

    /// What the loop asks of its kernel.
    extension SimulatedKernel: KernelStandIn {
        private typealias Descriptor = SimulatedDescriptors.Entry

        public func answer(_ call: SystemCall) -> SystemCallAnswer? {
            switch call {
            case .monotonicClock: return .value(Int(readClock()))
            case .wallClock: return .value(Int(wallMicroseconds))
            case .randomNumber: return .value(Int(truncatingIfNeeded: randomWord()))
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
            passCallTime()
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
            case .receive, .send, .peek:
                guard case .stream(let stream) = entry.kind else {
                    return .failure(.invalidArgument)
                }
                return transfer(call, stream)
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

        /// A call that fails, for the trace and the proxy.
        func failure(_ name: StaticString, _ subject: Int, _ error: Errno)
            -> SystemCallAnswer
        {
            note(name, subject, -Int(error.rawValue))
            return .failure(error)
        }

        private func isExhausted() -> Bool {
            faults.isExhausted || happens(oneIn: faults.exhaustions)
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
    }
#endif
