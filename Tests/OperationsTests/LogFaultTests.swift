#if DEBUG
    import Reactor
    import TestKit
    import Testing

    @testable import Operations

    @Suite("Faults of the kernel: the log")
    struct LogFaultTests {
        private let folder: TemporaryFolder
        private let descriptor: Int32

        init() throws {
            folder = try TemporaryFolder()
            descriptor = try Syscalls.openForWriting(folder.path(of: "log"))
        }

        private func text() throws -> String {
            String(decoding: try folder.read("log"), as: UTF8.self)
        }

        private func chunk(_ lines: [String]) -> LogChunk {
            var chunk = LogChunk()
            for line in lines {
                let bytes = Array(line.utf8)
                let fits = chunk.appendLine { $0.append(verbatim: bytes.span) }
                #expect(fits)
            }
            return chunk
        }

        @Test(
            "short, interrupted and would-block writes lose nothing",
            arguments: ["write:short=1", "write:EINTR:1/2", "write:EAGAIN:1/2,write:short=3"])
        func whole(rules: String) throws {
            defer { Syscalls.close(descriptor) }
            StandIn.use(try FaultPlan(text: rules)) {
                var output = LogOutput(descriptor: descriptor)
                #expect(output.write(chunk(["one", "two", "three"]).bytes) == 0)
            }
            #expect(try text() == "one\ntwo\nthree\n")
        }

        @Test(
            "lines that cannot be written are counted, the writer goes on, and says how many were lost",
            arguments: [Errno.noSpace, .brokenPipe, .inputOutput, .quotaExceeded])
        func failing(error: Errno) throws {
            // The first two writes fail; one of them would be the report.
            let plan = FaultPlan([
                FaultRule("write", error, place: "\(descriptor)", times: 2)
            ])
            let log = try LogWriter(
                descriptor: descriptor, droppedReport: { Array("lost \($0)\n".utf8) })
            let isStarted = StandIn.use(plan) { log.start() }
            #expect(isStarted)
            for round in 1...3 {
                var lines = chunk(["line \(round)", "more"])
                log.enqueue(&lines)
                let deadline = MonotonicInstant.now.advanced(by: .seconds(20))
                while plan.calls(of: "write") < round, MonotonicInstant.now < deadline {
                    Syscalls.pause(milliseconds: 1)
                }
            }
            #expect(log.shutDown(timeLimit: .seconds(20)))
            #expect(log.droppedLines == 4)
            #expect(log.writeErrors == 2)
            #expect(try text() == "line 3\nmore\nlost 4\n")
            Syscalls.close(descriptor)
        }
    }
#endif
