internal import CNGHTTP2

/// How the connection ends: after its last stream, or because of what the peer does.
extension HTTP2Session {
    /// Tells the peer that no further streams are welcome, before it is told which were the last
    /// (RFC 9113, section 6.8): those that cross this are still served.
    public func announceShutdown() {
        nghttp2_submit_shutdown_notice(pointer)
        hasOutput()
    }

    /// Takes no further streams. Those under way go on.
    public func finishShutdown() {
        nghttp2_submit_goaway(
            pointer, 0, nghttp2_session_get_last_proc_stream_id(pointer), 0, nil, 0)
        hasOutput()
    }

    /// Ends the connection because the peer does not go on with what it began.
    public func endStalled() {
        end(.stalled, code: .none)
    }

    /// Ends the connection because of what the peer does.
    func end(_ failure: HTTP2Failure, code: HTTP2ErrorCode) {
        if self.failure != nil { return }
        self.failure = failure
        nghttp2_session_terminate_session(pointer, code.rawValue)
        hasOutput()
    }

    /// A frame came that moves nothing.
    ///
    /// - Returns: false when there were too many; the connection ends.
    func countIdleFrame() -> Bool {
        if allowance.spendIdleFrame(at: now) { return true }
        end(.flood, code: .enhanceYourCalm)
        return false
    }

    /// A stream was reset by the peer, or because of what it did.
    ///
    /// - Returns: false when there were too many; the connection ends.
    func countReset() -> Bool {
        if allowance.spendReset(at: now) { return true }
        end(.flood, code: .enhanceYourCalm)
        return false
    }

    /// A header block begins. The library ignores those of streams that it does not know any more.
    ///
    /// - Returns: false when the connection ends, because the stream was over, or skipped.
    func expectsHead(of id: Int32) -> Bool {
        guard role == .server, let cause = ended.cause(of: id) else { return true }
        switch cause {
        case .ended: end(.protocolError, code: .streamClosed)
        case .skipped: end(.protocolError, code: .protocolError)
        case .reset:
            // Some clients reset a stream while another thread still writes to it. That is no
            // reason to take their other requests away.
            if stream(id) != nil { return true }
            ended.forgetReset(of: id)
            nghttp2_submit_rst_stream(pointer, 0, id, HTTP2ErrorCode.streamClosed.rawValue)
            return true
        }
        return false
    }
}
