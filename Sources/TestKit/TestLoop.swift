public import Reactor

/// An actor that lives on an event loop of its own thread, as the proxy's workers do. Tests run
/// their part of a conversation in it.
public actor TestLoop {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    public init() throws {
        loop = try EventLoop()
        let loop = loop
        Thread.start(named: "test loop") { loop.run() }
    }

    deinit {
        loop.stop()
    }

    /// Runs `body` on the loop.
    public func run<R: Sendable>(
        _ body: @Sendable (isolated TestLoop) async throws -> R
    ) async rethrows -> R {
        try await body(self)
    }
}
