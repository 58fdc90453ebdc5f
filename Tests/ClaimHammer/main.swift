internal import Glibc
internal import Reactor
internal import Replay

// A process for the tests of the file store, which kill it, and for measuring the store.
//
// claim-hammer claim FOLDER LIMIT COUNT    claims the keys 0 ..< COUNT, 0 for no end, and writes the
//                                          number of each that it was given, 8 bytes, to its output
// claim-hammer measure FOLDER COUNT        fills the folder with COUNT claims, then times more
// claim-hammer churn FOLDER LIMIT          claims and purges for hours of a clock of its own

func fail(_ text: String) -> Never {
    let line = Array("claim-hammer: \(text)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
    exit(1)
}

func instant() -> ClaimInstant {
    ClaimInstant(wallMicroseconds: Syscalls.wallMicroseconds(), monotonic: .now)
}

let arguments = CommandLine.arguments
do {
    switch (arguments.dropFirst().first, arguments.count) {
    case ("claim", 5):
        guard let limit = Int(arguments[3]), let count = UInt64(arguments[4]) else {
            fail("numbers, please")
        }
        try hammer(folder: arguments[2], limit: limit, count: count == 0 ? .max : count)
    case ("measure", 4):
        guard let count = Int(arguments[3]) else { fail("a number, please") }
        try measure(folder: arguments[2], count: count)
    case ("churn", 4):
        guard let limit = Int(arguments[3]) else { fail("a number, please") }
        try churn(folder: arguments[2], limit: limit)
    default: fail("claim FOLDER LIMIT COUNT, measure FOLDER COUNT, or churn FOLDER LIMIT")
    }
} catch {
    fail("\(error)")
}
