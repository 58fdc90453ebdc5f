import Reactor
import TestKit
import Testing

@Suite("Looking at bytes without taking them")
struct PeekingTests {
    @Test("what was looked at is still there, and what was discarded is not")
    func peeks() async throws {
        let read = try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            defer { waiter.invalidate() }
            let pair = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
            let (near, far) = (pair.near, pair.far)
            near.waiter = nil
            let deadline = loop.loop.now.advanced(by: .seconds(20))
            let buffer = ByteBuffer(capacity: 64)
            #expect(try far.peek(into: buffer, limit: 64) == .wouldBlock)
            for piece in ["PRO", "XY header", " and body"] {
                try await Self.send(piece, over: near)
                // Each piece raises an edge, whether or not the ones before it were taken.
                buffer.removeAll()
                while try far.peek(into: buffer, limit: 64) == .wouldBlock {
                    let reason = await waiter.wait(until: deadline)
                    try #require(reason == .ready)
                }
                #expect(try far.peek(into: ByteBuffer(capacity: 64), limit: 64) == .wouldBlock)
            }
            buffer.removeAll()
            try far.discard(12, scratch: buffer)
            #expect(buffer.isEmpty)
            #expect(try far.peek(into: buffer, limit: 4) == .bytes(4))
            buffer.removeAll()
            try far.discard(0, scratch: buffer)
            guard case .bytes = try far.read(into: buffer) else { throw Errno.invalidArgument }
            near.close()
            far.close()
            return buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        #expect(read == " and body")
    }

    private static func send(_ text: String, over socket: Socket) async throws {
        let bytes = Array(text.utf8)
        let result = try bytes.withUnsafeBytes { bytes throws(Errno) in
            try socket.write(bytes)
        }
        #expect(result == .bytes(bytes.count))
    }
}
