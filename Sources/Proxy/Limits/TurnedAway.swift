internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// What becomes of connections that there is no room for: where it is cheap, an honest 503; in a
/// flood, and where an answer would cost a handshake, the end.
final class TurnedAway {
    /// Connections that are answered at once; each takes a descriptor a little longer.
    private static let answerLimit = 64
    /// How long the client has to ask and to read the answer.
    private static let patience = Duration.seconds(1)
    private static let readLimit = 64 << 10

    private let answer = PreparedAnswer(ProxyProblem.overloaded.problem)
    private var answering = 0

    /// Whether a connection of a listener can be answered.
    func hasRoom(for listener: ServedListener) -> Bool {
        listener.tls == nil && listener.servesHTTP1 && answering < Self.answerLimit
    }

    /// Waits for the request, since clients take what comes before it for no answer, and refuses it.
    func refuse(_ socket: Socket, _ state: LoopState) async {
        answering += 1
        let waiter = Waiter(loop: state.loop)
        socket.waiter = waiter
        let deadline = state.loop.now.advanced(by: Self.patience)
        let buffer = ByteBuffer(capacity: 2048)
        var hasAnswered = false
        var read = 0
        reading: while read < Self.readLimit {
            buffer.removeAll()
            switch try? socket.read(into: buffer) {
            case .bytes(let count):
                read += count
                if !hasAnswered {
                    hasAnswered = true
                    send(to: socket, buffer, state)
                }
            case .wouldBlock where await waiter.wait(until: deadline) == .ready: continue
            case .wouldBlock, .endOfStream, nil: break reading
            }
        }
        waiter.invalidate()
        socket.close()
        answering -= 1
    }

    private func send(to socket: Socket, _ buffer: ByteBuffer, _ state: LoopState) {
        buffer.removeAll()
        buffer.append(answer.head)
        state.date.appendField(to: buffer, unixSeconds: state.loop.wallMicroseconds / 1_000_000)
        buffer.append("Connection: close\r\n\r\n")
        buffer.append(answer.problem.body)
        // A fresh socket takes these few bytes at once, or is of no use.
        _ = try? buffer.withUnsafeBytes { bytes throws(Errno) in try socket.write(bytes) }
        socket.finishWriting()
    }
}
