internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// How requests of a configuration are traced.
struct RequestTracing: Sendable {
    let sampler: TraceSampler
    /// Whose `traceparent` is continued.
    let parents: Tracing.Parents

    init(_ settings: Tracing) {
        sampler = TraceSampler(share: settings.share)
        parents = settings.parents
    }
}

/// W3C Trace Context: the trace that the request belongs to.
extension Exchange {
    /// Continues the caller's trace, or begins one.
    func beginTrace(_ client: ClientConnection, _ tracing: RequestTracing) {
        let input = self.input
        let bytes = input.pinnedBytes
        var trace: RequestTrace
        if let parent = parent(client, tracing, bytes) {
            trace = RequestTrace(
                traceID: parent.traceID, parentID: parent.spanID, spanID: newID(),
                isSampled: parent.isSampled)
            trace.keepsState = mayKeepState(bytes)
        } else {
            let id = TraceID(high: newID(), low: newID())
            trace = RequestTrace(
                traceID: id, parentID: nil, spanID: newID(),
                isSampled: tracing.sampler.includes(id))
        }
        if trace.isSampled { trace.upstreamSpanID = newID() }
        trace.isEncrypted = client.isEncrypted
        record.trace = trace
    }

    /// Two lines are none: nobody can say which one counts.
    private func parent(
        _ client: ClientConnection, _ tracing: RequestTracing, _ bytes: Span<UInt8>
    ) -> TraceParent? {
        guard tracing.parents == .all || client.peer.isTrusted,
            let line = head.fields.first(.traceparent), head.fields.count(of: .traceparent) == 1
        else { return nil }
        return TraceParent(text: bytes.slice(line.value))
    }

    private func mayKeepState(_ bytes: Span<UInt8>) -> Bool {
        guard head.fields.contains(.tracestate) else { return false }
        var check = TraceStateCheck()
        for line in head.fields.lines where line.known == .tracestate {
            guard check.take(bytes.slice(line.value)) else { return false }
        }
        return true
    }

    /// Zero would be no name.
    private func newID() -> UInt64 {
        while true {
            let word = state.identifiers.nextWord()
            if word != 0 { return word }
        }
    }

    /// `traceparent` with a span of ours, and the caller's `tracestate`. Always as version 00: more
    /// is not known of later ones.
    func writeTrace(_ trace: RequestTrace, _ bytes: Span<UInt8>, _ out: ByteBuffer) {
        out.append("traceparent: 00-")
        out.append(hexadecimal: trace.traceID.high)
        out.append(hexadecimal: trace.traceID.low)
        out.append("-")
        out.append(hexadecimal: trace.upstreamSpanID)
        if trace.isSampled { out.append("-01\r\n") } else { out.append("-00\r\n") }
        guard trace.keepsState else { return }
        for line in head.fields.lines where line.known == .tracestate && !line.value.isEmpty {
            out.append("tracestate: ")
            out.append(bytes.slice(line.value))
            out.append("\r\n")
        }
    }

    /// Where asking the upstream begins, for its span.
    func noteUpstreamStart(_ begun: MonotonicInstant) {
        record.trace?.upstreamStart = begun.microseconds(since: startedAt)
    }
}

extension ByteBuffer {
    /// Appends sixteen digits in lower case.
    fileprivate func append(hexadecimal value: UInt64) {
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
            append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }
}
