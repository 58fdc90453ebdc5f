/// How a command ended, as scripts see it.
enum ExitCode: Int32, Sendable {
    case done = 0
    /// The configuration or the request is wrong.
    case wrong = 1
    /// The command line is wrong.
    case usage = 2
    /// Our own fault.
    case failure = 70
}
