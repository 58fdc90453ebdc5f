import Reactor
import TestKit
import Testing

@testable import Replay

@Suite("The protocol of Redis")
struct RedisProtocolTests {
    private func replies(_ bytes: [UInt8], pieces: Int = .max) throws -> [RedisReply] {
        let reader = RedisReader()
        var replies: [RedisReply] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            let buffer = ByteBuffer(capacity: max(piece.count, 1))
            buffer.append(piece)
            try reader.feed(buffer)
            while let reply = try reader.next() { replies.append(reply) }
        }
        return replies
    }

    private func describe(_ reply: RedisReply) -> String {
        switch reply.kind {
        case .status: "+\(reply.text)"
        case .error: "-\(reply.text)"
        case .string: "\"\(reply.text)\""
        case .integer: "\(reply.integer)"
        case .null: "null"
        case .array: "[\(reply.elements.map(describe).joined(separator: ","))]"
        }
    }

    private static let sample =
        "+OK\r\n-ERR no\r\n:-42\r\n$5\r\nhe\r\nl\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n"
        + "*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n+x\r\n"
    private static let meaning = [
        "+OK", "-ERR no", "-42", "\"he\r\nl\"", "null", "null", "[]", "\"\"",
        "[1,[\"a\",null],+x]",
    ]

    @Test("replies are the same however the bytes are split", arguments: [1, 2, 3, 7, 1000])
    func splits(size: Int) throws {
        let found = try replies(Array(Self.sample.utf8), pieces: size).map(describe)
        #expect(found == Self.meaning)
    }

    @Test(
        "what is no RESP2 is refused",
        arguments: [
            "HTTP/1.1 200 OK\r\n", "?\r\n", "$abc\r\n", ":12x\r\n", ":\r\n", "$-2\r\n", "*-2\r\n",
            "*2147483647\r\n", "*16385\r\n", "%1\r\n+a\r\n+b\r\n", "*99999999999999999999\r\n",
            "\0\0\0\0",
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+deep\r\n",
        ])
    func garbage(text: String) {
        #expect(throws: RedisGarbage.self) { try replies(Array(text.utf8)) }
    }

    @Test("a promise of billions of elements or bytes costs nothing before they come")
    func promises() throws {
        #expect(try replies(Array("*16384\r\n".utf8)).isEmpty)
        #expect(try replies(Array("$9223372036854775807\r\nabc".utf8)).isEmpty)
    }

    @Test("a reply may have a megabyte, and no more, as one string or as many elements")
    func limits() throws {
        let limit = RedisReader.replyLimit
        let large = Array("$\(limit - 200)\r\n".utf8) + Array(repeating: 0x61, count: limit - 200)
        #expect(try replies(large + Array("\r\n".utf8), pieces: 16384).count == 1)
        let tooLarge = Array("$\(limit + 200)\r\n".utf8) + Array(repeating: 0x61, count: limit)
        #expect(throws: RedisGarbage.self) {
            try replies(tooLarge + Array(repeating: 0x61, count: 65536), pieces: 16384)
        }
        let elements = String(repeating: ":1\r\n", count: 20_000)
        #expect(throws: RedisGarbage.self) {
            try replies(Array("*20000\r\n\(elements)".utf8), pieces: 16384)
        }
        let endless = [UInt8](repeating: 0x61, count: limit + 65536)
        #expect(throws: RedisGarbage.self) {
            try replies(Array("+".utf8) + endless, pieces: 16384)
        }
        // Each reply has the whole of it.
        let many = String(repeating: "$4\r\nabcd\r\n", count: 30_000)
        #expect(try replies(Array(many.utf8), pieces: 16384).count == 30_000)
    }

    @Test("random bytes never trap", arguments: 0..<200)
    func noise(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let alphabet = Array("+-:$*\r\n0123456789a".utf8)
        let bytes = (0..<400).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
        _ = try? replies(bytes, pieces: 1 + seed % 9)
    }

    @Test("a reader that is dropped in the middle of a reply frees it")
    func dropped() throws {
        for _ in 0..<1000 { _ = try replies(Array("*3\r\n$1\r\na\r\n*2\r\n:1\r\n".utf8)) }
    }

    @Test("words are written with their lengths, so that none can be a command")
    func commands() {
        let buffer = ByteBuffer(capacity: 16)
        RedisCommand("SET", "k").adding("a\r\nFLUSHALL\r\n").adding([]).append(to: buffer)
        let text = buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        #expect(
            text == "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$13\r\na\r\nFLUSHALL\r\n\r\n$0\r\n\r\n")
    }

    @Test(
        "of an error only the first word is taken",
        arguments: [
            ("OOM command not allowed", "OOM"), ("MOVED 1 a:2", "MOVED"), ("lower", "ERR"),
            ("", "ERR"), ("ERR unknown command 'secret'", "ERR"),
            (String(repeating: "A", count: 40), "ERR"),
        ])
    func errorCodes(text: String, code: String) {
        #expect(RedisReply(.error, bytes: Array(text.utf8)).errorCode == code)
        #expect(RedisReply(.string, bytes: Array(text.utf8)).errorCode == nil)
    }

    @Test("keys are the prefix and 128 bits as base64url")
    func keys() {
        let keys = RedisKeys(prefix: "p:")
        let text = { (high: UInt64, low: UInt64) in
            String(decoding: keys.key(of: ClaimKey(high: high, low: low)), as: UTF8.self)
        }
        // As `base64 | tr +/ -_ | tr -d =` has it.
        #expect(text(0, 0) == "p:AAAAAAAAAAAAAAAAAAAAAA")
        #expect(text(.max, .max) == "p:_____________________w")
        #expect(text(0x0102_0304_0506_0708, 0x090A_0B0C_0D0E_0F10) == "p:AQIDBAUGBwgJCgsMDQ4PEA")
        #expect(text(0xFBEF_BEFB_EFBE_FBEF, 0xBEFB_EFBE_FBEF_BEFB) == "p:---------------------w")
    }

    @Test("a marker is an identity and a second, and nothing else is one")
    func markers() {
        let reply = { (text: String) in RedisReply(.string, bytes: Array(text.utf8)) }
        let marker = RedisMarker(identity: Array("run.id".utf8), second: 1_700_000_000)
        #expect(RedisMarker(RedisReply(.string, bytes: marker.bytes)) == marker)
        for text in ["", "run", "run x", "run -1", "run 99999999999999999999", "run 1e9"] {
            #expect(RedisMarker(reply(text)) == nil, "\(text)")
        }
        #expect(RedisMarker(RedisReply(.null)) == nil)
    }

    @Test("INFO tells identity, role, cluster mode, and a policy only where memory is limited")
    func facts() throws {
        let text =
            "# Server\r\nrun_id:abc\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"
            + "role:slave\r\nmaster_replid:def\r\ncluster_enabled:1\r\n"
        let facts = try #require(RedisServerFacts(info: Array(text.utf8)))
        #expect(facts.identity == Array("abc.def".utf8))
        #expect(!facts.isMaster && facts.isCluster && facts.evictionPolicy == nil)
        let limited = text.replacing("maxmemory:0", with: "maxmemory:1048576")
        #expect(RedisServerFacts(info: Array(limited.utf8))?.evictionPolicy == "allkeys-lru")
        #expect(RedisServerFacts(info: Array("role:master".utf8)) == nil)
    }
}
