/// Frames as bytes (RFC 9113, section 4.1), so that tests can send what no library would.
enum RawFrames {
    static let preface: [UInt8] = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    static func frame(
        _ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []
    ) -> [UInt8] {
        let length = payload.count
        return [
            UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8),
            UInt8(truncatingIfNeeded: length), type, flags,
        ] + bytes(stream) + payload
    }

    static func bytes(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    /// A literal field without indexing and without Huffman coding (RFC 7541, section 6.2.2).
    static func field(_ name: String, _ value: String) -> [UInt8] {
        [0] + text(Array(name.utf8)) + text(Array(value.utf8))
    }

    static func field(_ name: String, bytes value: [UInt8]) -> [UInt8] {
        [0] + text(Array(name.utf8)) + text(value)
    }

    private static func text(_ bytes: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if bytes.count < 127 {
            length = [UInt8(bytes.count)]
        } else {
            length = [127]
            var rest = bytes.count - 127
            while rest >= 128 {
                length.append(UInt8(rest % 128 + 128))
                rest /= 128
            }
            length.append(UInt8(rest))
        }
        return length + bytes
    }

    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { field($0.0, $0.1) }
    }

    /// HEADERS with END_HEADERS.
    static func headers(
        _ fields: [(String, String)], stream: UInt32 = 1, endsStream: Bool = true
    ) -> [UInt8] {
        frame(1, flags: endsStream ? 5 : 4, stream: stream, block(fields))
    }

    static func data(_ bytes: [UInt8], stream: UInt32 = 1, endsStream: Bool = true) -> [UInt8] {
        frame(0, flags: endsStream ? 1 : 0, stream: stream, bytes)
    }

    static let settings = frame(4)

    static let get: [(String, String)] = [
        (":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a.example"),
    ]

    static func get(adding field: (String, String)) -> [(String, String)] { get + [field] }
}

/// A frame that a session sent.
struct SentFrame: Equatable {
    var type: UInt8
    var flags: UInt8
    var stream: UInt32
    var payload: [UInt8]

    var errorCode: UInt32? {
        let code: ArraySlice<UInt8>
        switch type {
        case 3 where payload.count == 4: code = payload[0..<4]
        case 7 where payload.count >= 8: code = payload[4..<8]
        default: return nil
        }
        return code.reduce(0) { $0 << 8 | UInt32($1) }
    }

    static func read(_ bytes: [UInt8]) -> [SentFrame] {
        var frames: [SentFrame] = []
        var index = 0
        while index + 9 <= bytes.count {
            let length =
                Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
            let stream = bytes[(index + 5)..<(index + 9)].reduce(0) { $0 << 8 | UInt32($1) }
            let end = index + 9 + length
            guard end <= bytes.count else { break }
            frames.append(
                SentFrame(
                    type: bytes[index + 3], flags: bytes[index + 4], stream: stream,
                    payload: Array(bytes[(index + 9)..<end])))
            index = end
        }
        return frames
    }
}
