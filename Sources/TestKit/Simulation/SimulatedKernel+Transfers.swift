#if DEBUG
    internal import Reactor

    /// Bytes from and to streams, and what may come in between.
    extension SimulatedKernel {
        /// recv(2) and send(2), also with MSG_PEEK.
        func transfer(_ call: SystemCall, _ stream: SimulatedStream) -> SystemCallAnswer {
            if happens(oneIn: faults.interruptions) { return .failure(.interrupted) }
            if happens(oneIn: faults.resets) { stream.cutOff() }
            switch call {
            case .receive(_, let memory): return receive(memory, stream)
            case .peek(_, let memory): return peek(memory, stream)
            case .send(_, let first, let second): return send(first, second, stream)
            default: return .failure(.invalidArgument)
            }
        }

        private func receive(_ memory: UnsafeMutableRawBufferPointer, _ stream: SimulatedStream)
            -> SystemCallAnswer
        {
            // Who asks for one byte wants to know whether there is any: the kernel does not lie.
            if memory.count > 1, !stream.isShown, happens(oneIn: faults.spuriousBlocks) {
                return blocked("recv", stream)
            }
            let isShort = happens(oneIn: faults.shortTransfers) && !stream.isReadWhole
            let limit = isShort ? random(1, 100) : Int.max
            return came("recv", stream, stream.receive(memory, atMost: limit), memory)
        }

        private func peek(_ memory: UnsafeMutableRawBufferPointer, _ stream: SimulatedStream)
            -> SystemCallAnswer
        {
            if happens(oneIn: faults.spuriousBlocks) { return blocked("peek", stream) }
            return came("peek", stream, stream.peek(memory), memory)
        }

        /// There may be something, but not for this call.
        private func blocked(_ name: StaticString, _ stream: SimulatedStream) -> SystemCallAnswer {
            stream.raise()
            return failure(name, stream.number, .wouldBlock)
        }

        /// What a call brought from a stream.
        private func came(
            _ name: StaticString, _ stream: SimulatedStream, _ result: Result<Int, Errno>,
            _ memory: UnsafeMutableRawBufferPointer
        ) -> SystemCallAnswer {
            switch result {
            case .success(let count):
                note(name, stream.number, count)
                note(UnsafeRawBufferPointer(rebasing: memory[..<count]))
                return .value(count)
            case .failure(let error): return failure(name, stream.number, error)
            }
        }

        private func send(
            _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer,
            _ stream: SimulatedStream
        ) -> SystemCallAnswer {
            var limit = happens(oneIn: faults.shortTransfers) ? random(1, 100) : Int.max
            if happens(oneIn: faults.spuriousBlocks) { limit = 0 }
            switch stream.send(first, second, atMost: limit) {
            case .success(let count):
                note("send", stream.number, count)
                note(UnsafeRawBufferPointer(rebasing: first.prefix(count)))
                let behind = second.prefix(max(0, count - first.count))
                note(UnsafeRawBufferPointer(rebasing: behind))
                return .value(count)
            case .failure(let error): return failure("send", stream.number, error)
            }
        }
    }
#endif
