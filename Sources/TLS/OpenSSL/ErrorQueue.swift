internal import COpenSSL
internal import Reactor

/// OpenSSL's queue of errors: one per thread, filled by whatever fails, and read by
/// `SSL_get_error` as if it were about the latest call. So it has to be empty before each call,
/// and emptied after each failure.
enum ErrorQueue {
    /// Forgets what earlier calls left.
    @inline(__always)
    static func clear() {
        ERR_clear_error()
    }

    /// Empties the queue and says what was in it, the root cause first: "reason (more, and more)".
    static func drain() -> String {
        var reasons: [String] = []
        while true {
            let code = ERR_get_error()
            if code == 0 { break }
            let reason = text(of: code)
            if reasons.last != reason && reasons.count < 4 { reasons.append(reason) }
        }
        guard let first = reasons.first else { return "no reason given" }
        if reasons.count == 1 { return first }
        return "\(first) (\(reasons.dropFirst().joined(separator: ", ")))"
    }

    /// The reason code of the latest error, without taking it out; 0 when there is none.
    static var latestReason: Int32 {
        ERR_GET_REASON(ERR_peek_last_error())
    }

    private static func text(of code: UInt) -> String {
        // The kernel's errors have no text in OpenSSL's tables.
        if code & COpenSSL_ERR_SYSTEM_FLAG != 0 {
            return Errno(rawValue: ERR_GET_REASON(code)).description
        }
        if let text = ERR_reason_error_string(code) { return String(cString: text) }
        return "OpenSSL error \(String(code, radix: 16))"
    }
}
