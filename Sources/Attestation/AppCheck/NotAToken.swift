/// What clients are known to send in place of a token.
enum NotAToken {
    /// The SDK's word for "attestation failed here" (docs/app-check-tokens.md 4).
    case placeholder
    /// A debug provider's secret, which somebody pasted into the field.
    case debugSecret

    /// Recognises a value that is no token; nil for what may be one.
    static func recognize(_ value: Span<UInt8>) -> NotAToken? {
        if value.equals("eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==") { return .placeholder }
        if isUUID(value) { return .debugSecret }
        return isErrorObject(value) ? .placeholder : nil
    }

    /// 8-4-4-4-12 hexadecimal digits of either case (RFC 9562, section 4).
    private static func isUUID(_ value: Span<UInt8>) -> Bool {
        guard value.count == 36 else { return false }
        for index in value.indices {
            switch index {
            case 8, 13, 18, 23:
                guard value[index] == UInt8(ascii: "-") else { return false }
            default:
                guard value[index].hexadecimalDigit != nil else { return false }
            }
        }
        return true
    }

    /// Standard base64 of a JSON object with a member `error`: the web SDK leaves other words than
    /// `UNKNOWN_ERROR` open.
    private static func isErrorObject(_ value: Span<UInt8>) -> Bool {
        // A short object only: one with an error word needs no more, and a stranger gets no more
        // work.
        guard 16...1024 ~= value.count, !value.contains(UInt8(ascii: ".")),
            let text = Base64.standard.decode(value),
            let object = try? JSONDocument(text)
        else { return false }
        return object.member("error") != nil
    }
}
