internal import Reactor
internal import TLS

/// The end of a connection whose records the kernel seals: it may hold the end of an answer that the
/// client has not made room for, and forgets it when the socket is closed.
extension ClientConnection {
    private static let firstLook: Int64 = 1_000_000
    private static let longestPause: Int64 = 250_000_000

    /// What of the connection the kernel may still hold; nil where it seals nothing.
    var kernelSealed: TLSTransport? {
        guard session != nil, let tls = transport as? TLSTransport, tls.isSealedByKernel
        else { return nil }
        return tls
    }

    /// Says what there is to say and waits until TCP has it all, for as long as a client may be
    /// idle. Nothing tells when that is, so it looks, ever more seldom.
    func awaitHandOver() async {
        guard let tls = kernelSealed else { return }
        tls.finishWriting()
        let deadline = state.loop.now.advanced(byNanoseconds: listener.idleNanoseconds)
        var pause = Self.firstLook
        while !tls.isHandedOver && !isAborted && state.loop.now < deadline {
            let look = state.loop.now.advanced(byNanoseconds: pause)
            _ = await waiter.wait(until: min(look, deadline))
            pause = min(pause * 2, Self.longestPause)
        }
    }
}
