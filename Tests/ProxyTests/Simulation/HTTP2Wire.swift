#if DEBUG
    import CNGHTTP2
    import TestKit

    /// What one end of an HTTP/2 connection of a simulation gets, frame by frame, and how it writes its
    /// own (RFC 9113, section 4): apart from header compression not by the code that is tested.
    final class HTTP2Wire {
        enum Kind {
            static let data: UInt8 = 0
            static let headers: UInt8 = 1
            static let reset: UInt8 = 3
            static let settings: UInt8 = 4
            static let ping: UInt8 = 6
            static let goAway: UInt8 = 7
            static let windowUpdate: UInt8 = 8
            static let continuation: UInt8 = 9
        }

        enum Flag {
            static let endStream: UInt8 = 1
            static let ack: UInt8 = 1
            static let endHeaders: UInt8 = 4
        }

        /// Error codes (RFC 9113, section 7).
        enum Code {
            static let none: UInt32 = 0
            static let internalError: UInt32 = 2
            static let refusedStream: UInt32 = 7
            static let cancel: UInt32 = 8
        }

        struct Frame {
            let kind: UInt8
            let flags: UInt8
            let id: UInt32
            let payload: [UInt8]

            /// The first word of the payload, without its highest bit.
            var word: UInt32 { HTTP2Wire.word(payload.prefix(4)) & 0x7FFF_FFFF }

            func has(_ flag: UInt8) -> Bool { flags & flag != 0 }
        }

        /// What does not follow HTTP/2.
        struct Malformed: Error {
            let reason: String
        }

        static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        static let largestFrame = 16_384
        static let initialWindow = 65_535

        private var bytes: [UInt8] = []
        private var inflater: OpaquePointer?
        private var block: [UInt8] = []
        private var prefaceLeft: Int

        /// - Parameter expectsPreface: Of a client, which is the one that begins.
        init(expectsPreface: Bool) {
            prefaceLeft = expectsPreface ? Self.preface.count : 0
            nghttp2_hd_inflate_new(&inflater)
        }

        deinit {
            nghttp2_hd_inflate_del(inflater)
        }

        // MARK: Reading

        func feed(_ more: [UInt8]) {
            bytes += more
        }

        /// The next frame; nil when more has to come.
        func next() throws(Malformed) -> Frame? {
            if prefaceLeft > 0 {
                let count = min(prefaceLeft, bytes.count)
                let start = Self.preface.count - prefaceLeft
                if Array(bytes.prefix(count)) != Array(Self.preface[start..<(start + count)]) {
                    throw Malformed(reason: "another preface")
                }
                bytes.removeFirst(count)
                prefaceLeft -= count
            }
            if prefaceLeft > 0 || bytes.count < 9 { return nil }
            let count = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
            if count > Self.largestFrame { throw Malformed(reason: "a frame of \(count) bytes") }
            if bytes.count < 9 + count { return nil }
            let frame = Frame(
                kind: bytes[3], flags: bytes[4], id: Self.word(bytes[5..<9]) & 0x7FFF_FFFF,
                payload: Array(bytes[9..<(9 + count)]))
            bytes.removeFirst(9 + count)
            return frame
        }

        /// The fields of a HEADERS or CONTINUATION frame; nil when more of them has to come.
        func fields(_ frame: Frame) throws(Malformed) -> [(name: String, value: String)]? {
            block += frame.payload
            if !frame.has(Flag.endHeaders) { return nil }
            defer { block.removeAll() }
            var fields: [(name: String, value: String)] = []
            var start = 0
            while true {
                var field = nghttp2_nv()
                var flags: Int32 = 0
                // Safe: the library reads within the count, and what it points to is valid until its
                // next call.
                let taken = block.withUnsafeBufferPointer { block in
                    nghttp2_hd_inflate_hd2(
                        inflater, &field, &flags, block.baseAddress?.advanced(by: start),
                        block.count - start, 1)
                }
                if taken < 0 { throw Malformed(reason: "a header block that is none") }
                start += taken
                if UInt32(flags) & NGHTTP2_HD_INFLATE_EMIT.rawValue != 0 {
                    fields.append(
                        (
                            Self.text(field.name, field.namelen),
                            Self.text(field.value, field.valuelen)
                        ))
                }
                if UInt32(flags) & NGHTTP2_HD_INFLATE_FINAL.rawValue != 0 { break }
                if taken == 0 && start >= block.count { break }
            }
            nghttp2_hd_inflate_end_headers(inflater)
            return fields
        }

        private static func text(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int) -> String {
            String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
        }

        private static func word(_ bytes: ArraySlice<UInt8>) -> UInt32 {
            bytes.reduce(0) { $0 << 8 | UInt32($1) }
        }

        // MARK: Writing

        /// A frame's bytes.
        static func frame(_ kind: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8])
            -> [UInt8]
        {
            let count = payload.count
            let head: [UInt8] = [
                UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), kind,
                flags,
            ]
            return head + bytes(of: id) + payload
        }

        /// Bytes after which a connection is over, and a PING behind them that nobody may answer.
        ///
        /// - Parameter id: A stream that a block of fields may stand on.
        static func brokenFrame(_ kernel: SimulatedKernel, on id: UInt32) -> [UInt8] {
            let broken: [UInt8] =
                switch kernel.random(0, 6) {
                case 0: frame(Kind.data, 0, 0, [1, 2, 3])
                case 1: frame(Kind.windowUpdate, 0, 0, [0, 0, 0, 0])
                case 2: frame(Kind.settings, 0, 0, [0, 4, 0, 0, 0])
                case 3: frame(Kind.ping, 0, 0, [1, 2, 3, 4, 5, 6, 7])
                case 4: frame(Kind.reset, 0, 0x7FFF_FFF1, bytes(of: Code.cancel))
                case 5: frame(Kind.headers, Flag.endHeaders, id, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
                default: frame(Kind.continuation, Flag.endHeaders, id, [0])
                }
            return broken + probe
        }

        /// A PING that is known again.
        static let probe = frame(Kind.ping, 0, 0, probePayload)
        static let probePayload = Array("probing.".utf8)

        /// A SETTINGS frame.
        static func settings(_ values: [(id: UInt8, value: Int)]) -> [UInt8] {
            frame(
                Kind.settings, 0, 0,
                values.flatMap { [0, $0.id] + bytes(of: UInt32(truncatingIfNeeded: $0.value)) })
        }

        static func bytes(of word: UInt32) -> [UInt8] {
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
        }

        /// Literal fields that are not indexed, with new names (RFC 7541, section 6.2.2).
        static func block(_ fields: [(name: String, value: String)]) -> [UInt8] {
            var block: [UInt8] = []
            for field in fields {
                block.append(0)
                for text in [field.name, field.value] {
                    append(text.utf8.count, to: &block)
                    block += Array(text.utf8)
                }
            }
            return block
        }

        private static func append(_ length: Int, to block: inout [UInt8]) {
            if length < 127 { return block.append(UInt8(length)) }
            block.append(127)
            var rest = length - 127
            while rest >= 128 {
                block.append(UInt8(rest & 127) | 128)
                rest >>= 7
            }
            block.append(UInt8(rest))
        }
    }
#endif
