/// `portcullis run`: serve until a signal ends it.
struct RunCommand {
    private let configuration: String
    private let console: Console

    init(_ configuration: String, _ console: Console) {
        self.configuration = configuration
        self.console = console
    }

    /// Serves until it is stopped.
    func perform() -> ExitCode {
        guard let loaded = LoadedConfiguration(configuration, console) else { return .wrong }
        return ServiceProcess.run(
            .file(configuration), loaded.value, console,
            program: Program.current(CommandLine.arguments))
    }
}
