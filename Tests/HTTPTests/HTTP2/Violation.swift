import Testing

/// Frames that are wrong, or merely unusual, and what RFC 9113 says a server does with them.
struct Violation: CustomTestStringConvertible {
    let section: String
    let what: String
    let bytes: [UInt8]
    let outcome: Outcome

    init(_ section: String, _ what: String, _ bytes: [UInt8], _ outcome: Outcome) {
        self.section = section
        self.what = what
        self.bytes = bytes
        self.outcome = outcome
    }

    var testDescription: String { "\(section): \(what)" }

    enum Outcome: Equatable {
        /// GOAWAY with one of these codes; the connection is over.
        case connectionError([UInt32])
        /// RST_STREAM, or, as an endpoint may always do, GOAWAY with one of these codes.
        case streamError([UInt32])
        /// As if it had not come: a PING behind it is answered.
        case ignored
    }
}

extension Violation {
    static let open = RawFrames.headers(RawFrames.get, endsStream: false)
    static let request = RawFrames.headers(RawFrames.get)
    static let reset = RawFrames.frame(3, stream: 1, RawFrames.bytes(8))
    static let ping = RawFrames.frame(6, Array("12345678".utf8))

    // The codes of section 7.
    static let protocolError: [UInt32] = [1]
    static let flowControl: [UInt32] = [3]
    static let streamClosed: [UInt32] = [5]
    static let frameSize: [UInt32] = [6]
    static let compression: [UInt32] = [9]

    static func setting(_ id: UInt8, _ value: UInt32) -> [UInt8] {
        RawFrames.frame(4, [0, id] + RawFrames.bytes(value))
    }

    static let framing: [Violation] = [
        Violation("4.1", "a frame of an unknown type", RawFrames.frame(0x42, [1, 2, 3]), .ignored),
        Violation(
            "4.1", "unknown flags", RawFrames.frame(6, flags: 0xF2, [0, 0, 0, 0, 0, 0, 0, 1]),
            .ignored),
        Violation(
            "4.1", "the reserved bit of a stream's number",
            RawFrames.frame(2, stream: 0x8000_0003, [0, 0, 0, 0, 16]), .ignored),
        Violation(
            "4.2", "a DATA frame longer than was allowed",
            open + RawFrames.data([UInt8](repeating: 0, count: 16_385)), .streamError(frameSize)),
        Violation(
            "4.2", "a HEADERS frame longer than was allowed",
            RawFrames.frame(1, flags: 5, stream: 1, [UInt8](repeating: 0, count: 16_385)),
            .connectionError(frameSize)),
        Violation(
            "4.3", "an index that no table has",
            RawFrames.frame(1, flags: 5, stream: 1, [0xFF, 0xFF, 0x7F]),
            .connectionError(compression)),
        Violation(
            "4.3", "the index 0", RawFrames.frame(1, flags: 5, stream: 1, [0x80]),
            .connectionError(compression)),
        Violation(
            "4.3", "a field that is cut off",
            RawFrames.frame(1, flags: 5, stream: 1, [0x00, 0x05, 0x61]),
            .connectionError(compression)),
        Violation(
            "4.3", "a table larger than was allowed",
            RawFrames.frame(1, flags: 5, stream: 1, [0x3F, 0xFF, 0xFF, 0x7F]),
            .connectionError(compression)),
        Violation(
            "5.5", "an unknown frame inside a header block",
            RawFrames.frame(1, flags: 1, stream: 1, [0x82]) + RawFrames.frame(0x42, stream: 1),
            .connectionError(protocolError)),
        Violation(
            "6.10", "another frame inside a header block",
            RawFrames.frame(1, flags: 1, stream: 1, [0x82]) + ping,
            .connectionError(protocolError)),
        Violation(
            "6.10", "another stream's CONTINUATION",
            RawFrames.frame(1, flags: 1, stream: 1, [0x82])
                + RawFrames.frame(9, flags: 4, stream: 3),
            .connectionError(protocolError)),
        Violation(
            "6.10", "CONTINUATION behind a block that is over",
            open + RawFrames.frame(9, flags: 4, stream: 1, [0x82]), .connectionError(protocolError)),
        Violation(
            "6.10", "CONTINUATION of nothing", RawFrames.frame(9, flags: 4, stream: 1, [0x82]),
            .connectionError(protocolError)),
        Violation(
            "6.10", "CONTINUATION on stream 0", RawFrames.frame(9, flags: 4, [0x82]),
            .connectionError(protocolError)),
    ]

