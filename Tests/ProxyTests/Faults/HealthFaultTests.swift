#if DEBUG
    import Configuration
    import Policy
    import Reactor
    import TestKit
    import Testing

    @testable import Proxy

    @Suite("Faults of the kernel: health checks")
    struct HealthFaultTests {
        @Test(
            "a check for which nothing is left says nothing about the server, and is counted",
            arguments: ["socket:EMFILE", "socket:ENFILE", "epoll_ctl:ENOMEM", "connect:ENOBUFS"])
        func exhausted(rules: String) async throws {
            let server = try await ScriptedServer.start { _, _ in .ok("yes") }
            var check = HealthCheck(path: "/health")
            check.interval = .milliseconds(20)
            check.unhealthyAfter = 1
            var upstream = Upstream(
                name: "api", servers: [.tcp(host: "127.0.0.1", port: server.port)])
            upstream.health = check
            var configuration = Configuration(
                routes: try RouteTable([Route(name: "all", path: "/*", upstream: 0)]))
            configuration.upstreams = [upstream]

            let plan = FaultPlan()
            let loop = try EventLoop()
            let checker = HealthChecker(
                loop: loop, version: "0", log: LogCollector(), publish: { _ in })
            plan.add(try FaultRule.parse(rules))
            StandIn.use(plan) { _ = Thread.start(named: "health") { loop.run() } }
            await checker.adopt(ServingConfiguration(literal: configuration))
            let isCounted = try await until { await checker.status.count(.exhausted) >= 3 }
            #expect(isCounted)
            #expect(await checker.status.servers.map(\.isHealthy) == [true])
            plan.removeAll()
            let works = try await until { await checker.status.count(.success) >= 1 }
            #expect(works)
            await checker.stop()
            loop.stop()
        }

        /// Whether the condition comes true in time.
        private func until(_ condition: @escaping @Sendable () async -> Bool) async throws -> Bool {
            let resident = try TestLoop()
            return await resident.run { resident in
                let waiter = Waiter(loop: resident.loop)
                defer { waiter.invalidate() }
                let deadline = resident.loop.now.advanced(by: .seconds(20))
                while resident.loop.now < deadline {
                    if await condition() { return true }
                    _ = await waiter.wait(
                        until: resident.loop.now.advanced(by: .milliseconds(10)))
                }
                return false
            }
        }
    }

    extension UpstreamHealthStatus {
        /// How often checks ended so.
        fileprivate func count(_ result: HealthCheckResult) -> UInt64 {
            checks.values.reduce(0) { $0 + ($1[result] ?? 0) }
        }
    }
#endif
