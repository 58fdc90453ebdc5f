import Reactor
import TLS
import TestKit

/// A client that says one thing over TLS and reads all that comes back.
enum TLSClient {
    static func exchange(
        _ text: String, port: UInt16, trust: TLSTrust, host: String,
        patience: Duration = .seconds(5)
    ) async throws -> String {
        let resident = try TestLoop()
        return try await resident.run { resident in
            let loop = resident.loop
            guard let address = SocketAddress(literal: "127.0.0.1", port: port) else { return "" }
            let socket = try Socket.connect(to: address, loop: loop)
            let waiter = Waiter(loop: loop)
            socket.waiter = waiter
            while socket.connectResult() == nil { _ = await waiter.wait() }
            let stream = try TLSStream(
                client: try TLSContext.client(trust: trust), socket: socket, host: host)
            try await stream.handshake(until: loop.now.advanced(by: patience))
            let buffer = ByteBuffer(capacity: 1024)
            buffer.append(text)
            while !buffer.isEmpty {
                switch try buffer.withUnsafeBytes({ try stream.write($0) }) {
                case .bytes(let count): buffer.consume(count)
                default: _ = await waiter.wait()
                }
            }
            while try !stream.flush() { _ = await waiter.wait() }
            return try await readAll(from: stream, waiter)
        }
    }

    private static func readAll(from stream: TLSStream, _ waiter: Waiter) async throws -> String {
        let buffer = ByteBuffer(capacity: 1024)
        while true {
            buffer.reserve(1024)
            switch try stream.read(into: buffer) {
            case .bytes: continue
            case .wouldBlock: _ = await waiter.wait()
            case .endOfStream: return buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            }
        }
    }
}