    static let states: [Violation] = [
        Violation(
            "5.1", "DATA on an idle stream", RawFrames.data([1]), .connectionError(protocolError)),
        Violation(
            "5.1", "RST_STREAM on an idle stream",
            RawFrames.frame(3, stream: 1, RawFrames.bytes(8)), .connectionError(protocolError)),
        Violation(
            "5.1", "WINDOW_UPDATE on an idle stream",
            RawFrames.frame(8, stream: 1, RawFrames.bytes(1)), .connectionError(protocolError)),
        Violation(
            "5.1", "PRIORITY on an idle stream",
            RawFrames.frame(2, stream: 1, [0, 0, 0, 0, 16]), .ignored),
        Violation(
            "5.1", "DATA behind the end of the request", request + RawFrames.data([1]),
            .streamError(streamClosed)),
        Violation(
            "5.1", "HEADERS behind the end of the request", request + request,
            .streamError(streamClosed + protocolError)),
        Violation(
            "5.1", "WINDOW_UPDATE behind the end of the request",
            request + RawFrames.frame(8, stream: 1, RawFrames.bytes(1)), .ignored),
        // The section wants a stream error. The library drops the frame without a word, unless it
        // keeps 200 bytes for each of the last hundred streams.
        Violation(
            "6.1", "DATA behind a reset by the client",
            open + reset + RawFrames.data([1]), .ignored),
        Violation(
            "5.1", "HEADERS behind a reset by the client", open + reset + request,
            .streamError(streamClosed)),
        Violation(
            "5.1", "WINDOW_UPDATE and PRIORITY behind a reset by the client",
            open + reset + RawFrames.frame(8, stream: 1, RawFrames.bytes(1))
                + RawFrames.frame(2, stream: 1, [0, 0, 0, 0, 16]), .ignored),
        Violation(
            "5.1.1", "an even number", RawFrames.headers(RawFrames.get, stream: 2),
            .connectionError(protocolError)),
        Violation(
            "5.1.1", "a number lower than one before",
            RawFrames.headers(RawFrames.get, stream: 5)
                + RawFrames.headers(RawFrames.get, stream: 3), .connectionError(protocolError)),
        Violation(
            "5.1.2", "more streams than were allowed",
            (0..<200).flatMap { RawFrames.headers(RawFrames.get, stream: UInt32($0 * 2 + 1)) },
            .streamError(protocolError + [7])),
        Violation(
            "5.3.1 of RFC 7540", "a stream that depends on itself",
            RawFrames.frame(
                1, flags: 0x25, stream: 1, [0, 0, 0, 1, 16] + RawFrames.block(RawFrames.get)),
            .streamError(protocolError)),
    ]

    static let heads: [Violation] = [
        Violation(
            "8.1", "trailer fields that do not end the stream",
            open + RawFrames.headers([("x", "1")], endsStream: false), .streamError(protocolError)),
        Violation(
            "8.1", "a pseudo-header field among trailer fields",
            open + RawFrames.headers([(":path", "/")]), .streamError(protocolError)),
        Violation(
            "8.1", "a field with a capital among trailer fields",
            open + RawFrames.headers([("X", "1")]), .streamError(protocolError)),
        Violation(
            "8.1.1", "less content than was said",
            RawFrames.headers(RawFrames.get(adding: ("content-length", "2"))),
            .streamError(protocolError)),
        Violation(
            "8.1.1", "more content than was said",
            RawFrames.headers(RawFrames.get(adding: ("content-length", "1")), endsStream: false)
                + RawFrames.data([1, 2]), .streamError(protocolError)),
        Violation(
            "8.3", "a response's pseudo-header field",
            RawFrames.headers(RawFrames.get(adding: (":status", "200"))),
            .streamError(protocolError)),
        Violation(
            "8.5", "CONNECT with a path",
            RawFrames.headers([(":method", "CONNECT"), (":path", "/"), (":authority", "a")]),
            .streamError(protocolError)),
        Violation(
            "6.1", "padding longer than the frame",
            open + RawFrames.frame(0, flags: 8, stream: 1, [5, 0]),
            .connectionError(protocolError)),
        Violation(
            "6.1", "DATA on stream 0", RawFrames.frame(0, [1]), .connectionError(protocolError)),
        Violation(
            "6.2", "padding longer than the frame",
            RawFrames.frame(1, flags: 0xD, stream: 1, [5, 0x82]), .connectionError(protocolError)),
        Violation(
            "6.2", "HEADERS on stream 0", RawFrames.frame(1, flags: 5, [0x82]),
            .connectionError(protocolError)),
    ]

