/// A request method (RFC 9110, section 9). Methods outside the registry's common ones are `other`;
/// their bytes stay in the head.
public enum Method: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, options, patch, connect, trace, other
}

extension Method {
    /// Reads a method name; methods are case-sensitive.
    ///
    /// - Throws: `method` for a common one that is not in capitals: some backends would take `post`
    ///   for POST, after a route for other methods had let it in (pitfall P8).
    @inline(__always)
    init(_ name: Span<UInt8>) throws(MalformedMessage) {
        switch name.count {
        case 3:
            self = name.hasExactPrefix("GET") ? .get : name.hasExactPrefix("PUT") ? .put : .other
        case 4:
            self =
                name.hasExactPrefix("POST") ? .post : name.hasExactPrefix("HEAD") ? .head : .other
        case 5:
            self =
                name.hasExactPrefix("PATCH")
                ? .patch : name.hasExactPrefix("TRACE") ? .trace : .other
        case 6: self = name.hasExactPrefix("DELETE") ? .delete : .other
        case 7:
            self =
                name.hasExactPrefix("OPTIONS")
                ? .options : name.hasExactPrefix("CONNECT") ? .connect : .other
        default: self = .other
        }
        if self == .other, Self.isMiswritten(name) { throw MalformedMessage(.method) }
    }

    private static func isMiswritten(_ name: Span<UInt8>) -> Bool {
        name.equals("get") || name.equals("put") || name.equals("post") || name.equals("head")
            || name.equals("patch") || name.equals("trace") || name.equals("delete")
            || name.equals("options") || name.equals("connect")
    }
}
