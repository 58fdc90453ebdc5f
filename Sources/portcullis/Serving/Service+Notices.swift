internal import Configuration
internal import Operations
internal import Policy
internal import Proxy
internal import Reactor
internal import Replay

/// What the service manager hears of the service's life.
extension Service {
    private static let drainReportInterval = Duration.seconds(1)
    /// How much longer the end may take, said anew with every report: what is left behind the drain
    /// (cut requests, the last log lines) takes less.
    private static let drainExtension = Duration.seconds(10)

    /// Sends one message. A manager that cannot be reached is no reason to stop serving.
    func tell(_ message: ServiceManagerNotice.Message) {
        do throws(Errno) {
            try notice.send(message)
        } catch {
            log.log(.warning, "the service manager was not told", [("error", error.description)])
        }
    }

    /// For `systemctl status`: what is served where.
    ///
    /// - Parameter remark: What an operator should know first.
    func servingStatus(_ remark: String? = nil) -> String {
        let configuration = serving.configuration
        let parts = [
            remark,
            "serving \(counted(configuration.routes.routes.count, "route")) on "
                + configuration.listeners.map(\.name).joined(separator: ", "),
            claims.store.map { "replay store \($0.name)" },
        ]
        return parts.compactMap { $0 }.joined(separator: "; ")
    }

    /// Says that nothing is stuck, for as long as that is so: a loop that does not answer keeps the
    /// next message from being sent, and then the manager acts.
    func feedWatchdog() async {
        guard let interval = notice.watchdogInterval else { return }
        let waiter = Waiter(loop: loop)
        while heir == nil {
            await server.awaitLoops()
            tell(.alive)
            _ = await waiter.wait(until: loop.now.advanced(by: interval))
        }
    }

    /// Says how the drain goes, and that it must not be cut short, until the process ends.
    func reportDrain(until deadline: MonotonicInstant) async {
        let waiter = Waiter(loop: loop)
        while true {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.drainReportInterval))
            let count = await server.connectionCount()
            tell(drainMessage(connections: count, deadline: deadline))
        }
    }

    /// That the process ends, and what it still waits for.
    func drainMessage(connections: Int, deadline: MonotonicInstant)
        -> ServiceManagerNotice.Message
    {
        let seconds = max(0, deadline.microseconds(since: loop.now) / 1_000_000)
        return .stopping(
            status: "draining \(counted(connections, "connection")), \(seconds) s left",
            extension: Self.drainExtension)
    }

    /// That the process will end, and still serves.
    func delayMessage(until end: MonotonicInstant) -> ServiceManagerNotice.Message {
        let seconds = max(0, end.microseconds(since: loop.now) / 1_000_000)
        return .stopping(
            status: "not ready any more, accepting for \(seconds) s",
            extension: Self.drainExtension)
    }
}
