internal import Reactor

/// What a connection holds that has nothing to serve now. One is enough for a loop; one for all would
/// have the loops count its references on one line of memory.
final class ClosedTransport: Transport {
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
