/// Finds App Check tokens in query strings, where they must never be (pitfall H5).
///
/// A parameter carries a token when its name is one that tokens go by, whatever its value, or when
/// its value, decoded, is a JWT of an issuer that is served. "ac" counts as such a name unless its
/// value is empty. Parameters are separated by "&" or ";".
public enum URLTokenScanner {
    /// Whether a query carries a token. Allocates only for encoded values that may be tokens.
    ///
    /// - Parameters:
    ///   - query: Without "?".
    ///   - isToken: Whether bytes are a JWT of a served issuer; asked only for what looks like a
    ///     JWT.
    public static func carriesToken(
        _ query: Span<UInt8>, isToken: (Span<UInt8>) -> Bool
    ) -> Bool {
        var start = 0
        while start < query.count {
            let parameter = Parameter(query, from: start)
            if parameter.isNamedToken(query) { return true }
            if parameter.isNameTokenLike,
                isTokenValue(query.extracting(parameter.start..<parameter.nameEnd), isToken)
            {
                return true
            }
            if parameter.isValueTokenLike,
                isTokenValue(query.extracting(parameter.valueStart..<parameter.end), isToken)
            {
                return true
            }
            start = parameter.end + 1
        }
        return false
    }

    private static func isTokenValue(
        _ value: Span<UInt8>, _ isToken: (Span<UInt8>) -> Bool
    ) -> Bool {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(value.count)
        var position = 0
        var dots = 0
        while position < value.count {
            let byte = DecodedByte(value, at: position)
            if byte.value == UInt8(ascii: ".") {
                dots += 1
            } else if !isBase64URL(byte.value) {
                return false
            }
            decoded.append(byte.value)
            position = byte.end
        }
        return dots == 2 && isToken(decoded.span)
    }
}

/// Where a parameter lies in its query, and what one look at its bytes tells.
private struct Parameter {
    let start: Int
    let nameEnd: Int
    /// Behind "=", or `end` when there is none.
    let valueStart: Int
    let end: Int
    /// It has the length and the two dots of a JWT, or is encoded and may have. A parameter without
    /// a value may be a token itself.
    let isNameTokenLike: Bool
    let isValueTokenLike: Bool

    /// What a JWT has at least: three short segments.
    private static let shortestToken = 20

    @inline(__always)
    init(_ query: Span<UInt8>, from start: Int) {
        self.start = start
        var position = start
        var equals = -1
        var dots = 0
        var isEncoded = false
        var isNameTokenLike = false
        while position < query.count {
            let byte = query[position]
            if byte == UInt8(ascii: "&") || byte == UInt8(ascii: ";") { break }
            if byte == UInt8(ascii: "=") && equals < 0 {
                equals = position
                isNameTokenLike = Self.isTokenLike(position - start, dots, isEncoded)
                dots = 0
                isEncoded = false
            }
            if byte == UInt8(ascii: ".") { dots += 1 }
            if byte == UInt8(ascii: "%") { isEncoded = true }
            position += 1
        }
        end = position
        nameEnd = equals < 0 ? end : equals
        valueStart = equals < 0 ? end : equals + 1
        let isTokenLike = Self.isTokenLike(end - (equals < 0 ? start : valueStart), dots, isEncoded)
        self.isNameTokenLike = equals < 0 ? isTokenLike : isNameTokenLike
        isValueTokenLike = equals < 0 ? false : isTokenLike
    }

    @inline(__always)
    private static func isTokenLike(_ count: Int, _ dots: Int, _ isEncoded: Bool) -> Bool {
        count >= shortestToken && (dots == 2 || (isEncoded && dots < 2))
    }

    /// Whether tokens go by this name.
    @inline(__always)
    func isNamedToken(_ query: Span<UInt8>) -> Bool {
        guard start < nameEnd else { return false }
        // Few names begin like one of those, so most need no second look.
        switch query[start] | 0x20 {
        case UInt8(ascii: "a"), UInt8(ascii: "f"), UInt8(ascii: "x"): break
        case UInt8(ascii: "b")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return false
        default: break
        }
        return isNamedTokenAfterDecoding(query)
    }

    private func isNamedTokenAfterDecoding(_ query: Span<UInt8>) -> Bool {
        var name = ParameterName()
        var position = start
        while position < nameEnd {
            let byte = DecodedByte(query, at: position)
            name.append(byte.value)
            position = byte.end
        }
        switch name.kind {
        case .ordinary: return false
        case .token: return true
        case .shortToken: return end > valueStart
        }
    }
}

/// Whether a byte may stand in base64url text (RFC 4648, section 5).
@inline(__always)
func isBase64URL(_ byte: UInt8) -> Bool {
    byte &- UInt8(ascii: "0") < 10 || (byte | 0x20) &- UInt8(ascii: "a") < 26
        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
}
