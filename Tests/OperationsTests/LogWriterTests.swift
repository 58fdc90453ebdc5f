import Configuration
import Glibc
import Reactor
import Synchronization
import Testing

@testable import Operations

/// A pipe whose reader is the test.
private final class Pipe: Sendable {
    let reader: Int32
    let writer: Int32
    private let readerIsOpen = Atomic<Bool>(true)

    /// - Parameter capacity: Bytes that the kernel buffers, at least; nil: as many as it likes.
    init(capacity: Int32? = nil, isNonBlocking: Bool = false) throws {
        var descriptors: [Int32] = [0, 0]
        #expect(pipe(&descriptors) == 0)
        (reader, writer) = (descriptors[0], descriptors[1])
        if let capacity { #expect(fcntl(writer, 1031 /* F_SETPIPE_SZ */, capacity) >= capacity) }
        if isNonBlocking { #expect(fcntl(writer, F_SETFL, O_NONBLOCK) == 0) }
    }

    deinit {
        closeReader()
        close(writer)
    }

    func closeReader() {
        if readerIsOpen.exchange(false, ordering: .relaxed) { close(reader) }
    }

    /// Bytes that were written and not read.
    var unreadBytes: Int {
        var count: Int32 = 0
        return ioctl(reader, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    /// Reads until the text so far satisfies `isEnough`.
    func read(until isEnough: (String) -> Bool) -> String {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !isEnough(String(decoding: text, as: UTF8.self)) {
            let count = Glibc.read(reader, &buffer, buffer.count)
            if count <= 0 { break }
            text += buffer[..<count]
        }
        return String(decoding: text, as: UTF8.self)
    }
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

@Suite("Log writer", .timeLimit(.minutes(1)))
struct LogWriterTests {
    init() {
        Syscalls.ignoreWriteSignals()
    }

    private func writer(_ descriptor: Int32, backlog: Int = LogWriter.defaultBacklog) throws
        -> LogWriter
    {
        try LogWriter(descriptor: descriptor, backlog: backlog) { Array("lost \($0)\n".utf8) }
    }

    @Test("writes every line of every thread once, each thread's in order")
    func manyThreads() async throws {
        let pipe = try Pipe()
        let log = try writer(pipe.writer)
        #expect(log.start())
        let threads = 4
        let perThread = 2000
        await withTaskGroup { group in
            for thread in 0..<threads {
                group.addTask {
                    for number in 0..<perThread {
                        var lines = chunk(["\(thread) \(number)"])
                        log.enqueue(&lines)
                        #expect(lines.isEmpty)
                    }
                }
            }
        }
        let text = pipe.read { $0.count { $0 == "\n" } == threads * perThread }
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").map { Int($0) } }
        for thread in 0..<threads {
            #expect(lines.filter { $0[0] == thread }.map { $0[1] } == Array(0..<perThread))
        }
        #expect(log.shutDown(timeLimit: .seconds(10)))
        #expect(log.droppedLines == 0)
    }

    @Test("bounds what waits for a reader that does not read, and says later how much was lost")
    func slowReader() throws {
        let pipe = try Pipe(capacity: 4096)
        let log = try writer(pipe.writer, backlog: 200_000)
        #expect(log.start())
        let line = String(repeating: "x", count: 999)
        for _ in 0..<500 {
            var lines = chunk([line])
            log.enqueue(&lines)
        }
        let dropped = log.droppedLines
        // The kernel took less than ten lines, the backlog holds 200.
        #expect((290...301).contains(dropped))
        // The report comes as soon as something was written, so it may stand among the lines.
        let lines = 500 - Int(dropped) + 1
        let text = pipe.read { $0.count { $0 == "\n" } == lines }
        #expect(text.split(separator: "\n").filter { $0 != line } == ["lost \(dropped)"])
        #expect(log.shutDown(timeLimit: .seconds(10)))
    }

    @Test("waits where an inherited descriptor does not block")
    func nonBlocking() throws {
        let pipe = try Pipe(capacity: 4096, isNonBlocking: true)
        let log = try writer(pipe.writer)
        #expect(log.start())
        let line = String(repeating: "y", count: 9999)
        for _ in 0..<20 {
            var lines = chunk([line])
            log.enqueue(&lines)
        }
        let text = pipe.read { $0.count { $0 == "\n" } == 20 }
        #expect(text == String(repeating: line + "\n", count: 20))
        #expect(log.writeErrors == 0)
        #expect(log.shutDown(timeLimit: .seconds(10)))
    }

    @Test("survives a reader that is gone, and counts")
    func brokenPipe() throws {
        let pipe = try Pipe()
        let log = try writer(pipe.writer)
        pipe.closeReader()
        #expect(log.start())
        var lines = chunk(["one", "two", "three"])
        log.enqueue(&lines)
        #expect(log.shutDown(timeLimit: .seconds(10)))
        #expect(log.droppedLines == 3)
        #expect(log.writeErrors == 1)
    }

    @Test("survives a full disk, and counts")
    func fullDisk() throws {
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(full >= 0)
        defer { close(full) }
        var output = LogOutput(descriptor: full)
        #expect(output.write(chunk(["one", "two"]).bytes) == 2)
        #expect(!output.isHealthy)
    }

    @Test("does not glue a line to one that a failure cut off")
    func cutLine() throws {
        let pipe = try Pipe(capacity: 4096)
        let later = try Pipe()
        // The reader goes when the pipe is full: in the middle of the second line.
        Thread.start(named: "reader") {
            while pipe.unreadBytes < 4096 { usleep(1000) }
            pipe.closeReader()
        }
        var output = LogOutput(descriptor: pipe.writer)
        let long = String(repeating: "a", count: 3000)
        #expect(output.write(chunk([long, long]).bytes) == 1)
        #expect(output.write(chunk(["still broken"]).bytes) == 1)
        #expect(dup2(later.writer, pipe.writer) == pipe.writer)
        #expect(output.write(chunk(["whole"]).bytes) == 0)
        #expect(output.write(chunk(["next"]).bytes) == 0)
        #expect(later.read { $0.contains("next") } == "\nwhole\nnext\n")
    }

    @Test("O11: two processes that write to one pipe do not tear each other's lines")
    func sharedPipe() throws {
        let pipe = try Pipe(capacity: 4096)
        let rounds = 4
        for letter in ["a", "b"] {
            Thread.start(named: "writer \(letter)") {
                var output = LogOutput(descriptor: pipe.writer)
                for round in 0..<rounds {
                    let lines = (0..<20).map {
                        String(repeating: letter, count: 1 + (round &* 97 &+ $0 &* 193) % 3000)
                    }
                    _ = output.writeInPieces(chunk(lines).bytes)
                }
            }
        }
        let text = pipe.read { text in text.count { $0 == "\n" } == 2 * 20 * rounds }
        let torn = text.split(separator: "\n").filter { Set($0).count > 1 }
        #expect(torn.isEmpty)
    }

    @Test("writes what waits when it is shut down, and drops what comes later")
    func shutDown() throws {
        let pipe = try Pipe()
        let log = try writer(pipe.writer)
        var lines = chunk(["before"])
        log.enqueue(&lines)
        #expect(log.start())
        #expect(log.shutDown(timeLimit: .seconds(10)))
        lines = chunk(["after"])
        log.enqueue(&lines)
        #expect(log.droppedLines == 1)
        #expect(pipe.read { $0.contains("\n") } == "before\n")
    }

    @Test("does not wait for a stuck reader longer than it is told to at the end")
    func stuckShutDown() throws {
        let pipe = try Pipe(capacity: 4096)
        let log = try writer(pipe.writer)
        #expect(log.start())
        var lines = chunk([String(repeating: "z", count: 20_000)])
        log.enqueue(&lines)
        #expect(!log.shutDown(timeLimit: .milliseconds(50)))
        // Lets the thread end.
        _ = pipe.read { $0.hasSuffix("\n") }
    }
}
