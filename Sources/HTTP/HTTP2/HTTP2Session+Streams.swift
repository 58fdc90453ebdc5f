internal import CNGHTTP2

/// How streams begin, are refused, and end.
extension HTTP2Session {
    /// A stream for a request of ours; its number is given when the head is written. Nil when the
    /// connection takes no more.
    public func openStream() -> HTTP2Stream? {
        if isGoingAway || failure != nil || !canOpenStream { return nil }
        let stream = HTTP2Stream(session: self)
        stream.isReserved = true
        reservedCount += 1
        return stream
    }

    /// A stream that `openStream` gave is not among those without a head any more.
    func unreserve(_ stream: HTTP2Stream) {
        if !stream.isReserved { return }
        stream.isReserved = false
        reservedCount -= 1
    }

    /// A stream was closed that no head was written to: whoever keeps the connection looks again.
    func dropReserved(_ stream: HTTP2Stream) {
        if !stream.isReserved { return }
        unreserve(stream)
        hasOutput()
    }

    func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        if stream.id == 0 || stream.resetCode != nil { return }
        nghttp2_submit_rst_stream(pointer, 0, stream.id, code.rawValue)
        hasOutput()
    }

    /// The peer's message is malformed: nothing of it counts any more (RFC 9113, section 8.1.1), and
    /// whoever reads it need not wait until the peer takes the reset.
    func refuse(_ stream: HTTP2Stream) {
        if stream.isMalformed { return }
        stream.isMalformed = true
        reset(stream, .protocolError)
        stream.ended(HTTP2ErrorCode.protocolError.rawValue)
    }

    /// Content came for a stream.
    ///
    /// - Returns: false when it is none of its message.
    func counts(_ count: Int, on stream: HTTP2Stream) -> Bool {
        if stream.isMalformed { return false }
        if stream.hasHead && stream.tally.add(count) { return true }
        refuse(stream)
        return false
    }

    /// A stream is over: whoever waits to open one may.
    func streamEnded(_ code: UInt32) {
        if code == HTTP2ErrorCode.none.rawValue { allowance.earnReset() }
        if role == .client { onCapacity() }
    }

    func resume(_ stream: HTTP2Stream) {
        nghttp2_session_resume_data(pointer, stream.id)
        hasOutput()
    }
}
