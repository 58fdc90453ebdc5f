public import Reactor

/// A TLS connection as the data path sees it. Errors are told in the kernel's words; what TLS has
/// to say about them is in `failure`.
public final class TLSTransport: Transport {
    private let stream: TLSStream
    private var isCutOff = false
    /// The handshake failed, and what still comes is only read to be dropped: closing with bytes
    /// unread would reset the connection under the alert that says why.
    private var isDropping = false
    /// What the handshake found out; nil until it is complete.
    public private(set) var session: TLSSession?

    /// Takes over a stream whose handshake has not begun.
    public init(_ stream: TLSStream) {
        self.stream = stream
    }

    /// Why the connection is of no use any more.
    public var failure: TLSError? { stream.failure }

    /// Does what can be done of the handshake without waiting; nothing is read or written before it
    /// is complete.
    ///
    /// - Returns: whether it is.
    /// - Throws: `certificate` when the peer is not to be believed, and what else ends a
    ///   connection.
    public func handshake() throws(TLSError) -> Bool {
        if session != nil { return true }
        if try !stream.handshake() { return false }
        session = stream.session
        return true
    }

    /// The connection below, for what comes before the handshake; nothing else may touch it.
    public var socket: Socket { stream.socket }

    public var waiter: Waiter? {
        get { stream.socket.waiter }
        set { stream.socket.waiter = newValue }
    }

    public var isReadable: Bool { stream.hasBuffered || stream.socket.isReadable }
    public var isPeerClosed: Bool { stream.socket.isPeerClosed }
    public var isBroken: Bool { stream.socket.isBroken || stream.failure != nil }

    public func read(into buffer: ByteBuffer) throws(Errno) -> TransferResult {
        if isDropping { return try stream.socket.read(into: buffer) }
        do throws(TLSError) {
            return try stream.read(into: buffer)
        } catch {
            throw .connectionReset
        }
    }

    public func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer)
        throws(Errno) -> TransferResult
    {
        do throws(TLSError) {
            return try stream.write(first, second)
        } catch {
            throw .connectionReset
        }
    }

    public func flush() throws(Errno) -> Bool {
        do throws(TLSError) {
            return try stream.flush()
        } catch {
            throw .connectionReset
        }
    }

    public func isQuiet() -> Bool { stream.isQuiet() }

    /// The kernel encrypts what is sent.
    public var isSealedByKernel: Bool { stream.isSealedByKernel }

    /// Closing loses nothing that was written; see `KernelTLS`.
    public var isHandedOver: Bool { stream.isHandedOver }

    public var isDueToEnd: Bool { stream.isDueToEnd }

    public func finishWriting() {
        isDropping = stream.failure != nil
        stream.finishWriting()
        // Nothing that the kernel still holds is sent after that.
        if stream.isHandedOver { stream.socket.finishWriting() }
    }

    public func resetOnClose() {
        isCutOff = true
        stream.socket.resetOnClose()
    }

    public func breakOff() {
        isCutOff = true
        stream.socket.breakOff()
    }

    public func close() {
        // Without it the peer would have to take a complete message for one that was cut off.
        if !isCutOff { stream.finishWriting() }
        stream.socket.close()
    }
}
