#if DEBUG
    internal import Reactor

    /// One connection between the proxy and somebody, as both ends and the kernel see it.
    ///
    /// The near end is the proxy's descriptor, which works as a TCP socket of Linux does, edges of
    /// epoll(7) included. The far end is this object's public half.
    public final class SimulatedStream {
        /// Tells it from the others of the run.
        public let number: Int
        /// Who is at the far end.
        public weak var peer: (any SimulatedPeer)?
        /// How long the far end takes to read what has come, nanoseconds for each kilobyte.
        public var readingTime: Int64 = 0
        /// The proxy's reads are never short while more is there: what came in one piece is read in one.
        public var isReadWhole = false
        /// The far end has not heard of an end of the connection, nor ended it itself.
        public private(set) var isAlive = true

        unowned let kernel: SimulatedKernel
        /// Of the near end; nil while the proxy does not have it, or has it no more.
        var descriptor: Int32?
        /// The proxy closed it.
        private(set) var isClosed = false
        /// The handshake of TCP is complete.
        private(set) var isEstablished: Bool

        // Towards the proxy.
        private var arrived = ArrivedBytes()
        private var isEndArrived = false
        private var isBroken = false
        private var pendingError: Errno?
        private var isReceivingShut = false
        private var arrivalTime: Int64 = 0
        /// What the far end has sent and the network has not brought yet: pieces, and ends.
        private var underWay = 0

        // Towards the far end.
        private let capacity: Int
        private var unread = 0
        private var isSendingShut = false
        private var hasNoSpace = false
        private var deliveryTime: Int64 = 0
        private var isResetOnClose = false

        init(_ number: Int, kernel: SimulatedKernel, capacity: Int, isEstablished: Bool) {
            self.number = number
            self.kernel = kernel
            self.capacity = capacity
            self.isEstablished = isEstablished
        }

        // MARK: The far end

        /// Sends bytes to the proxy, `delay` nanoseconds from now, in pieces of the network's choice.
        public func send(_ bytes: [UInt8], after delay: Int64 = 0, inOnePiece: Bool = false) {
            if !isAlive { return }
            if inOnePiece { return arrive(after: delay) { $0.take(bytes) } }
            var start = 0
            while start < bytes.count {
                let piece =
                    kernel.random(0, 3) == 0 ? kernel.random(1, 64) : kernel.random(64, 20_000)
                let end = min(bytes.count, start + piece)
                let part = Array(bytes[start..<end])
                arrive(after: delay) { $0.take(part) }
                start = end
            }
        }

        /// Ends the far end's sending side, behind what it sent.
        public func finish(after delay: Int64 = 0) {
            if !isAlive { return }
            arrive(after: delay) { stream in
                stream.isEndArrived = true
                stream.kernel.note("fin", stream.number, 0)
                stream.raise()
            }
        }

        /// Cuts the connection off at once, for both sides.
        public func reset() {
            if !isAlive { return }
            isAlive = false
            arrive(after: 0) { $0.takeReset(.connectionReset) }
        }

        /// Something on the way cuts the connection off, and both ends are told.
        func cutOff() {
            if !isAlive { return }
            reset()
            kernel.plan(after: kernel.latency()) { [self] in peer?.reset(self) }
        }

        /// Bytes that the proxy has written and the far end has not read.
        public var unreadCount: Int { unread }
        /// Everything that the far end sent has been read by the proxy.
        public var isReadByProxy: Bool { underWay == 0 && arrived.isEmpty }

        private func arrive(after delay: Int64, _ action: @escaping (SimulatedStream) -> Void) {
            // The network keeps the order.
            arrivalTime = max(arrivalTime, kernel.now + delay + kernel.latency())
            underWay += 1
            kernel.plan(at: arrivalTime) { [self] in
                underWay -= 1
                action(self)
            }
        }

        private func take(_ bytes: [UInt8]) {
            if isBroken { return }
            if isClosed || isReceivingShut {
                // Nobody reads it: the far end is told so, and may lose what was on its way to it.
                if isClosed { tellReset() }
                return
            }
            kernel.note("arrive", number, bytes.count)
            arrived.append(bytes)
            raise()
        }

        private func takeReset(_ error: Errno) {
            if isBroken { return }
            isBroken = true
            pendingError = error
            kernel.note("rst", number, 0)
            raise()
        }

        private func tellReset() {
            deliveryTime = max(deliveryTime, kernel.now + kernel.latency())
            kernel.plan(at: deliveryTime) { [self] in
                if !isAlive { return }
                isAlive = false
                isBroken = true
                peer?.reset(self)
            }
        }

        // MARK: The near end

        /// The handshake succeeded.
        func establish() {
            if isClosed { return }
            isEstablished = true
            raise()
        }

        /// The handshake failed.
        func refuse(_ error: Errno) {
            isAlive = false
            isBroken = true
            pendingError = error
            raise()
        }

        /// What poll(2) would say.
        var readiness: UInt32 {
            if isBroken { return Readiness.all }
            if !isEstablished { return 0 }
            var events: UInt32 = 0
            if !arrived.isEmpty || isEndArrived || isReceivingShut {
                events |= Readiness.input
            }
            if isEndArrived || isReceivingShut { events |= Readiness.peerEnd }
            if (isEndArrived || isReceivingShut) && isSendingShut { events |= Readiness.end }
            if capacity - unread >= capacity / 3 || isSendingShut { events |= Readiness.output }
            return events
        }

        func raise() {
            if let descriptor { kernel.raise(descriptor) }
        }

        /// Bytes that recv(2) with MSG_PEEK showed are there for the next recv(2).
        var isShown: Bool { arrived.isShown }

        /// recv(2).
        func receive(_ memory: UnsafeMutableRawBufferPointer, atMost limit: Int)
            -> Result<Int, Errno>
        {
            if arrived.isEmpty || isReceivingShut { return receiveNothing() }
            let count = arrived.take(memory, atMost: limit)
            // The rest counts as having come a moment later.
            if !arrived.isEmpty && count < memory.count { raise() }
            return .success(count)
        }

        /// recv(2) with MSG_PEEK: what is there stays there, and raises no edge again.
        func peek(_ memory: UnsafeMutableRawBufferPointer) -> Result<Int, Errno> {
            if arrived.isEmpty || isReceivingShut { return receiveNothing() }
            return .success(arrived.show(memory))
        }

        private func receiveNothing() -> Result<Int, Errno> {
            if let error = takeError() { return .failure(error) }
            if isEndArrived || isBroken || isReceivingShut { return .success(0) }
            return .failure(.wouldBlock)
        }

        /// send(2).
        func send(
            _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, atMost limit: Int
        ) -> Result<Int, Errno> {
            if let error = takeError() { return .failure(error) }
            if isBroken || isSendingShut { return .failure(.brokenPipe) }
            let wanted = first.count + second.count
            let count = min(wanted, capacity - unread, limit)
            if count < wanted { hasNoSpace = true }
            if count == 0 {
                kernel.wakeWriter(self)
                return .failure(.wouldBlock)
            }
            var bytes = Array(first.prefix(count))
            if bytes.count < count { bytes += second.prefix(count - bytes.count) }
            unread += count
            deliver(bytes)
            if count < wanted { kernel.wakeWriter(self) }
            return .success(count)
        }

        /// SO_ERROR.
        func takeError() -> Errno? {
            defer { pendingError = nil }
            return pendingError
        }

        /// A moment has passed: there may be room again that the proxy does not know of.
        func noteRoom() {
            if hasNoSpace && capacity - unread >= capacity / 3 {
                hasNoSpace = false
                raise()
            }
        }

        func setResetOnClose() { isResetOnClose = true }

        /// shutdown(2).
        func shut(receiving: Bool) {
            if receiving { isReceivingShut = true }
            if !isSendingShut {
                isSendingShut = true
                deliverEnd()
            }
            raise()
        }

        /// close(2).
        func close() {
            isClosed = true
            descriptor = nil
            if isBroken { return }
            if isResetOnClose || !arrived.isEmpty {
                tellReset()
            } else if !isSendingShut {
                isSendingShut = true
                deliverEnd()
            }
        }

        private func deliver(_ bytes: [UInt8]) {
            deliveryTime = max(deliveryTime, kernel.now + kernel.latency())
            deliveryTime += readingTime * Int64(bytes.count) / 1024
            kernel.plan(at: deliveryTime) { [self] in
                unread -= bytes.count
                if !isAlive { return }
                kernel.note("deliver", number, bytes.count)
                peer?.received(bytes, on: self)
                noteRoom()
            }
        }

        private func deliverEnd() {
            deliveryTime = max(deliveryTime, kernel.now + kernel.latency())
            kernel.plan(at: deliveryTime) { [self] in
                if isAlive { peer?.finished(self) }
            }
        }
    }
#endif
