/// Writes request targets so that they may be logged (pitfalls H5, O5).
///
/// Replaced by `[redacted]` are: the values of parameters whose names tokens or other secrets go
/// by; runs that look like a JWT, in path and query; user information. It does not matter whether
/// any of this is percent-encoded, once or several times, or part of a URL inside a parameter. What
/// cannot be told apart is redacted rather than shown.
public enum TargetRedaction {
    /// Bytes that a logged target has at most, before "…".
    public static let longest = 2_048

    /// Appends the loggable form of a target. The outcome is ASCII without control characters, but
    /// for a final "…" when it was cut.
    ///
    /// - Parameters:
    ///   - target: As the client sent it, well formed or not.
    ///   - limit: Bytes to write before "…".
    public static func append(
        _ target: Span<UInt8>, to output: inout [UInt8], limit: Int = longest
    ) {
        let start = output.count
        let scan = TargetScan(target)
        var writer = RedactedWriter(isVisible: scan.isVisible, lastOutput: start + limit)
        if !scan.isHarmless {
            var redactor = Redactor()
            redactor.redact(target, to: &output, &writer)
        }
        writer.write(target, upTo: target.count, to: &output)
        guard output.count - start > limit else { return }
        output.removeLast(output.count - start - limit)
        output.append(contentsOf: [0xe2, 0x80, 0xa6])
    }
}

/// What one quick look at a target tells.
private struct TargetScan {
    /// Nothing has to be escaped.
    var isVisible = true
    /// There is certainly nothing to redact: most targets without a query.
    var isHarmless: Bool

    init(_ target: Span<UInt8>) {
        var dots = 0
        var previous: UInt8 = 0
        var isSuspect = target.isEmpty || target[0] != UInt8(ascii: "/")
        for index in target.indices {
            let byte = target[index]
            switch byte {
            case UInt8(ascii: "="), UInt8(ascii: "%"): isSuspect = true
            case UInt8(ascii: "."): dots += 1
            case UInt8(ascii: "y"): if previous == UInt8(ascii: "e") { isSuspect = true }
            case 0x21...0x7e: break
            default: isVisible = false
            }
            previous = byte
        }
        isHarmless = !isSuspect && dots < 2
    }
}
