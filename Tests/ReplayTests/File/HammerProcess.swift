internal import Glibc
internal import Reactor
internal import TestKit

/// A process that claims one key after the other (Tests/ClaimHammer).
final class HammerProcess {
    private let process: pid_t
    private let output: Int32
    private var isEnded = false

    /// Starts it.
    ///
    /// - Parameter count: How many keys it claims; 0 for no end.
    init(directory: String, entryLimit: Int, count: UInt64) throws {
        var pipes: [Int32] = [-1, -1]
        guard pipe(&pipes) == 0 else { throw Errno(rawValue: errno) }
        // A child that inherits another's pipe keeps it open after its death.
        for end in pipes { Self.closeOnExec(end) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO)
        let words = [try Self.program(), "claim", directory, "\(entryLimit)", "\(count)"]
        var arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let status = posix_spawn(&process, words[0], &actions, nil, &arguments, environ)
        Glibc.close(pipes[1])
        guard status == 0 else {
            Glibc.close(pipes[0])
            throw Errno(rawValue: status)
        }
        self.process = process
        output = pipes[0]
    }

    deinit {
        kill()
        Glibc.close(output)
    }

    /// The next number that it claimed; nil when it has ended and told all.
    func next() -> UInt64? {
        var number: UInt64 = 0
        var filled = 0
        while filled < 8 {
            let count = withUnsafeMutableBytes(of: &number) { bytes in
                // Safe: never more than what is left of the eight bytes.
                Glibc.read(output, bytes.baseAddress?.advanced(by: filled), 8 - filled)
            }
            if count <= 0 { return nil }
            filled += count
        }
        return number
    }

    /// kill -9, and waits for its end.
    func kill() {
        if isEnded { return }
        isEnded = true
        Glibc.kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
    }

    private static func closeOnExec(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// It is beside the program that runs the tests.
    private static func program() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = String(decoding: buffer.prefix(max(0, length)), as: UTF8.self)
        let folder = path.split(separator: "/").dropLast().joined(separator: "/")
        return "/\(folder)/claim-hammer"
    }
}
