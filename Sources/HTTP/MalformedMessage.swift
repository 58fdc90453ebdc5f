/// Why a message was refused before any policy saw it. `kind` is a static word for metrics and
/// logs; the status is what the client gets.
public struct MalformedMessage: Error, Sendable, Equatable {
    /// The raw values are label values of a metric and words of the log.
    public enum Kind: String, Sendable, CaseIterable {
        // Parser's own words, one per way in which a head or a body can be wrong; see the HTTP
        // module's tests.
        case startLine = "start_line"
        case version = "version"
        case method = "method"
        case target = "target"
        case path = "path"
        case fragment = "fragment"
        case host = "host"
        case fieldName = "field_name"
        case fieldValue = "field_value"
        case obsoleteFold = "obsolete_fold"
        case bareLineFeed = "bare_line_feed"
        case contentLength = "content_length"
        case transferEncoding = "transfer_encoding"
        case connection = "connection"
        case tooManyFields = "too_many_fields"
        case headTooLarge = "head_too_large"
        case targetTooLong = "target_too_long"
        case chunk = "chunk"
        case trailer = "trailer"
        case status = "status"
        case connectMethod = "connect_method"
        case expectation = "expectation"
    }

    /// What is wrong.
    public var kind: Kind

    public init(_ kind: Kind) {
        self.kind = kind
    }

    /// The status code for the client: 400, 405, 414, 417, 431, 501 or 505.
    public var status: UInt16 {
        switch kind {
        case .headTooLarge, .tooManyFields: 431
        case .targetTooLong: 414
        case .transferEncoding: 400
        case .version: 505
        case .connectMethod: 405
        case .expectation: 417
        default: 400
        }
    }
}
