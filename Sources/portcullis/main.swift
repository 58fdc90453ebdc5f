internal import Glibc

let exitCode = Invocation.perform(Array(CommandLine.arguments.dropFirst()), console: .process)
exit(exitCode.rawValue)
