/// Why a stream or a connection ends (RFC 9113, section 7).
public enum HTTP2ErrorCode: UInt32, Sendable {
    case none = 0
    case protocolError = 1
    case internalError = 2
    case streamClosed = 5
    case refusedStream = 7
    case cancel = 8
    case enhanceYourCalm = 11
}
