internal import HTTP
internal import Reactor

/// A task that serves streams of HTTP/2.
extension ClientConnection {
    /// Serves another stream with the task that served one before: `run` goes on with it.
    func adopt(_ stream: HTTP2Stream, of connection: ClientConnection) {
        transport = stream
        if listener !== connection.listener { listener = connection.listener }
        peer = connection.peer
        session = connection.session
        stream.waiter = waiter
        idleSince = state.loop.now
        state.began(self)
        isResting = false
        waiter.wake()
    }

    /// Serves one stream after the other, of whichever connection: to begin a task for each, with
    /// memory of its own, would cost as much as half of a request.
    func serveStreams() async {
        while true {
            if case .exchange(let exchange) = await next() {
                // The stream tells the client itself what is complete and what is not needed.
                if await serve(exchange) == .reset { transport.resetOnClose() }
            }
            state.ended(self)
            dropLeftover()
            transport.close()
            transport = state.closedTransport
            session = nil
            isAborted = false
            isDismissed = false
            isResting = true
            guard state.rest(self) else { return waiter.invalidate() }
            while isResting { _ = await waiter.wait() }
            if !hasStream { return waiter.invalidate() }
        }
    }

    /// What came behind a request on its stream is nobody's next request, least of all another
    /// client's.
    private func dropLeftover() {
        if let leftover { state.giveBack(leftover) }
        leftover = nil
    }

    private var hasStream: Bool { transport.carriesOneMessage }

    /// Ends the task that waits for another stream.
    func stopResting() {
        isResting = false
        waiter.wake()
    }
}
