internal import HTTP

/// What a client ran into. The raw values are the keys of the configuration where there is one; they
/// are label values of `portcullis_limit_hits_total` and words of the log.
public enum Limit: String, Sendable, CaseIterable {
    // Of the process.
    case maxConnections = "max_connections"
    case memoryLimit = "memory_limit"
    /// RLIMIT_NOFILE, which has no key.
    case openFiles = "open_files"
    // Of a listener's connections.
    case connections
    case connectionsPerNetwork = "connections_per_network"
    case requestsPerConnection = "requests_per_connection"
    case pipelined
    // Of a request.
    case headerBytes = "header_bytes"
    case headers
    case url
    case body
    case headerTimeout = "header_timeout"
    case idleTimeout = "idle_timeout"
    case bodyRate = "body_rate"
    case answerRate = "answer_rate"
    // Of an HTTP/2 connection; these have no key.
    /// Frames that move nothing, streams that were reset, or a head that a few bytes make huge.
    case http2Flood = "h2_flood"
    /// More streams at once than were offered.
    case http2Streams = "h2_streams"

    /// The limit that ended a request; nil when it was none of them.
    public init?(_ record: RequestRecord) {
        switch record.failure {
        case .malformed:
            switch record.malformed {
            case .headTooLarge: self = .headerBytes
            case .tooManyFields: self = .headers
            case .targetTooLong: self = .url
            default: return nil
            }
        case .bodyTooLarge: self = .body
        case .headerTimeout: self = .headerTimeout
        case .clientTimeout: self = .idleTimeout
        case .bodyRate: self = .bodyRate
        case .answerRate: self = .answerRate
        case .memoryLimit: self = .memoryLimit
        case .openFiles: self = .openFiles
        default: return nil
        }
    }
}
