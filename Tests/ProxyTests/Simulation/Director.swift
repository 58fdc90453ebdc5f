#if DEBUG
    import Attestation
    import Configuration
    import Policy
    import Reactor
    import Replay
    import TestKit

    @testable import Proxy

    /// Starts the worker, changes its configuration, its keys and what it knows of its servers now and
    /// then, drains it and ends it.
    actor Director {
        private static let listener = makeListener("front", port: SimulatedWorld.port)
        /// Every connection begins with a PROXY header.
        private static let balancedListener: Listener = {
            var listener = makeListener("balanced", port: SimulatedWorld.balancedPort)
            listener.expectsProxyHeader = true
            listener.trustedProxies = [IPNetwork(Approach.balancers)].compactMap(\.self)
            return listener
        }()

        private static func makeListener(_ name: String, port: UInt16) -> Listener {
            var listener = Listener(name: name, listen: .tcp(host: "127.0.0.1", port: port))
            listener.protocols = [.http1, .http2]
            listener.limits.headerTimeout = .seconds(5)
            listener.limits.idleTimeout = .seconds(10)
            return listener
        }

        private nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        private let world: SimulatedWorld
        private let duration: Duration
        private let store: MemoryStore
        private let worker: Worker
        private var listening: [(ListeningDescriptor, Listener)] = []
        private var generation: UInt64 = 1
        private var healthChange: UInt64 = 0

        init(world: SimulatedWorld, loop: EventLoop, duration: Duration) throws {
            self.world = world
            self.loop = loop
            self.duration = duration
            let begun = loop.now.advanced(by: .seconds(-3600))
            store = MemoryStore(
                entryLimit: 100_000,
                now: ClaimInstant(
                    wallMicroseconds: loop.wallMicroseconds - 3_600_000_000, monotonic: begun))
            let log = SimulatedLog(world)
            worker = Worker(
                loop: loop, serving: try Self.serving(idleConnections: 4),
                keys: Self.keys(world, generation: 1, areUsable: true),
                makeRecorder: { LedgerRecorder(world) }, log: log, requestRefetch: { _ in })
            for listener in [Self.listener, Self.balancedListener] {
                guard case .tcp(let host, let port) = listener.listen,
                    let address = SocketAddress(literal: host, port: port)
                else { throw Errno.invalidArgument }
                listening.append((try Self.listen(address), listener))
            }
        }

        /// The kernel may have no descriptor at this very moment.
        private static func listen(_ address: SocketAddress) throws(Errno) -> ListeningDescriptor {
            for _ in 0..<100 {
                if let descriptor = try? ListeningDescriptor(address, isShared: false) {
                    return descriptor
                }
            }
            throw .tooManyOpenFiles
        }

        func run() async {
            await worker.start()
            await worker.open(store, health: StoreHealth(store, log: SimulatedLog(world)))
            guard await accept() else { return loop.stop() }
            world.begin()
            let waiter = Waiter(loop: loop)
            let end = loop.now.advanced(by: duration)
            while loop.now < end {
                _ = await waiter.wait(until: loop.now.advanced(by: .seconds(1)))
                _ = store.purge(
                    at: ClaimInstant(
                        wallMicroseconds: loop.wallMicroseconds, monotonic: loop.now))
                await change()
                // Each client has one, and may have one to a server; the rest is idle or ours.
                let limit = 2 * world.clientCount + 80
                if world.kernel.openCount > limit {
                    world.kernel.report("\(world.kernel.openCount) descriptors are open")
                }
            }
            await drain(waiter)
            await worker.stop()
            waiter.invalidate()
        }

        private func accept() async -> Bool {
            for (descriptor, listener) in listening {
                guard await accept(descriptor, listener) else { return false }
            }
            return true
        }

        private func accept(_ descriptor: ListeningDescriptor, _ listener: Listener) async -> Bool {
            // The kernel may refuse to watch the listener, too.
            for _ in 0..<100 {
                do throws(Errno) {
                    try await worker.accept(descriptor, listener)
                    return true
                } catch {
                    continue
                }
            }
            return false
        }

        private func drain(_ waiter: Waiter) async {
            world.end()
            await worker.drain()
            listening.removeAll()
            let limit = loop.now.advanced(by: .seconds(300))
            while await worker.connectionCount > 0 {
                if loop.now > limit { return world.kernel.report("the drain does not end") }
                _ = await waiter.wait(until: loop.now.advanced(by: .milliseconds(100)))
            }
            // What the clients have not heard of yet, and connections to servers that lie idle: then
            // the loop has its own two descriptors alone.
            let settled = loop.now.advanced(by: .seconds(300))
            while world.clientCount > 0 || world.kernel.openCount > 2 {
                if loop.now > settled {
                    return world.kernel.report(
                        "\(world.clientCount) clients and \(world.kernel.openCount) descriptors are left"
                    )
                }
                _ = await waiter.wait(until: loop.now.advanced(by: .seconds(1)))
            }
            let counts = world.connections
            if counts.open != 0 || counts.active != 0 {
                world.kernel.report(
                    "\(counts.open) connections and \(counts.active) active ones are counted")
            }
        }

        // MARK: Changes

        private func change() async {
            let kernel = world.kernel
            if kernel.happens(oneIn: 60) {
                kernel.note("another configuration")
                generation += 1
                guard let serving = try? Self.serving(idleConnections: kernel.random(0, 8)) else {
                    return
                }
                await worker.adopt(
                    serving, keys: Self.keys(world, generation: generation, areUsable: true))
            }
            if kernel.happens(oneIn: 90) {
                let areUsable = kernel.happens(oneIn: 2)
                kernel.note("keys, \(areUsable ? "usable" : "unusable")")
                generation += 1
                await worker.adopt(Self.keys(world, generation: generation, areUsable: areUsable))
            }
            if kernel.happens(oneIn: 40) {
                healthChange += 1
                let isShared = kernel.happens(oneIn: 2)
                let ports = isShared ? SimulatedWorld.sharedPorts : SimulatedWorld.serverPorts
                let port = ports[kernel.random(0, ports.count - 1)]
                let server = HealthSnapshot.Server(
                    upstream: isShared ? "shared" : "api", label: "127.0.0.1:\(port)")
                let unhealthy: Set = kernel.happens(oneIn: 2) ? [server] : []
                await worker.adopt(HealthSnapshot(change: healthChange, unhealthy: unhealthy))
            }
        }

        private static func serving(idleConnections: Int) throws -> ServingConfiguration {
            let hosts = [SimulatedWorld.host, SimulatedWorld.sharedHost]
            let routes = hosts.enumerated().flatMap { upstream, host in
                Ledger.Route.allCases.map { Self.route($0, host: host, upstream: upstream) }
            }
            var configuration = Configuration(routes: try RouteTable(routes))
            configuration.projects = [
                ProjectSource(project: TestIssuer.project, keys: .file("/keys.json"))
            ]
            var shared = upstream("shared", SimulatedWorld.sharedPorts, idleConnections)
            shared.serverProtocol = .h2c
            configuration.upstreams = [
                upstream("api", SimulatedWorld.serverPorts, idleConnections), shared,
            ]
            configuration.listeners = [listener, balancedListener]
            configuration.replay.store = .memory
            return ServingConfiguration(literal: configuration)
        }

        private static func route(_ kind: Ledger.Route, host: String, upstream: Int) -> Route {
            let name = kind.rawValue
            var route = Route(name: "\(name)-\(upstream)", path: "/\(name)/*", upstream: upstream)
            route.hosts = [host]
            route.mode =
                switch kind {
                case .open: .off
                case .monitored: .monitor
                case .enforced, .once: .enforce
                }
            route.apps = [AppIndex(project: 0, app: 0)]
            if kind == .once { route.replay = .enforce }
            return route
        }

        private static func upstream(_ name: String, _ ports: [UInt16], _ idleConnections: Int)
            -> Upstream
        {
            var upstream = Upstream(
                name: name, servers: ports.map { .tcp(host: "127.0.0.1", port: $0) })
            upstream.connectTimeout = .seconds(2)
            upstream.responseHeaderTimeout = .seconds(6)
            upstream.idleTimeout = .seconds(8)
            upstream.idleConnections = idleConnections
            upstream.ejection.failures = 4
            upstream.limits.connections = 60
            return upstream
        }

        private static func keys(
            _ world: SimulatedWorld, generation: UInt64, areUsable: Bool
        ) -> KeySnapshot {
            KeySnapshot(
                sets: [
                    ProjectKeys(
                        project: TestIssuer.project.name, keySet: world.tokens.keySet,
                        fetchedAt: .now, usableUntil: areUsable ? .never : .now,
                        generation: generation, attempts: generation)
                ], edition: 0, change: generation)
        }
    }

    /// Puts what the proxy logs into the trace.
    private final class SimulatedLog: EventLog {
        private let world: SimulatedWorld

        init(_ world: SimulatedWorld) {
            self.world = world
        }

        func log(_ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)]) {
            let text = fields.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
            world.kernel.note("log: \(level.rawValue) \(message) \(text)")
        }
    }
#endif
