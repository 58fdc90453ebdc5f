internal import Configuration
internal import Glibc
internal import Operations
internal import Proxy
internal import Reactor
internal import Synchronization

/// Runs a `Service` on the calling thread until it ends.
enum ServiceProcess {
    private static let logFlushTime = Duration.seconds(5)

    /// - Parameters:
    ///   - configuration: What `source` gave first.
    ///   - program: What takes over at SIGUSR2; nil when nothing can.
    ///   - keepsState: Key sets are kept for the next start.
    ///   - beforeServing: Starts what else runs in this process. Its threads leave the signals to
    ///     the service.
    ///   - whenServing: Runs once requests are accepted.
    /// - Returns: the exit code of the process.
    static func run(
        _ source: ConfigurationSource, _ configuration: Configuration, _ console: Console,
        program: Program? = nil, keepsState: Bool = true, beforeServing: () -> Void = {},
        whenServing: @escaping @Sendable () -> Void = {}
    ) -> ExitCode {
        CrashLine.install(version: Help.version, isJSON: configuration.log.format == .json)
        #if DEBUG
            do throws(FaultTextError) {
                try occupyProcess()
            } catch {
                console.complain("portcullis: cannot start: PORTCULLIS_FAULTS: \(error)")
                return .wrong
            }
        #endif
        Syscalls.ignoreWriteSignals()
        _ = Syscalls.raiseDescriptorLimit()
        let handover: Handover?
        let inherited: InheritedSockets
        do {
            handover = try Handover.find()
            inherited = try sockets(handover, configuration)
        } catch {
            console.complain("portcullis: cannot start: \(error)")
            return .wrong
        }
        do throws(Errno) {
            // Before any other thread starts: all inherit the signal mask.
            let signals = try SignalSource([SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGUSR2])
            let writer = try LogWriter(
                droppedReport: EventLogger.droppedReport(configuration.log.format))
            let loop = try EventLoop()
            guard writer.start() else { throw .noMemory }
            beforeServing()
            let service = Service(
                loop: loop, source: source, configuration: configuration,
                inherited: inherited, handover: handover, program: program, signals: signals,
                writer: writer, keepsState: keepsState)
            let code = serve(service, loop, whenServing)
            _ = writer.shutDown(timeLimit: logFlushTime)
            return code
        } catch {
            console.complain("portcullis: cannot start: \(error)")
            return .failure
        }
    }

    private static func sockets(_ handover: Handover?, _ configuration: Configuration)
        throws(InheritedSocketError) -> InheritedSockets
    {
        if let handover {
            return try InheritedSockets(handedOver: handover.sockets, for: configuration)
        }
        return try InheritedSockets(
            for: configuration, process: Syscalls.processIdentifier(),
            environment: Syscalls.environmentVariable)
    }

    #if DEBUG
        /// Lets calls into the kernel go wrong as the environment asks for
        /// (docs/decisions/0070-simulation.md).
        private static func occupyProcess() throws(FaultTextError) {
            guard let text = Syscalls.environmentVariable("PORTCULLIS_FAULTS") else { return }
            StandIn.occupyProcess(try FaultPlan(text: text))
        }
    #endif

    private static func serve(
        _ service: Service, _ loop: EventLoop, _ whenServing: @escaping @Sendable () -> Void
    ) -> ExitCode {
        let result = ResultBox()
        // Detached: a task of the main actor would wait for this thread, which runs the loop.
        Task.detached(executorPreference: loop) {
            let code = await service.run(whenServing: whenServing)
            result.code.withLock { $0 = code }
            loop.stop()
        }
        loop.run()
        return result.code.withLock { $0 }
    }

    private final class ResultBox: Sendable {
        let code = Mutex(ExitCode.failure)
    }
}
