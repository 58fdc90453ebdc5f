/// Decodes the chunked transfer coding (RFC 9112, section 7.1), one byte of framing at a time.
///
/// Chunk extensions are checked and dropped. Nothing but CRLF ends a line (pitfall W2).
struct ChunkedDecoder: Sendable {
    private enum State: Sendable {
        /// Before the first digit of a chunk's size.
        case sizeStart
        case size
        case `extension`
        /// Inside a quoted value of an extension, where ";" is not special.
        case quoted
        case quotedPair
        case sizeLineFeed
        case content
        case contentReturn
        case contentLineFeed
        case trailers
        case end
    }

    private var state = State.sizeStart
    /// Content of the current chunk that is still to come.
    private var remaining: UInt64 = 0
    private var digits = 0
    private var extensionBytes = 0
    private var extensionBytesOfMessage = 0

    /// What came behind the last chunk and may be forwarded.
    private(set) var trailers = TrailerReader()

    /// Hexadecimal digits of a size, leading zeros included.
    private static let digitsAllowed = 16
    /// Bytes of content in one chunk: exact in every language's numbers.
    private static let sizeAllowed: UInt64 = 1 << 53
    /// Bytes of extensions on one chunk, and on all chunks of a message.
    private static let extensionBytesAllowed = 256
    private static let extensionBytesOfMessageAllowed = 16 << 10

    /// See `BodyDecoder.next`.
    mutating func next(_ bytes: Span<UInt8>) throws(MalformedMessage) -> BodyStep {
        var index = 0
        while index < bytes.count {
            switch state {
            case .content:
                let count = Int(min(remaining, UInt64(bytes.count &- index)))
                return .content(skip: index, count: count)
            case .trailers:
                if try trailers.take(bytes[index]) { state = .end }
                index &+= 1
            case .end: return .end(skip: index)
            default:
                try takeFraming(bytes[index])
                index &+= 1
            }
        }
        return state == .end ? .end(skip: index) : .needsMore(skip: index)
    }

    /// See `BodyDecoder.consumed`.
    mutating func consumed(_ count: Int) {
        precondition(
            state == .content && count >= 0 && UInt64(count) <= remaining, "more than was announced"
        )
        remaining -= UInt64(count)
        if remaining == 0 { state = .contentReturn }
    }

    @inline(__always)
    private mutating func takeFraming(_ byte: UInt8) throws(MalformedMessage) {
        switch state {
        case .sizeStart, .size: try takeSize(byte)
        case .extension, .quoted, .quotedPair: try takeExtension(byte)
        case .sizeLineFeed:
            try expect(byte, 0x0A)
            state = remaining == 0 ? .trailers : .content
        case .contentReturn:
            try expect(byte, 0x0D)
            state = .contentLineFeed
        case .contentLineFeed:
            try expect(byte, 0x0A)
            digits = 0
            extensionBytes = 0
            state = .sizeStart
        case .content, .trailers, .end: preconditionFailure("not framing")
        }
    }

    /// A size is followed by ";" or CRLF at once: blanks there have been read in several ways.
    private mutating func takeSize(_ byte: UInt8) throws(MalformedMessage) {
        if let digit = byte.hexadecimalValue {
            digits += 1
            let value = remaining << 4 | UInt64(digit)
            guard digits <= Self.digitsAllowed, value <= Self.sizeAllowed else {
                throw MalformedMessage(.chunk)
            }
            remaining = value
            state = .size
        } else if state == .size, byte == 0x0D {
            state = .sizeLineFeed
        } else if state == .size, byte == 0x3B {
            state = .extension
            try countExtension()
        } else {
            throw MalformedMessage(.chunk)
        }
    }

    /// Extensions mean nothing here; only their end must be beyond doubt (RFC 9112, section 7.1.1).
    private mutating func takeExtension(_ byte: UInt8) throws(MalformedMessage) {
        try countExtension()
        if state == .extension, byte == 0x0D {
            state = .sizeLineFeed
            return
        }
        guard byte.isPrintable else { throw MalformedMessage(.chunk) }
        switch (state, byte) {
        case (.extension, 0x22), (.quotedPair, _): state = .quoted
        case (.quoted, 0x22): state = .extension
        case (.quoted, 0x5C): state = .quotedPair
        default: return
        }
    }

    private mutating func countExtension() throws(MalformedMessage) {
        extensionBytes += 1
        extensionBytesOfMessage += 1
        guard extensionBytes <= Self.extensionBytesAllowed,
            extensionBytesOfMessage <= Self.extensionBytesOfMessageAllowed
        else { throw MalformedMessage(.chunk) }
    }

    private func expect(_ byte: UInt8, _ expected: UInt8) throws(MalformedMessage) {
        if byte != expected { throw MalformedMessage(.chunk) }
    }
}

extension UInt8 {
    /// SP, HTAB and visible ASCII.
    fileprivate var isPrintable: Bool { self == 0x09 || (self >= 0x20 && self < 0x7F) }
}
