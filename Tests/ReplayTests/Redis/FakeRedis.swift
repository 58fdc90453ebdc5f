import Foundation
import Reactor
import Synchronization
import TestKit

@testable import Replay

/// A server that behaves as a real one, but for what the test says.
final class FakeRedis: Sendable {
    enum Step: Sendable {
        /// These bytes are sent, whatever they are.
        case send(String)
        /// The connection is closed.
        case close
        /// Nothing is answered.
        case silence
        /// As a real server.
        case usual
    }

    static let identity = "run1.replica1"
    let port: UInt16
    private let loop: EventLoop
    private let script: @Sendable (_ words: [String]) -> Step
    private let seen = Mutex<[[String]]>([])
    private let claims = Mutex<Set<String>>([])
    private let connections = Mutex(0)

    init(_ script: @escaping @Sendable (_ words: [String]) -> Step) throws {
        self.script = script
        loop = try EventLoop()
        guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else {
            throw Errno.invalidArgument
        }
        let listening = try ListeningDescriptor(any, isShared: false)
        port = listening.address.port ?? 0
        let loop = loop
        Thread.start(named: "fake redis") { loop.run() }
        Task(executorPreference: loop) { [weak self] in
            let waiter = Waiter(loop: loop)
            guard let listener = try? ListeningSocket(listening, loop: loop, waiter: waiter)
            else { return }
            while self != nil {
                while let (socket, _) = try? listener.accept() {
                    self?.connections.withLock { $0 += 1 }
                    let link = FakeLink(socket, loop: loop)
                    Task(executorPreference: loop) { [weak self] in
                        while let words = await link.next() {
                            guard let self, await self.answer(words, link) else { break }
                        }
                        link.close()
                    }
                }
                _ = await waiter.wait(until: loop.now.advanced(by: .milliseconds(100)))
            }
        }
    }

    deinit {
        loop.stop()
    }

    /// All commands so far.
    var commands: [[String]] { seen.withLock { $0 } }

    var connectionCount: Int { connections.withLock { $0 } }

    var settings: RedisSettings {
        RedisSettings(.single(.tcp(host: "127.0.0.1", port: port)))
    }

    /// INFO as a server in good order has it.
    static let information = bulk(
        "# Server\r\nrun_id:run1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
            + "role:master\r\nmaster_replid:replica1\r\ncluster_enabled:0\r\n")

    static func bulk(_ text: String) -> String { "$\(text.utf8.count)\r\n\(text)\r\n" }

    /// The reply to TIME of a clock that is ahead of ours by so many seconds.
    static func time(ahead: Int64 = 0) -> String {
        let now = Date.now.timeIntervalSince1970
        return "*2\r\n" + bulk("\(Int64(now) + ahead)") + bulk("0")
    }

    private func answer(_ words: [String], _ link: FakeLink) async -> Bool {
        seen.withLock { $0.append(words) }
        switch script(words) {
        case .send(let bytes): return await link.send(bytes)
        case .close: return false
        case .silence: return true
        case .usual: return await link.send(usual(words))
        }
    }

    private func usual(_ words: [String]) -> String {
        switch words.first {
        case "INFO": return Self.information
        case "TIME": return Self.time()
        case "GET" where words[1].hasSuffix("epoch"): return Self.bulk("\(Self.identity) 1000")
        case "SET":
            return claims.withLock { $0.insert(words[1]).inserted } ? "+OK\r\n" : "$-1\r\n"
        default: return "+OK\r\n"
        }
    }
}

/// Safe to be Sendable: touched by the loop's thread alone.
private final class FakeLink: @unchecked Sendable {
    private let stream: SocketStream
    private let reader = RedisReader()

    init(_ socket: Socket, loop: EventLoop) {
        stream = SocketStream(socket, loop: loop)
    }

    func next() async -> [String]? {
        while true {
            guard let reply = try? reader.next() else {
                guard await stream.receive(until: .now.advanced(by: .seconds(60))) else {
                    return nil
                }
                try? reader.feed(stream.received)
                continue
            }
            return reply.elements.map(\.text)
        }
    }

    func send(_ text: String) async -> Bool {
        let bytes = ByteBuffer(capacity: 256)
        bytes.append(text)
        return await stream.send(bytes, until: .now.advanced(by: .seconds(10)))
    }

    func close() { stream.close() }
}
