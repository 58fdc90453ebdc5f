/// `portcullis demo`: everything in one process on loopback.
struct DemoCommand {
    private let console: Console

    init(_ console: Console) {
        self.console = console
    }

    func perform() -> ExitCode {
        console.complain("portcullis: demo is not built yet")
        return .failure
    }
}
