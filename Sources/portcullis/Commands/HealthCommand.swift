internal import Configuration
internal import Reactor
internal import Synchronization

/// `portcullis health`: asks a running proxy whether it lives, for container health checks that
/// have no shell.
struct HealthCommand {
    private static let patience = Duration.seconds(3)

    private let address: ListenAddress
    private let console: Console

    init(_ address: ListenAddress, _ console: Console) {
        self.address = address
        self.console = console
    }

    /// Asks, and says so when there is no good answer.
    func perform() -> ExitCode {
        guard let target = socketAddress else {
            console.complain("portcullis: \(address) is no address that can be asked")
            return .usage
        }
        guard let loop = try? EventLoop() else { return .failure }
        let outcome = Outcome()
        let probe = HealthProbe(loop: loop)
        Task.detached(executorPreference: loop) {
            let answer = await probe.isAlive(target, patience: Self.patience)
            outcome.isAlive.withLock { $0 = answer }
            loop.stop()
        }
        loop.run()
        if outcome.isAlive.withLock({ $0 }) { return .done }
        console.complain("portcullis: no healthy proxy answers at \(address)")
        return .wrong
    }

    private var socketAddress: SocketAddress? {
        switch address {
        case .tcp(let host, let port): SocketAddress(literal: host, port: port)
        case .unix(let path): SocketAddress(unixPath: path)
        }
    }

    private final class Outcome: Sendable {
        let isAlive = Mutex(false)
    }
}

/// One question to the admin listener, on a loop of its own.
private actor HealthProbe {
    private nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: EventLoop) {
        self.loop = loop
    }

    func isAlive(_ address: SocketAddress, patience: Duration) async -> Bool {
        let deadline = loop.now.advanced(by: patience)
        guard let stream = await SocketStream.connect(to: address, loop: loop, until: deadline)
        else { return false }
        defer { stream.close() }
        let question = ByteBuffer(capacity: 128)
        question.append("GET /healthz HTTP/1.1\r\nHost: health\r\nConnection: close\r\n\r\n")
        guard await stream.send(question, until: deadline) else { return false }
        let good = "HTTP/1.1 200".utf8
        while stream.received.count < good.count {
            guard await stream.receive(until: deadline) else { return false }
        }
        return stream.received.withUnsafeBytes { $0.starts(with: good) }
    }
}
