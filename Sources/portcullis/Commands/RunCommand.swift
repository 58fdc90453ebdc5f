/// `portcullis run`: serve.
struct RunCommand {
    private let configuration: String
    private let console: Console

    init(_ configuration: String, _ console: Console) {
        self.configuration = configuration
        self.console = console
    }

    func perform() -> ExitCode {
        guard LoadedConfiguration(configuration, console) != nil else { return .wrong }
        console.complain("portcullis: run is not built yet")
        return .failure
    }
}
