#if DEBUG
    import Reactor
    import TestKit
    import Testing

    /// What the kernel may answer at any moment, and what a loop makes of it. Every test has a plan of
    /// its own, which is good for its loops alone.
    @Suite("Faults of the kernel: sockets and loops")
    struct SocketFaultTests {
        private static let patience = Duration.seconds(20)
        private let plan = FaultPlan()

        /// A loop whose calls follow the plan.
        private func faultyLoop() throws -> TestLoop {
            try StandIn.use(plan) { try TestLoop() }
        }

        @Test(
            "no byte is lost or doubled, whatever comes in between",
            arguments: [
                "send:short=7", "recv:short=3", "send:EAGAIN:1/2", "recv:EAGAIN:1/2",
                "send:EINTR:1/2,recv:EINTR:1/3",
                "send:short=1:1/2,send:EAGAIN:1/3,recv:short=1:1/2",
            ])
        func transfers(rules: String) async throws {
            plan.add(try FaultRule.parse(rules))
            let echoed = try await faultyLoop().run { loop in
                let waiter = Waiter(loop: loop.loop)
                defer { waiter.invalidate() }
                let pair = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
                let sent = ByteBuffer(capacity: 0)
                for number in 0..<4000 { sent.append("\(number),") }
                let wanted = sent.withUnsafeBytes { Array($0) }
                let received = ByteBuffer(capacity: 1 << 10)
                let deadline = loop.loop.now.advanced(by: Self.patience)
                while received.count < wanted.count {
                    var hasMoved = false
                    if !sent.isEmpty {
                        let result = try sent.withUnsafeBytes { bytes throws(Errno) in
                            try pair.near.write(bytes)
                        }
                        if case .bytes(let count) = result {
                            sent.consume(count)
                            hasMoved = true
                        }
                    }
                    received.reserve(1 << 10)
                    if case .bytes = try pair.far.read(into: received) { hasMoved = true }
                    if hasMoved { continue }
                    if await waiter.wait(until: deadline) == .timedOut { break }
                }
                return received.withUnsafeBytes { Array($0) } == wanted
            }
            #expect(echoed)
        }

        @Test(
            "a connection that is gone before it is accepted hides none behind it",
            arguments: ["ECONNABORTED", "EPROTO", "EPERM", "ENETDOWN", "EHOSTUNREACH", "EINTR"])
        func aborted(error: String) async throws {
            plan.add(try FaultRule.parse("accept:\(error):2"))
            let accepted = try await faultyLoop().run { loop in
                let waiter = Waiter(loop: loop.loop)
                defer { waiter.invalidate() }
                let any = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
                let listening = try ListeningDescriptor(any, isShared: false)
                let client = try Socket.connect(to: listening.address, loop: loop.loop)
                client.waiter = waiter
                while client.connectResult() == nil { _ = await waiter.wait() }
                let listener = try ListeningSocket(listening, loop: loop.loop, waiter: waiter)
                return try listener.accept() != nil
            }
            #expect(accepted)
            #expect(plan.faults(of: "accept") == 2)
        }

        @Test(
            "what accept cannot do now is thrown, and no descriptor is lost",
            arguments: [
                "accept:EMFILE:1", "accept:ENFILE:1", "accept:ENOMEM:1", "epoll_ctl:ENOMEM:1@2",
            ])
        func exhausted(rules: String) async throws {
            plan.add(try FaultRule.parse(rules))
            plan.add([FaultRule("close", .inputOutput, skipped: .max)])
            try await faultyLoop().run { loop in
                let waiter = Waiter(loop: loop.loop)
                defer { waiter.invalidate() }
                let any = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
                let listening = try ListeningDescriptor(any, isShared: false)
                let listener = try ListeningSocket(listening, loop: loop.loop, waiter: waiter)
                let client = try StandIn.suspended {
                    try Socket.connect(to: listening.address, loop: loop.loop)
                }
                client.waiter = waiter
                while client.connectResult() == nil { _ = await waiter.wait() }
                let error = #expect(throws: Errno.self) {
                    while try listener.accept() == nil {}
                }
                #expect(error?.isExhaustion == true)
            }
            let lost = rules.hasPrefix("epoll_ctl") ? 1 : 0
            #expect(plan.calls(of: "close") >= lost)
        }

        @Test("a loop that cannot watch a listener keeps what it watches")
        func listenerUnwatched() async throws {
            let moved = try await faultyLoop().run { loop in
                let waiter = Waiter(loop: loop.loop)
                defer { waiter.invalidate() }
                let pair = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
                plan.add([FaultRule("epoll_ctl", .noMemory, times: 1)])
                let any = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
                let listening = try ListeningDescriptor(any, isShared: false)
                #expect(throws: Errno.noMemory) {
                    _ = try ListeningSocket(listening, loop: loop.loop, waiter: waiter)
                }
                // Whoever got its place in the table would wake us no more.
                let buffer = ByteBuffer(capacity: 16)
                while case .bytes = try pair.far.read(into: buffer) {}
                while case .bytes = try pair.near.read(into: buffer) {}
                #expect(try pair.near.write("x".bytes) == .bytes(1))
                #expect(try pair.far.write("y".bytes) == .bytes(1))
                let deadline = loop.loop.now.advanced(by: Self.patience)
                while buffer.count < 2, await waiter.wait(until: deadline) == .ready {
                    _ = try pair.far.read(into: buffer)
                    _ = try pair.near.read(into: buffer)
                }
                return buffer.count
            }
            #expect(moved == 2)
        }

        @Test("a loop that cannot watch its own flag is not made, and closes what it opened")
        func loopUnmade() throws {
            plan.add(try FaultRule.parse("epoll_ctl:ENOMEM:1"))
            plan.add([FaultRule("close", .inputOutput, skipped: .max)])
            try StandIn.use(plan) {
                #expect(throws: Errno.noMemory) { _ = try EventLoop() }
                #expect(plan.calls(of: "close") == 2)
                _ = try EventLoop()
            }
        }

        @Test(
            "a socket that cannot be opened or watched is an error and no leak",
            arguments: [
                ("socket:EMFILE:1", 0), ("socket:ENFILE:1", 0), ("epoll_ctl:ENOMEM:1@1", 1),
            ])
        func connects(rules: String, closed: Int) async throws {
            plan.add(try FaultRule.parse(rules))
            plan.add([FaultRule("close", .inputOutput, skipped: .max)])
            try await faultyLoop().run { loop in
                let address = try #require(SocketAddress(literal: "127.0.0.1", port: 9))
                let error = #expect(throws: Errno.self) {
                    _ = try Socket.connect(to: address, loop: loop.loop)
                }
                #expect(error?.isExhaustion == true)
                #expect(plan.calls(of: "close") == closed)
            }
        }

        @Test("threads inherit the faults of the thread that starts them, and no others do")
        func threads() throws {
            plan.add([FaultRule("eventfd", .tooManyOpenFiles)])
            let done = try EventDescriptor()
            StandIn.use(plan) {
                _ = Thread.start(named: "heir") {
                    #expect(throws: Errno.tooManyOpenFiles) { _ = try EventDescriptor() }
                    done.signal()
                }
            }
            #expect(done.wait(atMost: Self.patience))
            #expect(throws: Never.self) { _ = try EventDescriptor() }
        }
    }

    extension String {
        /// The bytes, for a test's write.
        fileprivate var bytes: UnsafeRawBufferPointer {
            // Safe: a test's few bytes may stay for as long as the process lives.
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: utf8.count, alignment: 1)
            copy.copyBytes(from: utf8)
            return UnsafeRawBufferPointer(copy)
        }
    }
#endif
