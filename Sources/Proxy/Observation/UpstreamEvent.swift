/// What happened to an upstream, apart from the ends of requests. The raw values are label values
/// of `portcullis_upstream_events_total`.
public enum UpstreamEvent: String, Sendable, CaseIterable {
    /// A loop leaves a server alone for a while because of what its requests met.
    case ejected
    /// Too few servers were available, so a request could be given to any.
    case panic
    /// No server was available.
    case unhealthy
    /// A request had to wait until a server had room for it.
    case queued
    /// A request was moved to another server, or sent again.
    case retried
    /// A request could have been, but had been often enough, or the budget was used up.
    case retryRefused = "retry_refused"
}
