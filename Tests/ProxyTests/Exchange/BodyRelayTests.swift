import HTTP
import Reactor
import TestKit
import Testing

@testable import Proxy

// Megabytes are compared outside of `#expect`: it would print them.
@Suite("Body relay")
struct BodyRelayTests {
    /// Bytes that differ, so that a lost or doubled piece shows.
    private static func body(_ count: Int) -> [UInt8] {
        var random = SeededGenerator(seed: UInt64(count))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
        }
        return Array(bytes.prefix(count))
    }

    /// `content` in chunks of random sizes.
    private static func chunked(_ content: [UInt8], trailers: String = "") -> [UInt8] {
        var random = SeededGenerator(seed: UInt64(content.count))
        var bytes: [UInt8] = []
        var rest = content[...]
        while !rest.isEmpty {
            let bits = Int.random(in: 0...17, using: &random)
            let piece = rest.prefix(Int.random(in: 1...(1 << bits), using: &random))
            bytes +=
                Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8)
            rest.removeFirst(piece.count)
        }
        return bytes + Array("0\r\n\(trailers)\r\n".utf8)
    }

    @Test(
        "a body with a length arrives as it is, behind the head",
        arguments: [1, 4_095, 4_097, 70_000, 3_000_000])
    func length(count: Int) async throws {
        try await TestLoop().run { loop in
            let body = Self.body(count)
            let rig = try await RelayRig(
                BodyRelay(incoming: .length(UInt64(count)), outgoing: .length(UInt64(count))),
                sends: body + Array("NEXT".utf8), head: "HEAD", loop: loop.loop)
            let progress = try await rig.run()
            #expect("\(progress)" == "complete")
            #expect(rig.relay.contentBytes == UInt64(count))
            let isSame = try await rig.everythingReceived() == Array("HEAD".utf8) + body
            #expect(isSame)
        }
    }

    @Test("a message without a body is its head")
    func noBody() async throws {
        try await TestLoop().run { loop in
            let rig = try await RelayRig(
                BodyRelay(incoming: .none, outgoing: .none), sends: [], head: "HEAD",
                loop: loop.loop)
            #expect(try await "\(rig.run())" == "complete")
            #expect(try await rig.everythingReceived() == Array("HEAD".utf8))
        }
    }

    @Test(
        "W4, W12: chunks are framed anew, however slowly the other side takes them",
        arguments: [.max, 100_000, 3_000])
    func chunks(serverReads: Int) async throws {
        try await TestLoop().run { loop in
            let body = Self.body(1_500_000)
            let rig = try await RelayRig(
                BodyRelay(incoming: .chunked, outgoing: .chunked),
                sends: Self.chunked(body, trailers: "Checksum: abc\r\n"), loop: loop.loop)
            #expect(try await "\(rig.run(serverReads: serverReads))" == "complete")
            let received = try await rig.everythingReceived()
            let outcome = ChunkedInvariants.decode(
                received, framing: .chunked, pieces: received.count)
            let trailers = [[Array("Checksum".utf8), Array("abc".utf8)]]
            let isWhole =
                outcome == .complete(content: body, trailers: trailers, length: received.count)
            #expect(isWhole)
        }
    }

    @Test("a body that ends with its connection becomes chunks, and chunks can become one")
    func reframed() async throws {
        try await TestLoop().run { loop in
            let body = Self.body(200_000)
            let toChunks = try await RelayRig(
                BodyRelay(incoming: .untilClose, outgoing: .chunked), sends: body, loop: loop.loop)
            #expect(try await "\(toChunks.run(clientCloses: true))" == "complete")
            let chunks = try await toChunks.everythingReceived()
            let isWhole =
                ChunkedInvariants.decode(chunks, framing: .chunked, pieces: chunks.count)
                == .complete(content: body, trailers: [], length: chunks.count)
            #expect(isWhole)

            let fromChunks = try await RelayRig(
                BodyRelay(incoming: .chunked, outgoing: .untilClose), sends: Self.chunked(body),
                loop: loop.loop)
            #expect(try await "\(fromChunks.run())" == "complete")
            let isSame = try await fromChunks.everythingReceived() == body
            #expect(isSame)
        }
    }

    @Test("while the other side takes nothing, little is read, and nothing is lost")
    func backPressure() async throws {
        try await TestLoop().run { loop in
            // More than the kernel keeps for two connections.
            let body = Self.body(32 << 20)
            let rig = try await RelayRig(
                BodyRelay(incoming: .length(UInt64(body.count)), outgoing: .none), sends: body,
                loop: loop.loop)
            let stalled = try await rig.run(serverReads: 0, patience: .milliseconds(500))
            #expect("\(stalled)" == "needsSink")
            #expect(!rig.unsent.isEmpty)
            #expect(try await "\(rig.run())" == "complete")
            #expect(rig.mostBuffered <= 64 << 10)
            #expect(rig.input.capacity <= 64 << 10)
            #expect(rig.output.capacity <= 64 << 10)
            let isSame = try await rig.everythingReceived() == body
            #expect(isSame)
        }
    }

    @Test("a body may be as long as the limit, and not a byte longer", arguments: [0, 1])
    func limit(excess: Int) async throws {
        try await TestLoop().run { loop in
            let rig = try await RelayRig(
                BodyRelay(incoming: .chunked, outgoing: .chunked, limit: 50_000),
                sends: Self.chunked(Self.body(50_000 + excess)), loop: loop.loop)
            #expect(try await "\(rig.run())" == (excess == 0 ? "complete" : "tooLarge"))
            #expect(rig.relay.contentBytes <= 50_000)
        }
    }

    @Test(
        "a body that breaks off has failed at its source",
        arguments: [
            (BodyFraming.length(10), "123456789"), (.chunked, "5\r\nhello\r\n"),
            (.chunked, "5\r\nhel"), (.chunked, "0\r\n"), (.chunked, ""),
        ])
    func brokenSource(framing: BodyFraming, sent: String) async throws {
        try await TestLoop().run { loop in
            let rig = try await RelayRig(
                BodyRelay(incoming: framing, outgoing: framing), sends: Array(sent.utf8),
                loop: loop.loop)
            #expect(try await "\(rig.run(clientCloses: true))" == "sourceFailed")
        }
    }

    @Test("W2: a chunk that could be read in two ways ends the relay")
    func malformed() async throws {
        try await TestLoop().run { loop in
            let rig = try await RelayRig(
                BodyRelay(incoming: .chunked, outgoing: .chunked),
                sends: Array("5\nhello\r\n0\r\n\r\n".utf8), loop: loop.loop)
            let progress = try await rig.run()
            guard case .malformed = progress else {
                Issue.record("it is \(progress)")
                return
            }
            #expect(try await rig.everythingReceived() == [])
        }
    }

    @Test("a sink that breaks before it took anything is told from one that took something")
    func brokenSink() async throws {
        try await TestLoop().run { loop in
            let fresh = try await RelayRig(
                BodyRelay(incoming: .length(5), outgoing: .none), sends: Array("hello".utf8),
                loop: loop.loop)
            await fresh.resetByServer()
            #expect(try await "\(fresh.run())" == "sinkFailed")
            #expect(!fresh.relay.hasSunk)

            let body = Self.body(32 << 20)
            let used = try await RelayRig(
                BodyRelay(incoming: .length(UInt64(body.count)), outgoing: .none), sends: body,
                loop: loop.loop)
            _ = try await used.run(serverReads: 0, patience: .milliseconds(200))
            await used.resetByServer()
            #expect(try await "\(used.run(serverReads: 0))" == "sinkFailed")
            #expect(used.relay.hasSunk)
        }
    }

    @Test(
        "a sink that takes a part of what it is given, and could take more, is given more at once",
        arguments: [BodyFraming.length(200_000), .chunked], [1_000, 70_000])
    func partialSink(framing: BodyFraming, portion: Int) async throws {
        let content = Self.body(200_000)
        let isWhole = try await TestLoop().run { _ in
            let sink = MiserlySink(portion: portion)
            let (input, output) = (ByteBuffer(capacity: 0), ByteBuffer(capacity: 0))
            input.append(content.span)
            output.append("head")
            var relay = BodyRelay(incoming: .length(200_000), outgoing: framing)
            // No edge will wake anybody: what is not done now is never done.
            while true {
                switch relay.advance(from: sink, input, to: sink, output) {
                case .pausing: continue
                case .complete: break
                default: return false
                }
                break
            }
            let ending = framing == .chunked ? "\r\n0\r\n\r\n" : ""
            let head = framing == .chunked ? "head30d40\r\n" : "head"
            return sink.taken == Array(head.utf8) + content + Array(ending.utf8)
        }
        #expect(isWhole)
    }
}
