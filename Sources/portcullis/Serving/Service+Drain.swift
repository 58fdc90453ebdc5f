internal import Configuration
internal import Glibc
internal import Operations
internal import Proxy
internal import Reactor

/// The end: a drain, or the next signal.
extension Service {
    /// How long the last spans may take, once nothing is served any more.
    private static let spanFlushTime = Duration.seconds(5)

    /// Whether a signal asks for the end.
    static func isEnd(_ signal: Int32) -> Bool { signal == SIGTERM || signal == SIGINT }

    /// Stops accepting, waits for requests in flight, and ends everything that runs.
    func drain(_ signal: Int32, _ waiter: Waiter) async -> ExitCode {
        readiness.enter(.draining)
        Task.immediate(executorPreference: loop) { await endAtNextSignal(waiter) }
        await delayDrain()
        isDraining = true
        let connections = await server.connectionCount()
        log.log(
            .info, "draining",
            [("connections", String(connections)), ("signal", String(signal))])
        let timeout = serving.configuration.server.drainTimeout
        let deadline = loop.now.advanced(by: timeout)
        tell(drainMessage(connections: connections, deadline: deadline))
        Task.immediate(executorPreference: loop) { await reportDrain(until: deadline) }
        await finish(within: timeout)
        return .done
    }

    /// Goes on accepting for a while, so that whoever sends clients here learns from `/readyz` that
    /// it should not.
    private func delayDrain() async {
        let delay = serving.configuration.server.drainDelay
        if delay == .zero { return }
        log.log(.info, "draining soon; connections are still accepted", [("delay", "\(delay)")])
        let end = loop.now.advanced(by: delay)
        let waiter = Waiter(loop: loop)
        var isOver = false
        while !isOver {
            tell(delayMessage(until: end))
            let next = min(end, loop.now.advanced(by: .seconds(1)))
            _ = await waiter.wait(until: next)
            isOver = loop.now >= end
        }
        waiter.invalidate()
    }

    /// Lets requests in flight finish, and ends everything that runs.
    func finish(within timeout: Duration) async {
        isDraining = true
        let cut = await server.drain(timeout: timeout)
        await keeper.stop()
        await health.stop()
        await tracing.stop(within: Self.spanFlushTime)
        await admin?.server.stop()
        admin = nil
        log.log(.info, "stopped", [("connections_cut", String(cut))])
    }

    /// Ends the process at the next signal that asks for it.
    func endAtNextSignal(_ waiter: Waiter) async {
        while true {
            if let signal = nextSignal() {
                if Self.isEnd(signal) { break }
                log.log(.info, "a signal changes nothing any more", [("signal", String(signal))])
                continue
            }
            _ = await waiter.wait()
        }
        _ = writer.shutDown(timeLimit: .seconds(1))
        exit(ExitCode.done.rawValue)
    }
}
