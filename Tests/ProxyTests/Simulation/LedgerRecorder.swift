#if DEBUG
    import Proxy
    import TestKit

    /// Tells the ledger what is recorded, and counts connections as the metrics do.
    final class LedgerRecorder: RequestRecorder {
        private let world: SimulatedWorld

        init(_ world: SimulatedWorld) {
            self.world = world
        }

        func record(_ record: RequestRecord, serving: ServingConfiguration) {
            let target = String(decoding: record.target, as: UTF8.self)
            world.kernel.note(
                "record: \(target) \(record.status) \(record.failure?.rawValue ?? "")")
            world.ledger.recorded(
                target, status: Int(record.status), client: record.clientAddress)
        }

        func connection(_ event: ConnectionEvent, listener: String) {
            switch event {
            case .opened: world.connections.open += 1
            case .becameActive: world.connections.active += 1
            case .becameIdle: world.connections.active -= 1
            case .closed(let wasActive):
                world.connections.open -= 1
                if wasActive { world.connections.active -= 1 }
            case .proxyHeader(let result):
                world.kernel.note("PROXY header: \(result.rawValue)")
                world.headers.told[result, default: 0] += 1
                if let invention = world.headers.invention { world.kernel.report(invention) }
            default: return
            }
            let counts = world.connections
            if counts.open < 0 || counts.active < 0 || counts.active > counts.open {
                world.kernel.report("\(counts.active) of \(counts.open) connections are active")
            }
        }

        func upstream(_ event: UpstreamEvent, _ name: String) {}
        func secured(upstream name: String, isResumed: Bool) {}
        func flush() {}
    }
#endif
