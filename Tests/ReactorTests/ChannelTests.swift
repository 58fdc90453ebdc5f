import TestKit
import Testing

@testable import Reactor

@Suite("Channels between processes")
struct ChannelTests {
    private func pair(
        _ body: @Sendable (Channel, Channel, Waiter) async throws -> Void
    ) async throws {
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            let ends = try Channel.pair()
            try await body(
                Channel(owning: ends.near, waiter: waiter),
                Channel(owning: ends.far, waiter: waiter), waiter)
            waiter.invalidate()
        }
    }

    private func next(_ channel: Channel, _ waiter: Waiter) async -> Channel.Message {
        while true {
            let message = channel.next()
            if message != .nothing { return message }
            if await waiter.wait(until: .now.advanced(by: .seconds(10))) == .timedOut {
                return .nothing
            }
        }
    }

    @Test("lines arrive one by one, then the end")
    func lines() async throws {
        try await pair { near, far, waiter in
            #expect(far.next() == .nothing)
            #expect(near.send("prepared") && near.send("") && near.send("serving 3 4"))
            near.close()
            for line in ["prepared", "", "serving 3 4"] {
                #expect(await next(far, waiter) == .line(line))
            }
            #expect(await next(far, waiter) == .end)
            #expect(!far.send("anybody?"))
        }
    }

    @Test("a side that never ends its line is as good as gone")
    func endless() async throws {
        try await pair { near, far, waiter in
            let piece = String(repeating: "x", count: 60 << 10)
            #expect(near.send(piece))
            #expect(await next(far, waiter) == .line(piece))
        }
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            let ends = try Channel.pair()
            let far = try Channel(owning: ends.far, waiter: waiter)
            let noise = [UInt8](repeating: 0x78, count: 100 << 10)
            _ = try noise.span.withUnsafeBytes { bytes throws(Errno) in
                try Syscalls.write(ends.near, bytes)
            }
            #expect(await next(far, waiter) == .end)
            Syscalls.close(ends.near)
            far.close()
            waiter.invalidate()
        }
    }
}

@Suite("Processes")
struct ProcessTests {
    private func end(_ script: String, _ environment: [String] = [], keeping: [Int32] = [])
        throws -> ProcessEnd
    {
        let process = try Syscalls.spawn(
            "/bin/sh", arguments: ["sh", "-c", script], environment: environment, keeping: keeping)
        let deadline = MonotonicInstant.now.advanced(by: .seconds(20))
        while MonotonicInstant.now < deadline {
            if let end = try Syscalls.reap(process) { return end }
            Syscalls.pause(milliseconds: 2)
        }
        Syscalls.kill(process, 9)
        throw Errno.wouldBlock
    }

    @Test("how a process ended is told apart")
    func ends() throws {
        #expect(try end("exit 7") == .exited(7))
        #expect(try end("kill -9 $$") == .killed(9))
        #expect("\(try end("exit 0"))" == "exited 0")
        #expect("\(ProcessEnd.killed(11))" == "was killed by signal 11")
    }

    @Test("it has the environment that it was given, and the descriptors that it was left")
    func inherits() throws {
        #expect(try end("exit $CODE", ["CODE=5"]) == .exited(5))
        let ends = try Channel.pair()
        let script = "test -e /proc/$$/fd/\(ends.near)"
        #expect(try end(script, keeping: [ends.near]) == .exited(0))
        #expect(try end(script) == .exited(1))
        Syscalls.close(ends.near)
        Syscalls.close(ends.far)
    }

    @Test("what cannot be started says why, and what is no child cannot be reaped")
    func errors() {
        #expect(throws: Errno.noSuchFile) {
            try Syscalls.spawn("/nonexistent", arguments: ["x"], environment: [], keeping: [])
        }
        #expect(throws: Errno.self) { try Syscalls.reap(1) }
    }
}