    static let connection: [Violation] = [
        Violation(
            "6.3", "PRIORITY on stream 0", RawFrames.frame(2, [0, 0, 0, 0, 16]),
            .connectionError(protocolError)),
        Violation(
            "6.3", "PRIORITY of a wrong length", RawFrames.frame(2, stream: 1, [0, 0, 0, 0]),
            .streamError(frameSize)),
        Violation(
            "6.4", "RST_STREAM on stream 0", RawFrames.frame(3, RawFrames.bytes(8)),
            .connectionError(protocolError)),
        Violation(
            "6.4", "RST_STREAM of a wrong length", open + RawFrames.frame(3, stream: 1, [0]),
            .connectionError(frameSize)),
        Violation(
            "6.5", "SETTINGS on a stream", RawFrames.frame(4, stream: 1),
            .connectionError(protocolError)),
        Violation(
            "6.5", "an acknowledgement with content",
            RawFrames.frame(4, flags: 1, [0, 1, 0, 0, 0, 0]),
            .connectionError(frameSize)),
        Violation(
            "6.5", "SETTINGS of a wrong length", RawFrames.frame(4, [0, 1, 0, 0, 0]),
            .connectionError(frameSize)),
        Violation("6.5.2", "push that is neither", setting(2, 2), .connectionError(protocolError)),
        Violation(
            "6.5.2", "a window that is too large", setting(4, 1 << 31),
            .connectionError(flowControl)),
        Violation(
            "6.5.2", "frames that are too small", setting(5, 16_383),
            .connectionError(protocolError)),
        Violation(
            "6.5.2", "frames that are too large", setting(5, 1 << 24),
            .connectionError(protocolError)),
        Violation("6.5.2", "a setting that nobody knows", setting(0x77, 1), .ignored),
        Violation(
            "6.6", "PUSH_PROMISE of a client",
            RawFrames.frame(5, flags: 4, stream: 1, [0, 0, 0, 2]),
            .connectionError(protocolError)),
        Violation(
            "6.7", "PING on a stream", RawFrames.frame(6, stream: 1, [0, 0, 0, 0, 0, 0, 0, 0]),
            .connectionError(protocolError)),
        Violation(
            "6.7", "PING of a wrong length", RawFrames.frame(6, [0]), .connectionError(frameSize)),
        Violation(
            "6.7", "an answer to no PING", RawFrames.frame(6, flags: 1, [0, 0, 0, 0, 0, 0, 0, 0]),
            .ignored),
        Violation(
            "6.8", "GOAWAY on a stream", RawFrames.frame(7, stream: 1, [0, 0, 0, 0, 0, 0, 0, 0]),
            .connectionError(protocolError)),
    ]

    static let windows: [Violation] = [
        Violation(
            "6.9", "the connection's window by nothing", RawFrames.frame(8, RawFrames.bytes(0)),
            .connectionError(protocolError)),
        Violation(
            "6.9", "a stream's window by nothing",
            open + RawFrames.frame(8, stream: 1, RawFrames.bytes(0)), .streamError(protocolError)),
        Violation(
            "6.9", "WINDOW_UPDATE of a wrong length", RawFrames.frame(8, [0, 0, 1]),
            .connectionError(frameSize)),
        Violation(
            "6.9.1", "the connection's window too wide",
            RawFrames.frame(8, RawFrames.bytes(0x7FFF_FFFF)), .connectionError(flowControl)),
        Violation(
            "6.9.1", "a stream's window too wide",
            open + RawFrames.frame(8, stream: 1, RawFrames.bytes(0x7FFF_FFFF)),
            .streamError(flowControl)),
        Violation(
            "6.9.2", "a first window that makes an open one too wide",
            open + RawFrames.frame(8, stream: 1, RawFrames.bytes(1)) + setting(4, 0x7FFF_FFFF),
            .streamError(flowControl)),
        Violation(
            "6.9.1", "more content than the stream's window",
            open
                + (0..<9).flatMap { _ in
                    RawFrames.data([UInt8](repeating: 0, count: 16_384), endsStream: false)
                }, .streamError(flowControl)),
    ]
}
