internal import Configuration
internal import Reactor

/// The listeners on their way from one process to the next.
extension ProxyServer {
    /// What a process that takes the place of this one has to inherit.
    public var passedSockets: [PassedSocket] { listening.passed }

    /// Leaves new connections in the kernel's queues, from where this process or another one that
    /// has the same descriptors can take them.
    public func suspendAccepting() async {
        for worker in workers { await worker.suspendAccepting() }
    }

    /// Accepts again what waits at the listeners, after all.
    public func resumeAccepting() async {
        await resumeAccepting(listeners)
    }

    private func resumeAccepting(_ listeners: [Listener]) async {
        for listener in listeners {
            do throws(Errno) {
                guard let descriptors = listening.known(listener.listen) else { continue }
                try await accept(listener, descriptors)
            } catch {
                log.log(
                    .error, "a listener accepts nothing",
                    [("listener", listener.name), ("error", "\(error)")])
            }
        }
    }

    /// The process whose place this one takes has let go of everything.
    public func settle() async {
        let before = listening.passed.count
        for error in listening.settle(count: workers.count) {
            log.log(
                .warning, "event loops share a listening socket",
                [("listener", "\(error.address)"), ("reason", error.reason)])
        }
        if listening.passed.count == before { return }
        await suspendAccepting()
        await resumeAccepting()
    }

    /// Another process serves the listeners with these descriptors from now on. Connections that
    /// wait at the others, which it does not want, are still served here.
    public func handOver(_ numbers: Set<Int32>) async {
        let left = listeners.filter { listener in
            listening.known(listener.listen)?.contains { !numbers.contains($0.number) } == true
        }
        let kept = Set(left.map(\.listen))
        listening.disown(listening.addresses.filter { !kept.contains($0) })
        await resumeAccepting(left)
    }
}
