internal import Reactor

/// What a connection holds that has nothing to serve now.
///
/// Safe to be Sendable: it has no state.
final class ClosedTransport: Transport, Sendable {
    /// One is enough.
    static let shared = ClosedTransport()

    var waiter: Waiter? {
        get { nil }
        set { _ = newValue }
    }

    var isReadable: Bool { true }
    var isPeerClosed: Bool { true }
    var isBroken: Bool { true }
    func read(into buffer: ByteBuffer) throws(Errno) -> TransferResult { .endOfStream }

    func write(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
    ) throws(Errno) -> TransferResult {
        throw .brokenPipe
    }

    func isQuiet() -> Bool { false }
    func finishWriting() {}
    func resetOnClose() {}
    func breakOff() {}
    func close() {}
}
