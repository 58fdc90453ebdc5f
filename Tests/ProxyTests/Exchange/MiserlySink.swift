import Reactor

/// A sink that takes little at a time and never blocks: no event will say that it takes more.
final class MiserlySink: Transport {
    private(set) var taken: [UInt8] = []
    private let portion: Int

    init(portion: Int) {
        self.portion = portion
    }

    var waiter: Waiter?
    var isReadable: Bool { false }
    var isPeerClosed: Bool { false }
    var isBroken: Bool { false }

    func read(into buffer: ByteBuffer) throws(Errno) -> TransferResult { .wouldBlock }

    func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno)
        -> TransferResult
    {
        let bytes = (Array(first) + Array(second)).prefix(portion)
        taken += bytes
        return .bytes(bytes.count)
    }

    func isQuiet() -> Bool { true }
    func finishWriting() {}
    func resetOnClose() {}
    func breakOff() {}
    func close() {}
}
