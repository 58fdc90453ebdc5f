#if DEBUG
    import Configuration
    import Reactor
    import TestKit
    import Testing

    @testable import Proxy

    /// A worker between a client and a server, and a kernel that does not always do what it is asked.
    @Suite("Faults of the kernel: a worker")
    struct WorkerFaultTests {
        private static let get = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

        @Test(
            "who cannot accept pauses, says so once, counts, and accepts again",
            arguments: [
                Errno.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace,
            ])
        func accepting(error: Errno) async throws {
            let server = try await ScriptedServer.start { _, _ in .ok("yes") }
            let rig = try await WorkerRig(upstream: [server.port])
            rig.plan.add([FaultRule("accept", error, times: 6)])
            // Ten connections knock, and each of them is an edge.
            let begun = MonotonicInstant.now
            try await withThrowingTaskGroup { group in
                for _ in 0..<10 {
                    group.addTask { try await rig.ask(Self.get)?.hasSuffix("yes") }
                }
                for try await isServed in group { #expect(isServed == true) }
            }
            // Six pauses of 100 ms, whoever knocks meanwhile.
            #expect(MonotonicInstant.now.microseconds(since: begun) >= 600_000)
            #expect(rig.plan.faults(of: "accept") == 6)
            #expect(rig.records.acceptFailures == 6)
            #expect(
                rig.log.messages(.error) == ["cannot accept connections; trying again"])
            #expect(rig.log.lines.first?.fields["error"] == error.description)
            await rig.stop()
        }

        @Test("a connection that cannot be watched is closed; the next one is served")
        func unwatched() async throws {
            let server = try await ScriptedServer.start { _, _ in .ok("yes") }
            let rig = try await WorkerRig(upstream: [server.port])
            rig.plan.add([FaultRule("epoll_ctl", .noMemory, times: 1)])
            #expect(try await rig.ask(Self.get) == "")
            #expect(rig.records.acceptFailures == 1)
            #expect(try await rig.ask(Self.get)?.hasSuffix("yes") == true)
            #expect(rig.records.requests.map(\.status) == [200])
            await rig.stop()
        }

        @Test(
            "nothing left for a connection to a server is a 503, and no server's fault",
            arguments: [
                "socket:EMFILE:2", "socket:ENFILE:2", "epoll_ctl:ENOMEM:2", "connect:ENOBUFS:2",
            ])
        func upstreamSocket(rules: String) async throws {
            let server = try await ScriptedServer.start { _, _ in .ok("yes") }
            // One failure would be enough to leave a server alone.
            let rig = try await WorkerRig(upstream: [server.port, server.port]) {
                $0.ejection.failures = 1
                $0.panicThreshold = 0
            }
            // The client's own connection is watched before.
            let skipped = rules.hasPrefix("epoll_ctl") ? 1 : 0
            var rule = try FaultRule.parse(rules)[0]
            rule.period = skipped + 1
            rig.plan.add([rule])
            for _ in 0..<2 {
                let answer = try #require(try await rig.ask(Self.get))
                #expect(answer.hasPrefix("HTTP/1.1 503 "))
                #expect(answer.contains("\"overloaded\""))
                #expect(answer.contains("Retry-After:"))
            }
            #expect(try await rig.ask(Self.get)?.hasSuffix("yes") == true)
            let failure: RequestFailure = rules.contains("FILE") ? .openFiles : .memoryLimit
            #expect(rig.records.requests.map(\.failure) == [failure, failure, nil])
            #expect(
                rig.log.lines.filter { $0.level <= .warning }.map(\.message)
                    == ["no connection to an upstream server can be opened"])
            await rig.stop()
        }

        @Test(
            "a server that cannot be reached for its own reasons is a 502",
            arguments: ["connect:ECONNREFUSED", "connect:EHOSTUNREACH", "connect:EADDRNOTAVAIL"])
        func unreachable(rules: String) async throws {
            let rig = try await WorkerRig(upstream: [9])
            rig.plan.add(try FaultRule.parse(rules))
            #expect(try await rig.ask(Self.get)?.hasPrefix("HTTP/1.1 502 ") == true)
            #expect(rig.records.requests.map(\.failure) == [.upstreamConnect])
            #expect(
                rig.log.lines.first { $0.message == "upstream server fails" }?.fields["error"]
                    == (try FaultRule.parse(rules)[0]).errorText)
            await rig.stop()
        }

        @Test(
            "bodies of a megabyte arrive as they were sent, both ways",
            arguments: [
                "send:short=1000,recv:short=777", "send:EAGAIN:1/2,recv:EAGAIN:1/2",
                "send:EINTR:1/2,recv:EINTR:1/2,accept:EINTR:1/2",
                "send:short=1:1/3,send:EAGAIN:1/5,recv:short=1:1/4,recv:EINTR:1/7",
            ])
        func bodies(rules: String) async throws {
            let server = try await ScriptedServer.start { request, _ in
                let start = request.firstRange(of: "\r\n\r\n")?.upperBound ?? request.endIndex
                return .ok(String(request[start...]))
            }
            let rig = try await WorkerRig(
                upstream: [server.port], plan: FaultPlan(try FaultRule.parse(rules)))
            var body = ""
            for number in 0..<150_000 { body += "\(number) " }
            let answer = try await rig.ask(
                "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n"
                    + "Connection: close\r\n\r\n\(body)")
            let text = try #require(answer)
            let start = try #require(text.firstRange(of: "\r\n\r\n")?.upperBound)
            #expect(text[start...] == body)
            #expect(rig.records.requests.map(\.status) == [200])
            #expect(rig.records.requests.first?.bytesIn == UInt64(body.utf8.count))
            #expect(rig.records.requests.first?.bytesOut == UInt64(body.utf8.count))
            await rig.stop()
        }

        @Test(
            "a connection that breaks at any call costs its own request alone, with one record",
            arguments: [
                "recv:ECONNRESET", "recv:EIO", "recv:ENOMEM", "recv:ETIMEDOUT", "send:EPIPE",
                "send:ECONNRESET", "send:ENOBUFS", "send:ENOMEM",
            ])
        func broken(rules: String) async throws {
            let server = try await ScriptedServer.start { _, _ in .ok("yes") }
            for skipped in 0..<4 {
                let rig = try await WorkerRig(upstream: [server.port])
                let rule = try FaultRule.parse("\(rules):1@\(skipped)")
                rig.plan.add(rule)
                let first = try #require(try await rig.ask(Self.get))
                let isServed = first.hasSuffix("yes")
                // Nothing, or an honest answer.
                #expect(
                    first.isEmpty || isServed || first.hasPrefix("HTTP/1.1 502 "),
                    "\(skipped): \(first)")
                rig.plan.removeAll()
                let next = Self.get.replacing("/x", with: "/y")
                #expect(try await rig.ask(next)?.hasSuffix("yes") == true)
                let isRecorded = try await rig.wait(for: { rig.records.count(of: "/y") == 1 })
                #expect(isRecorded)
                // A connection may break before there is a request.
                let count = rig.records.count(of: "/x")
                #expect(count == 1 || (first.isEmpty && count == 0), "\(skipped): \(count)")
                await rig.stop()
            }
        }

        @Test("a listener that cannot be watched is an error, and the others serve on")
        func listenerUnwatched() async throws {
            let server = try await ScriptedServer.start { _, _ in .ok("yes") }
            let rig = try await WorkerRig(upstream: [server.port])
            let any = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
            let listening = try ListeningDescriptor(any, isShared: false)
            rig.plan.add([FaultRule("epoll_ctl", .noMemory, times: 1)])
            let listener = Listener(name: "second", listen: .tcp(host: "127.0.0.1", port: 1))
            await #expect(throws: Errno.noMemory) {
                try await rig.worker.accept(listening, listener)
            }
            #expect(try await rig.ask(Self.get)?.hasSuffix("yes") == true)
            await rig.stop()
        }
    }

    extension FaultRule {
        /// What the kernel calls the error.
        fileprivate var errorText: String {
            if case .error(let error) = fault { error.description } else { "" }
        }
    }
#endif
