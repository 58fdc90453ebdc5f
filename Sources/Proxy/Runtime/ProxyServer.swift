internal import Configuration
public import Reactor

/// The whole data path: loops, listeners, and the configuration that they serve. An actor on the
/// control loop.
public actor ProxyServer {
    /// How often a drain looks whether all is over.
    private static let drainStep = Duration.milliseconds(20)

    private nonisolated let loop: EventLoop
    private let log: any EventLog
    private var workers: [Worker] = []
    private var listening = Listening()
    private var prepared: [(Listener, [ListeningDescriptor])] = []

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// A server whose control loop is `loop`; nothing is open before `start`.
    public init(loop: EventLoop, log: any EventLog) {
        self.loop = loop
        self.log = log
    }

    /// Opens the listeners and starts the loops.
    ///
    /// - Throws: `ListenError` when an address cannot be opened; nothing is left running then.
    public func start(
        _ serving: ServingConfiguration, keys: KeySnapshot,
        makeRecorder: @escaping @Sendable (Int) -> any RequestRecorder,
        requestRefetch: @escaping @Sendable (String) -> Void
    ) async throws {
        let count = serving.workerCount
        let opened = try open(serving.configuration.listeners, count: count)
        for index in 0..<count {
            let workerLoop = try EventLoop()
            let worker = Worker(
                loop: workerLoop, serving: serving, keys: keys,
                makeRecorder: { makeRecorder(index) }, log: log,
                requestRefetch: requestRefetch)
            if !Thread.start(named: "worker \(index)", { workerLoop.run() }) {
                throw Errno.noMemory
            }
            await worker.start()
            workers.append(worker)
        }
        try await accept(opened)
    }

    /// Opens the listeners that a new configuration adds, without accepting anything yet.
    ///
    /// - Throws: `ListenError` when one cannot be opened; then nothing has changed.
    public func prepare(_ serving: ServingConfiguration) throws(ListenError) {
        let added = serving.configuration.listeners.filter { !listening.isOpen($0.listen) }
        prepared = try open(added, count: workers.count)
    }

    /// Serves requests that begin from now on by a configuration that was prepared.
    public func adopt(_ serving: ServingConfiguration, keys: KeySnapshot) async {
        let added = prepared
        prepared = []
        for worker in workers { await worker.adopt(serving, keys: keys) }
        do throws(Errno) {
            try await accept(added)
        } catch {
            log.log(.error, "a new listener accepts nothing", [("error", "\(error)")])
        }
        listening.close(except: serving.configuration.listeners.map(\.listen))
    }

    /// Gives every loop new keys.
    public func adopt(_ keys: KeySnapshot) async {
        for worker in workers { await worker.adopt(keys) }
    }

    /// Stops accepting, waits for requests in flight, and ends the loops.
    ///
    /// - Returns: how many connections had to be cut off when `timeout` was over.
    @discardableResult
    public func drain(timeout: Duration) async -> Int {
        for worker in workers { await worker.drain() }
        listening.close(except: [])
        let waiter = Waiter(loop: loop)
        let deadline = loop.now.advanced(by: timeout)
        var left = await connectionCount()
        while left > 0 && loop.now < deadline {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.drainStep))
            left = await connectionCount()
        }
        waiter.invalidate()
        for worker in workers { await worker.stop() }
        workers.removeAll()
        return left
    }

    /// Client connections that are open now.
    public func connectionCount() async -> Int {
        var count = 0
        for worker in workers { count += await worker.connectionCount }
        return count
    }

    private func open(_ listeners: [Listener], count: Int) throws(ListenError)
        -> [(Listener, [ListeningDescriptor])]
    {
        var opened: [(Listener, [ListeningDescriptor])] = []
        do throws(ListenError) {
            for listener in listeners {
                opened.append(
                    (listener, try listening.descriptors(for: listener.listen, count: count)))
            }
        } catch {
            let kept = Set(opened.map(\.0.listen))
            listening.close(except: listening.addresses.filter { !kept.contains($0) })
            throw error
        }
        return opened
    }

    private func accept(_ opened: [(Listener, [ListeningDescriptor])]) async throws(Errno) {
        for (listener, descriptors) in opened {
            for (worker, descriptor) in zip(workers, descriptors) {
                try await worker.accept(descriptor, listener)
            }
            let bound = descriptors.first?.address.description ?? ""
            log.log(.info, "listening", [("listener", listener.name), ("address", bound)])
        }
    }
}
