internal import HTTP
internal import Reactor

/// What must hold for any bytes that a server of HTTP/2 sends to us, its client. A fuzzer and the
/// replay of its corpus share it.
///
/// The first byte is the seed of how the bytes arrive; the second says, bit by bit, what has been
/// asked when they come (GET, HEAD, POST with content, a WebSocket) and whether the server's settings
/// are there already. Behind them come frames.
public enum HTTP2UpstreamInvariants {
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        guard bytes.count >= 2 else { return nil }
        guard let connection = HostileServer(seed: bytes[0], plan: bytes[1]) else {
            return "no session"
        }
        return connection.run(Array(bytes.dropFirst(2)))
    }
}

/// One connection to a server that means harm.
private final class HostileServer {
    private static let questions: [(method: Method, text: String)] = [
        (.get, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"),
        (.head, "HEAD /b HTTP/1.1\r\nHost: h\r\n\r\n"),
        (.post, "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\ncontent"),
        (
            .get,
            "GET /d HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ),
    ]
    /// SETTINGS with ENABLE_CONNECT_PROTOCOL (RFC 8441, section 3).
    private static let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1]
    private static let gain = 4
    private static let greeting = 2048

    private let session: HTTP2Session
    private var dice: SeededGenerator
    private let pieces: ClosedRange<Int>
    private let plan: UInt8
    private var asked: [AskedStream] = []
    private var now = MonotonicInstant(nanoseconds: 1)
    private var produced = 0
    private var arrived = 0
    private var found: String?

    init?(seed: UInt8, plan: UInt8) {
        var limits = HTTP2Limits.upstream
        limits.head = HeadInvariants.limits
        limits.idleFrames = 100
        guard let session = try? HTTP2Session(role: .client, limits: limits, now: now) else {
            return nil
        }
        self.session = session
        self.plan = plan
        dice = SeededGenerator(seed: UInt64(seed))
        pieces = [1...1, 1...64, 16_384...16_384].pick(using: &dice)
    }

    func run(_ bytes: [UInt8]) -> String? {
        if plan & 0x80 == 0 { try? session.receive(Self.settings.span, now: now) }
        for (index, question) in Self.questions.enumerated() where plan & (1 << index) != 0 {
            guard let stream = session.openStream() else { continue }
            if !stream.writeAll(Array(question.text.utf8)) { return "a request is not taken" }
            asked.append(AskedStream(stream, question.method))
            if question.method == .post {
                stream.finishMessage(trailers: [(Array("X-Sum".utf8), Array("7".utf8))])
            }
        }
        flush()
        var rest = bytes[...]
        while !rest.isEmpty && found == nil {
            let piece = Array(rest.prefix(Int.random(in: pieces, using: &dice)))
            rest = rest.dropFirst(piece.count)
            arrived += piece.count
            now = now.advanced(byNanoseconds: 1_000_000)
            do throws(HTTP2Failure) {
                try session.receive(piece.span, now: now)
            } catch {
                if session.failure == nil { found = "an end without a reason" }
                break
            }
            for stream in asked { stream.read() }
            flush()
            if session.streamCount > asked.count { found = found ?? "a stream that nobody opened" }
        }
        for stream in asked { stream.read() }
        session.abandon()
        if session.hasStreams { found = found ?? "streams that outlive their connection" }
        for stream in asked { found = found ?? stream.violation ?? stream.violationAtTheEnd }
        return found
    }

    private func flush() {
        let output = ByteBuffer(capacity: 1024)
        while session.produce(into: output, limit: 1 << 16) {
            produced += output.count
            output.removeAll()
        }
        produced += output.count
        if produced > Self.greeting + Self.gain * arrived {
            found = found ?? "\(produced) bytes for \(arrived)"
        }
    }
}

/// One request of ours and the answer, read as the proxy reads it.
private final class AskedStream {
    private static let interimLimit = 32

    private(set) var violation: String?
    private let stream: HTTP2Stream
    private let method: Method
    private let buffer = ByteBuffer(capacity: 1024)
    private var parser = ResponseParser(limits: HeadLimits(bytes: 64 << 10, fields: 256))
    private var head = ResponseHead()
    private var framing: BodyFraming?
    private var interimCount = 0
    private var content = 0
    private var isOver = false

    init(_ stream: HTTP2Stream, _ method: Method) {
        self.stream = stream
        self.method = method
    }

    func read() {
        while !isOver && violation == nil {
            buffer.reserve(1024)
            switch try? stream.read(into: buffer) {
            case .bytes: parse()
            case .wouldBlock: return
            case .endOfStream: end()
            case nil: close()
            }
        }
    }

    /// What a stream must be when its connection is gone.
    var violationAtTheEnd: String? {
        isOver || stream.isBroken || stream.isReadable ? nil : "a stream that waits for ever"
    }

    private func parse() {
        let buffer = self.buffer
        do throws(MalformedMessage) {
            while framing == nil {
                let isWhole = try parser.parse(buffer.bytes, requestMethod: method, into: &head)
                if !isWhole { return }
                buffer.consume(head.length)
                parser.reset()
                // The one that opens a WebSocket is the last one, too.
                if head.isInformational && head.status != 101 {
                    interimCount += 1
                    if interimCount > Self.interimLimit { return close() }
                } else {
                    framing = head.status == 101 ? .untilClose : head.framing
                }
            }
        } catch {
            return close()
        }
        if framing == nil { return }
        content += buffer.count
        buffer.removeAll()
        if framing == .chunked { violation = "framed as nothing in HTTP/2 is" }
        if framing == BodyFraming.none && content > 0 {
            violation = "content of an answer without any"
        }
    }

    private func end() {
        isOver = true
        if case .length(let length)? = framing, UInt64(content) != length {
            violation = "\(content) bytes of content, \(length) were announced"
        }
        if framing == nil && interimCount == 0 { violation = "an end before a head" }
        stream.close()
    }

    private func close() {
        isOver = true
        stream.close()
    }
}
