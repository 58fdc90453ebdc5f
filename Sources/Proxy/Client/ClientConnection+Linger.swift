internal import Reactor

/// The end of a connection whose client may still be sending.
extension ClientConnection {
    private static let lingerTime = Duration.seconds(2)
    private static let lingerBytes = 1 << 20

    /// Closes our side and reads on for a while: bytes that arrive at a closed socket would reset
    /// the connection and could destroy the answer on its way.
    func linger() async {
        transport.finishWriting()
        let deadline = state.loop.now.advanced(by: Self.lingerTime)
        let scratch = ByteBuffer(capacity: 4096)
        var read = 0
        while read < Self.lingerBytes && !isAborted {
            switch try? transport.read(into: scratch) {
            case .bytes(let count):
                read += count
                scratch.removeAll()
            case .wouldBlock:
                if await waiter.wait(until: deadline) == .timedOut { return }
            case .endOfStream, nil: return
            }
        }
    }
}
