internal import Configuration
internal import FoundationEssentials
internal import HTTP
internal import Operations

/// `portcullis status`: what is going on in a running proxy.
struct StatusCommand: Equatable {
    static let json = Option(names: ["--json"], takesValue: false)

    private let target: AdminTarget
    private let isJSON: Bool

    /// Reads the options.
    init(_ options: ParsedOptions) throws(UsageError) {
        try options.noOperands()
        target = try AdminTarget(options)
        isJSON = options.has(Self.json)
    }

    /// Asks, and prints the answer.
    func perform(_ console: Console) -> ExitCode {
        do throws(AdminClientError) {
            let address = try target.resolve(console).listen
            let answer = try AdminClient(address: address).ask(.get, "/status")
            guard answer.status == 200, answer.contentType.hasPrefix("application/json") else {
                let detail = answer.problem.map { ": \($0)" } ?? ""
                throw AdminClientError(
                    "\(address) answered \(answer.status) to /status\(detail)\nis that the admin "
                        + "listener of this version of Portcullis?")
            }
            if isJSON {
                let text = String(decoding: answer.body, as: UTF8.self)
                console.print(text.hasSuffix("\n") ? String(text.dropLast()) : text)
                return .done
            }
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            guard let report = try? decoder.decode(StatusReport.self, from: Data(answer.body))
            else {
                throw AdminClientError(
                    "\(address) answers in a way that version \(Help.version) does not understand; "
                        + "use the program that runs there, or --json")
            }
            for line in StatusView(report, isColoured: console.isColoured).lines {
                console.print(line)
            }
            return .done
        } catch {
            console.complain("portcullis: \(error.message)")
            return .wrong
        }
    }
}
