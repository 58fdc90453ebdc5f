internal import Configuration
internal import Reactor

/// Says in the log that connections were closed for their PROXY header, now and then: a scan of the
/// port, or a balancer with wrong settings, is a line every ten seconds.
struct RefusedHeaders {
    private static let interval = Duration.seconds(10)

    private var saidAt: MonotonicInstant?
    private var unsaid = 0

    /// A connection was closed.
    mutating func note(
        _ result: ProxyHeaderResult, from peer: String, listener: String, at now: MonotonicInstant,
        _ log: any EventLog
    ) {
        var fields = [("listener", listener), ("peer", peer), ("result", result.rawValue)]
        guard result.isNotable else {
            log.log(.debug, "a connection ended without a PROXY header", fields)
            return
        }
        if let saidAt, now < saidAt.advanced(by: Self.interval) {
            unsaid += 1
            return
        }
        fields.append(("not_reported", String(unsaid)))
        fields.append(
            (
                "hint",
                result == .untrusted
                    ? "trusted_proxies of the listener must name whoever sends PROXY headers to it"
                    : "whoever connects has to send a PROXY header of version 1 or 2 first"
            ))
        log.log(.warning, "a connection was closed for its PROXY header", fields)
        saidAt = now
        unsaid = 0
    }
}
