public import HTTP
public import TLS

/// Where a loop's records go. One object per event loop, called only on it: keep it cheap, never
/// block.
public protocol RequestRecorder: AnyObject {
    /// A request ended. `serving` is the configuration that it was served by: indices in the record
    /// refer to it.
    func record(_ record: RequestRecord, serving: ServingConfiguration)

    /// A connection of a listener was accepted (`opened`), became idle or active, or ended.
    func connection(_ event: ConnectionEvent, listener: String)

    /// Something happened to an upstream of the configuration.
    func upstream(_ event: UpstreamEvent, _ name: String)

    /// A TLS handshake with a server of an upstream was completed.
    func secured(upstream name: String, isResumed: Bool)

    /// The loop is about to sleep: a good moment to hand buffered log lines on.
    func flush()
}

/// What happened to a client connection.
public enum ConnectionEvent: Sendable {
    case opened, becameActive, becameIdle
    case closed(wasActive: Bool)
    /// Its TLS handshake is complete; whether the kernel encrypts what is sent.
    case secured(isResumed: Bool, byKernel: Bool)
    /// Its TLS handshake will not be.
    case handshakeFailed(TLSError.Kind)
    /// It, or a request on it, ran into a limit, and no record will say so.
    case limited(Limit)
    /// It was idle, and its place was needed.
    case dismissed
    /// It spoke HTTP/2, and was ended for what it did.
    case http2Failed(HTTP2Failure)
    /// The wait for its PROXY header is over.
    case proxyHeader(ProxyHeaderResult)
}
