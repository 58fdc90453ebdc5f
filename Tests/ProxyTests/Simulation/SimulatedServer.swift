#if DEBUG
    import TestKit

    /// A server of the upstream: mostly it works, and in its bad times it does everything that a server
    /// can do wrong.
    final class SimulatedServer: SimulatedListener {
        enum Mood: CaseIterable {
            case well, flaky, slow, refusing, ignoring
        }

        let world: SimulatedWorld
        private(set) var mood = Mood.well
        private let speaksHTTP2: Bool
        private var connections: [any SimulatedPeer] = []

        init(world: SimulatedWorld, port: UInt16, speaksHTTP2: Bool) {
            self.world = world
            self.speaksHTTP2 = speaksHTTP2
            world.kernel.serve(port, by: self)
            changeMood()
        }

        private func changeMood() {
            let kernel = world.kernel
            mood =
                world.isOver || kernel.happens(oneIn: 2)
                ? .well : Mood.allCases[kernel.random(0, Mood.allCases.count - 1)]
            kernel.plan(after: Int64(kernel.random(1_000, 20_000)) * 1_000_000) { [self] in
                changeMood()
            }
        }

        func admits(_ stream: SimulatedStream) -> SimulatedAdmission {
            switch mood {
            case .refusing: return .refused
            case .ignoring: return .ignored
            default: break
            }
            let connection: any SimulatedPeer =
                speaksHTTP2
                ? HTTP2ServerConnection(stream, server: self)
                : ServerConnection(stream, server: self)
            connections.append(connection)
            stream.peer = connection
            return .accepted
        }

        func ended(_ connection: any SimulatedPeer) {
            connections.removeAll { $0 === connection }
        }
    }
#endif
