internal import Reactor

/// How a stream ends, before its time or at it.
extension HTTP2Stream {
    /// The peer refused the stream before it did anything (RFC 9113, section 8.7): another
    /// connection may carry the request.
    public var isRefused: Bool { resetCode == HTTP2ErrorCode.refusedStream.rawValue }

    /// A message that is not complete is cut off anyhow.
    public func resetOnClose() {
        if !isWritingOver { reset(breakingCode) }
    }

    /// Nothing that the client still sends could matter, and it may never end the stream itself.
    private var isEndedWebSocket: Bool { opensWebSocket && outgoing.isEmpty }

    /// RFC 8441, section 5: what a TCP connection's reset would be.
    private var breakingCode: HTTP2ErrorCode { opensWebSocket ? .cancel : .internalError }

    /// Ends the stream at once in both directions.
    public func breakOff() {
        reset(.cancel)
        ended(HTTP2ErrorCode.cancel.rawValue)
    }

    /// Ends the stream at once in both directions.
    public func reset(_ code: HTTP2ErrorCode) {
        session.reset(self, code)
    }

    /// The application is done with the stream. What was written still goes out; a message that is
    /// not complete is cut off so that the peer can tell.
    public func close() {
        waiter = nil
        if isReceivingUnwanted { return }
        isReceivingUnwanted = true
        session.dropReserved(self)
        session.leftOver(self)
        session.discard(self)
        if resetCode != nil { return }
        if session.role == .client {
            if !isWritingOver || !isReceivingOver { reset(.cancel) }
        } else if !isWritingOver {
            reset(breakingCode)
        } else if !isReceivingOver && isEndedWebSocket {
            reset(.cancel)
        }
    }

    /// The application is done with the stream and looks at it now and then, until the peer is done
    /// with it as well.
    ///
    /// - Parameter patience: After so many looks, a peer that took nothing in between has no more
    ///   time.
    func look(patience: Int) {
        quietLooks += 1
        if hasEndLeft {
            // What is still to come of a request is of no use once the answer is out (RFC 9113,
            // section 8.1). Not at once: clients that still send would take it for a failure.
            reset(.none)
        } else if quietLooks >= patience {
            reset(.cancel)
        }
    }

    /// The peer, or the connection, ended the stream.
    func ended(_ code: UInt32) {
        // A stream that both sides finished is no failure, nor is an answer of a server that wants no
        // more of the request (RFC 9113, section 8.1). A client that resets without an error before
        // it has the answer is gone like any other.
        if code == 0 && isReceivingOver && (hasEndLeft || session.role == .client) { return }
        resetCode = resetCode ?? code
        waiter?.wake()
    }
}
