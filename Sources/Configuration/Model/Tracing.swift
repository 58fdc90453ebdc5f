/// `[tracing]`: spans of requests, sent to a collector of OpenTelemetry.
public struct Tracing: Sendable, Equatable {
    /// `parents`: whose `traceparent` is continued.
    public enum Parents: String, Sendable, CaseIterable {
        /// Anybody's. Whoever sends it decides whether it is recorded.
        case all
        /// Only that of peers in `trusted_proxies`; a trace of anybody else begins here.
        case trusted
    }

    /// `otlp`: where spans are posted, OTLP/HTTP in JSON.
    public var url: String
    /// `service.name` of the spans' resource.
    public var serviceName = "portcullis"
    /// The share of the traces that begin here of which spans are sent, from 0 to 1.
    public var share = 0.01
    /// Whose `traceparent` is continued.
    public var parents = Parents.all
    /// Fields sent with each export (an API key).
    public var headers: [(name: String, value: String)] = []
    /// PEM file that replaces the system's trust store for the URL.
    public var authorityFile: String?
    /// An HTTP proxy that CONNECTs to the URL's host.
    public var egressProxy: ListenAddress?
    /// For one export.
    public var timeout: Duration = .seconds(10)
    /// Spans that wait at most; more are dropped.
    public var queue = 2048

    public init(url: String) {
        self.url = url
    }

    public static func == (left: Tracing, right: Tracing) -> Bool {
        left.url == right.url && left.serviceName == right.serviceName
            && left.share == right.share && left.parents == right.parents
            && left.authorityFile == right.authorityFile && left.egressProxy == right.egressProxy
            && left.timeout == right.timeout && left.queue == right.queue
            && left.headers.elementsEqual(right.headers) {
                $0.name == $1.name && $0.value == $1.value
            }
    }
}
