#if DEBUG
    import Attestation
    import Configuration
    import HTTP
    import Policy
    import Reactor
    import Synchronization
    import TestKit

    @testable import Proxy

    /// What one request left in the records.
    struct RecordedRequest: Sendable {
        let target: String
        let status: UInt16
        let failure: RequestFailure?
        let bytesIn: UInt64
        let bytesOut: UInt64
    }

    /// Catches the records of a worker.
    final class RecordCollector: Sendable {
        private let collected = Mutex<[RecordedRequest]>([])
        private let unaccepted = Mutex(0)

        var requests: [RecordedRequest] { collected.withLock { $0 } }
        /// Times that no connection could be accepted.
        var acceptFailures: Int { unaccepted.withLock { $0 } }

        /// Records of one target.
        func count(of target: String) -> Int { requests.count { $0.target == target } }

        func recorder() -> any RequestRecorder { Recorder(self) }

        private final class Recorder: RequestRecorder {
            let collector: RecordCollector

            init(_ collector: RecordCollector) {
                self.collector = collector
            }

            func record(_ record: RequestRecord, serving: ServingConfiguration) {
                let request = RecordedRequest(
                    target: String(decoding: record.target, as: UTF8.self), status: record.status,
                    failure: record.failure, bytesIn: record.bytesIn, bytesOut: record.bytesOut)
                collector.collected.withLock { $0.append(request) }
            }

            func connection(_ event: ConnectionEvent, listener: String) {
                switch event {
                case .limited(.openFiles), .limited(.memoryLimit):
                    collector.unaccepted.withLock { $0 += 1 }
                default: break
                }
            }

            func upstream(_ event: UpstreamEvent, _ name: String) {}
            func secured(upstream name: String, isResumed: Bool) {}
            func flush() {}
        }
    }

    /// A worker on a loop of its own, whose calls into the kernel follow a plan; its clients and
    /// servers have loops that do not.
    final class WorkerRig: Sendable {
        let plan: FaultPlan
        let loop: EventLoop
        let worker: Worker
        let log = LogCollector()
        let records = RecordCollector()
        /// Where clients connect.
        let address: SocketAddress

        /// Serves every path from one upstream.
        ///
        /// - Parameter adjust: Changes the upstream.
        init(
            upstream ports: [UInt16], plan: FaultPlan = FaultPlan(),
            adjust: (inout Upstream) -> Void = { _ in }
        ) async throws {
            var route = Route(name: "all", path: "/*", upstream: 0)
            route.mode = .off
            var configuration = Configuration(routes: try RouteTable([route]))
            var upstream = Upstream(
                name: "api", servers: ports.map { .tcp(host: "127.0.0.1", port: $0) })
            adjust(&upstream)
            configuration.upstreams = [upstream]
            let listener = Listener(name: "front", listen: .tcp(host: "127.0.0.1", port: 0))
            configuration.listeners = [listener]

            guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else {
                throw Errno.invalidArgument
            }
            let listening = try ListeningDescriptor(any, isShared: false)
            address = listening.address
            self.plan = plan
            let loop = try StandIn.use(FaultPlan()) { try EventLoop() }
            self.loop = loop
            let records = records
            worker = Worker(
                loop: loop, serving: ServingConfiguration(literal: configuration),
                keys: KeySnapshot(sets: []), makeRecorder: { records.recorder() }, log: log,
                requestRefetch: { _ in })
            StandIn.use(plan) { _ = Thread.start(named: "worker") { loop.run() } }
            await worker.start()
            try await worker.accept(listening, listener)
        }

        /// Ends the worker; what is open is cut off.
        func stop() async {
            await worker.stop()
        }

        /// What comes back for a request until the connection ends; nil when nobody accepts within
        /// `patience`.
        func ask(_ request: String, patience: Duration = .seconds(20)) async throws -> String? {
            let address = address
            return try await TestLoop().run { loop in
                let deadline = loop.loop.now.advanced(by: patience)
                guard
                    let stream = await SocketStream.connect(
                        to: address, loop: loop.loop, until: deadline)
                else { return nil }
                defer { stream.close() }
                let bytes = ByteBuffer(capacity: request.utf8.count)
                bytes.append(request)
                _ = await stream.send(bytes, until: deadline)
                while await stream.receive(until: deadline) {}
                return stream.received.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            }
        }

        /// Waits for a condition.
        func wait(
            for condition: @Sendable () -> Bool, within patience: Duration = .seconds(20)
        ) async throws -> Bool {
            try await TestLoop().run { loop in
                let waiter = Waiter(loop: loop.loop)
                defer { waiter.invalidate() }
                let deadline = loop.loop.now.advanced(by: patience)
                while !condition() && loop.loop.now < deadline {
                    _ = await waiter.wait(until: loop.loop.now.advanced(by: .milliseconds(10)))
                }
                return condition()
            }
        }
    }
#endif
