/// Why we ended a connection. The raw values are the words of logs and labels.
public enum HTTP2Failure: String, Error, Sendable, CaseIterable {
    /// The peer does not begin as HTTP/2 does (RFC 9113, section 3.4).
    case preface = "h2_preface"
    /// A frame that is wrong for the whole connection.
    case protocolError = "h2_protocol"
    /// Too many frames that move nothing.
    case flood = "h2_flood"
    /// Something that was begun did not go on.
    case stalled = "h2_stalled"
}
