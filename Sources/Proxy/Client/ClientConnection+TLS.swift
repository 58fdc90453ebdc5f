internal import Configuration
internal import Reactor
internal import TLS

/// The handshake of a connection to a listener with certificates.
extension ClientConnection {
    /// Completes the handshake, for which a client has as long as for the head of a request.
    ///
    /// - Returns: false when there is nothing to serve.
    func secure() async -> Bool {
        guard let stream = transport as? TLSTransport else { return false }
        let deadline = idleSince.advanced(byNanoseconds: listener.headerNanoseconds)
        do throws(TLSError) {
            while !isAborted && !isDismissed && !isDrained {
                if transport.isReadable {
                    guard await state.handshakes.take(waiter, until: deadline) else {
                        throw .handshakeTimedOut
                    }
                }
                if try stream.handshake(), let session = stream.session {
                    self.session = session
                    idleSince = state.loop.now
                    state.recorder.connection(
                        .secured(
                            isResumed: session.isResumed, byKernel: stream.isSealedByKernel),
                        listener: listener.name)
                    return true
                }
                let limit = state.isDraining ? min(deadline, idleDeadline) : deadline
                if await waiter.wait(until: limit) == .timedOut && limit == deadline {
                    throw .handshakeTimedOut
                }
            }
        } catch {
            state.recorder.connection(.handshakeFailed(error.kind), listener: listener.name)
            state.log.log(
                .debug, "TLS handshake failed",
                [
                    ("listener", listener.name), ("client", peer.host),
                    ("kind", error.kind.rawValue), ("error", error.detail),
                ])
        }
        return false
    }
}
