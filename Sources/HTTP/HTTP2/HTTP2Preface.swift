/// What an HTTP/2 connection begins with (RFC 9113, section 3.4).
public enum HTTP2Preface {
    /// How the first bytes of a connection compare with it.
    public enum Comparison: Sendable {
        /// They begin with all of it.
        case complete
        /// They are a part of it so far.
        case begun
        case different
    }

    /// Compares the first bytes of a connection, of which there must be some.
    public static func compare(_ bytes: Span<UInt8>) -> Comparison {
        let preface: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        let length = preface.utf8CodeUnitCount
        if bytes.count >= length { return bytes.hasExactPrefix(preface) ? .complete : .different }
        return preface.withUTF8Buffer { preface in
            for index in bytes.indices where bytes[index] != preface[index] { return .different }
            return .begun
        }
    }
}
