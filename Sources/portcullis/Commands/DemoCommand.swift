internal import Attestation
internal import Configuration
internal import Proxy
internal import Reactor

/// `portcullis demo`: a backend, an issuer of tokens and the proxy in one process, on loopback,
/// with nothing to install and nobody to ask.
struct DemoCommand {
    private let console: Console

    init(_ console: Console) {
        self.console = console
    }

    /// Serves until it is stopped.
    func perform() -> ExitCode {
        // Before any thread starts, as the service does later: a reader that goes away must not end
        // the process.
        Syscalls.ignoreWriteSignals()
        do {
            let backend = try Self.listen(preferring: 9000)
            let issuerListening = try Self.listen(preferring: 9300)
            let issuer = try DemoIssuer(at: issuerListening.address)
            let places = DemoPlaces(
                proxy: try Self.listen(preferring: 8080).address,
                admin: try Self.listen(preferring: 9090).address,
                backend: backend.address, issuer: issuerListening.address)
            let text = DemoConfiguration.text(places, issuer: issuer.issuer)
            let (loaded, mistakes) = Configuration.load(
                text: text, fileName: "demo.conf", surroundings: .empty)
            guard let configuration = loaded else {
                for mistake in mistakes { console.complain(mistake.description) }
                return .failure
            }
            let tour = DemoTour.text(places)
            let source = ConfigurationSource(name: "demo") { (configuration, []) }
            return ServiceProcess.run(
                source, configuration, console, keepsState: false,
                beforeServing: {
                    Self.start(backend, handler: DemoBackend.answer)
                    Self.start(issuerListening, handler: issuer.answer)
                },
                whenServing: { Console.process.print(tour) })
        } catch {
            console.complain("portcullis: the demo cannot start: \(error)")
            return .failure
        }
    }

    /// A loopback descriptor on a well-known port, or on any when that is taken.
    private static func listen(preferring port: UInt16) throws -> ListeningDescriptor {
        let preferred = try? ListeningDescriptor.open(.tcp(host: "127.0.0.1", port: port))
        return try preferred ?? ListeningDescriptor.open(.tcp(host: "127.0.0.1", port: 0))
    }

    private static func start(
        _ listening: ListeningDescriptor,
        handler: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        guard let loop = try? EventLoop() else { return }
        Thread.start(named: "demo") { loop.run() }
        let server = LoopbackServer(listening, loop: loop, handler: handler)
        Task.detached { try await server.run() }
    }
}
