internal import CNGHTTP2

/// The windows that we open (RFC 9113, section 5.2): when content was taken, not when it came.
extension HTTP2Session {
    /// Content of a stream was read.
    func consumed(_ count: Int, of stream: HTTP2Stream) {
        // Streams that are over give their share of the connection's window back all the same.
        if stream.place >= 0 {
            nghttp2_session_consume(pointer, stream.id, count)
        } else {
            nghttp2_session_consume_connection(pointer, count)
        }
        if nghttp2_session_want_write(pointer) != 0 { hasOutput() }
    }

    /// What came of a request that nobody reads does not hold up the connection's other streams.
    func discard(_ stream: HTTP2Stream) {
        let content = stream.dropReceived()
        if content > 0 { nghttp2_session_consume_connection(pointer, content) }
    }

    /// Content came for a stream that is not read any more.
    func consumedUnwanted(_ count: Int) {
        nghttp2_session_consume_connection(pointer, count)
    }
}
