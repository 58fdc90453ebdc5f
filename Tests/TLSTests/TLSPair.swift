import Reactor
import TLS
import TestKit
import Testing

/// A client and a server on one loop, connected over loopback.
struct TLSPair {
    /// The client's end.
    let near: TLSTransport
    /// The server's end.
    let far: TLSTransport
    /// What the server collects in what it sends; empty between calls.
    let scratch = ByteBuffer(capacity: 1024)
    private let waiter: Waiter

    /// Connects; nothing of TLS is said before `handshake`.
    init(
        _ server: TLSServer, _ client: TLSContext, host: String = "localhost",
        resumption: TLSResumption? = nil, loop: EventLoop, waiter: Waiter
    ) async throws {
        let pair = try await SocketPair.connect(loop: loop, waiter: waiter)
        near = TLSTransport(
            try TLSStream(client: client, socket: pair.near, host: host, resumption: resumption))
        far = TLSTransport(try TLSStream(server: server, socket: pair.far, scratch: scratch))
        self.waiter = waiter
    }

    /// Completes the handshake of both ends.
    func handshake() async throws {
        while true {
            let isNearDone = try near.handshake()
            let isFarDone = try far.handshake()
            #expect(scratch.isEmpty)
            if isNearDone && isFarDone { return }
            _ = await waiter.wait()
        }
    }

    /// Does something with both ends after the handshake, on the loop that they are on.
    static func with<R: Sendable>(
        _ server: TLSServer, _ client: TLSContext, host: String = "localhost",
        on resident: TestLoop, _ body: @Sendable (TLSPair, Waiter) async throws -> R
    ) async throws -> R {
        try await resident.run { resident in
            let waiter = Waiter(loop: resident.loop)
            let pair = try await TLSPair(
                server, client, host: host, loop: resident.loop, waiter: waiter)
            try await pair.handshake()
            return try await body(pair, waiter)
        }
    }
}
