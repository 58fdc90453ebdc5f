internal import HTTP
internal import Reactor

/// One request of a hostile client and what an application makes of it, as the proxy would: it reads
/// the head's text with the parser, and takes or ignores the content.
final class ServedStream {
    private enum Script: CaseIterable {
        case silent, short, trailers, interim, large, reset, close, garbage, slow
    }

    private static let large = [UInt8](repeating: 0x61, count: 40_000)
    private static let frameOverhead = 64

    /// What is wrong.
    private(set) var violation: String?
    /// More bytes than this cannot come of what the application wrote.
    private(set) var mostOutput = 0

    private let stream: HTTP2Stream
    private let script: Script
    private var head: RequestCopy?
    private var content = 0
    private var isReadToTheEnd = false
    private var hasAnswered = false
    private var isClosed = false
    private var largeLeft = 0

    init(_ stream: HTTP2Stream, limits: HeadLimits, _ dice: inout SeededGenerator) {
        self.stream = stream
        script = Script.allCases.pick(using: &dice)
        let text = ByteBuffer(capacity: 64 << 10)
        _ = try? stream.read(into: text)
        let bytes = text.copy
        switch outcomeOfRequest(bytes, limits: limits, arrivals: [bytes.count]) {
        case .incomplete: violation = "a request whose head is not whole"
        case .malformed:
            write("HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad")
            stream.finishMessage(trailers: [])
            close()
        case .message(let request):
            head = request
            content = bytes.count - request.length
            if !stream.hasContent && content > 0 { violation = "content of a request without any" }
            if let feature = HeadInvariants.forbiddenFeature(ofPath: request.path) {
                violation = "path has \(feature)"
            }
        }
    }

    /// The application's turn.
    func go() {
        guard let head, !isClosed, violation == nil else { return }
        if script != .silent { read(head) }
        switch script {
        case .silent: break
        case .short: answerShortly(head)
        case .trailers: if isReadToTheEnd { answerWithTrailers() }
        case .interim: answerInSteps()
        case .large: answerAtLength()
        case .reset:
            stream.reset(.cancel)
            close()
        case .close: close()
        case .garbage:
            if stream.writeAll(Array("HTTP/9 garbage\r\n\r\n".utf8)) {
                violation = "what is no head was taken for one"
            }
            stream.resetOnClose()
            close()
        case .slow: if isReadToTheEnd { answerShortly(head) }
        }
    }

    /// What a stream must be when its connection is gone.
    var violationAtTheEnd: String? {
        if !isClosed { _ = stream.readAll() }
        return isClosed || stream.isBroken || stream.isReadable
            ? nil : "a stream that waits for ever"
    }

    private func read(_ head: RequestCopy) {
        let buffer = ByteBuffer(capacity: 512)
        while !isReadToTheEnd {
            buffer.removeAll()
            buffer.reserve(512)
            switch try? stream.read(into: buffer) {
            case .bytes(let count): content += count
            case .wouldBlock, nil: return
            case .endOfStream:
                isReadToTheEnd = true
                if case .length(let length) = head.framing, UInt64(content) != length {
                    violation = "\(content) bytes of content, \(length) were announced"
                }
            }
            if !stream.hasContent && content > 0 { violation = "content of a request without any" }
            if script == .slow { return }
        }
    }

    private func answerShortly(_ head: RequestCopy) {
        if hasAnswered { return }
        hasAnswered = true
        if head.wantsWebSocket {
            write(
                "HTTP/1.1 101 Switching Protocols\r\n"
                    + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi")
        } else {
            write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n\r\nok")
            stream.finishMessage(trailers: [])
            close()
        }
    }

    private func answerWithTrailers() {
        write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ncontent")
        stream.finishMessage(trailers: [(Array("Grpc-Status".utf8), Array("0".utf8))])
        close()
    }

    private func answerInSteps() {
        if !hasAnswered {
            hasAnswered = true
            write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            return
        }
        write("HTTP/1.1 204 No Content\r\n\r\n")
        stream.finishMessage(trailers: [])
        close()
    }

    private func answerAtLength() {
        if !hasAnswered {
            hasAnswered = true
            largeLeft = Self.large.count
            write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        }
        while largeLeft > 0 {
            let result = Self.large.withUnsafeBytes { bytes in
                try? stream.write(
                    UnsafeRawBufferPointer(rebasing: bytes[..<largeLeft]),
                    UnsafeRawBufferPointer(start: nil, count: 0))
            }
            guard case .bytes(let count)? = result, count > 0 else { return }
            largeLeft -= count
            // A peer may allow it in frames of one byte.
            mostOutput += 10 * count + Self.frameOverhead
        }
        stream.finishMessage(trailers: [])
        close()
    }

    private func write(_ text: String) {
        mostOutput += 10 * text.utf8.count + Self.frameOverhead
        _ = stream.writeAll(Array(text.utf8))
    }

    private func close() {
        isClosed = true
        stream.close()
    }
}
