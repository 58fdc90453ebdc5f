/// A request method (RFC 9110, section 9). Methods outside the registry's common ones are `other`; their bytes
/// stay in the head.
public enum Method: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, options, patch, connect, trace, other
}
