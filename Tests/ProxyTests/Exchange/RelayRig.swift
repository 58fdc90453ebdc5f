import HTTP
import Reactor
import TestKit

@testable import Proxy

/// A relay between two connections, with both far ends in the same hands: what a client sends, and
/// how much of it a server takes.
final class RelayRig {
    let input = ByteBuffer(capacity: 8 << 10)
    let output = ByteBuffer(capacity: 4 << 10)
    /// Bytes that the client has not sent yet.
    let unsent = ByteBuffer(capacity: 0)
    private(set) var relay: BodyRelay
    /// The most that lay between the two connections after any step.
    private(set) var mostBuffered = 0

    private let loop: EventLoop
    private let waiter: Waiter
    private let incoming: SocketPair
    private let outgoing: SocketPair
    private let received = ByteBuffer(capacity: 64 << 10)

    /// - Parameter head: Waits in front of the body, as a message head does.
    init(_ relay: BodyRelay, sends bytes: [UInt8], head: String = "", loop: EventLoop) async throws
    {
        self.relay = relay
        self.loop = loop
        waiter = Waiter(loop: loop)
        incoming = try await SocketPair.connect(loop: loop, waiter: waiter)
        outgoing = try await SocketPair.connect(loop: loop, waiter: waiter)
        unsent.append(bytes)
        output.append(head)
    }

    deinit {
        waiter.invalidate()
    }

    /// Works until the relay ends, or until nothing has moved for `patience`.
    ///
    /// - Parameter serverReads: How many bytes the server takes at a time; 0 for none.
    func run(
        serverReads: Int = .max, clientCloses: Bool = false,
        patience: Duration = .seconds(20)
    ) async throws -> RelayProgress {
        while true {
            var hasMoved = try feed(thenClose: clientCloses)
            let before = relay.activity
            let progress = relay.advance(
                from: incoming.far, input, to: outgoing.near, output)
            mostBuffered = max(mostBuffered, input.count + output.count)
            hasMoved = relay.activity != before || hasMoved
            hasMoved = try drain(atMost: serverReads) || hasMoved
            switch progress {
            case .needsSource, .needsSink:
                if hasMoved { continue }
                let limit = loop.now.advanced(by: patience)
                if await waiter.wait(until: limit) == .timedOut { return progress }
            case .pausing: continue
            default: return progress
            }
        }
    }

    /// Ends the outgoing connection and returns everything that the server got.
    func everythingReceived() async throws -> [UInt8] {
        outgoing.near.finishWriting()
        while true {
            received.reserve(64 << 10)
            switch try outgoing.far.read(into: received) {
            case .bytes: continue
            case .wouldBlock: _ = await waiter.wait()
            case .endOfStream: return received.withUnsafeBytes { Array($0) }
            }
        }
    }

    /// The server breaks the connection off; returns when our end knows.
    func resetByServer() async {
        outgoing.far.resetOnClose()
        outgoing.far.close()
        while !outgoing.near.isBroken { _ = await waiter.wait() }
    }

    private func feed(thenClose: Bool) throws -> Bool {
        var hasMoved = false
        while !unsent.isEmpty {
            let result = try unsent.withUnsafeBytes { bytes throws(Errno) in
                try incoming.near.write(bytes)
            }
            guard case .bytes(let count) = result else { return hasMoved }
            unsent.consume(count)
            hasMoved = true
        }
        if thenClose { incoming.near.finishWriting() }
        return hasMoved
    }

    private func drain(atMost limit: Int) throws -> Bool {
        var left = limit
        while left > 0 {
            received.reserve(16 << 10)
            let before = received.count
            // A server whose connection broke reads nothing.
            guard case .bytes? = try? outgoing.far.read(into: received) else { break }
            left -= received.count - before
        }
        return left < limit
    }
}
