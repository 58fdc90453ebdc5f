internal import CPlatform
internal import Glibc

/// How a process ended.
public enum ProcessEnd: Sendable, Equatable, CustomStringConvertible {
    /// With an exit code.
    case exited(Int32)
    /// By a signal.
    case killed(Int32)

    public var description: String {
        switch self {
        case .exited(let code): "exited \(code)"
        case .killed(let signal): "was killed by signal \(signal)"
        }
    }
}

/// Starting, ending and naming processes.
extension Syscalls {
    /// posix_spawn(3): starts a program without ever copying this process, whose threads a copy
    /// would not have. The child inherits the standard descriptors, `kept`, and the signal mask.
    ///
    /// - Parameters:
    ///   - path: The program.
    ///   - arguments: With the name that the program sees as its own in front.
    ///   - environment: "NAME=value", each.
    ///   - kept: Descriptors that stay open, under their numbers.
    /// - Returns: the number of the process. It has to be reaped.
    /// - Throws: also what execve(2) says about the program.
    public static func spawn(
        _ path: String, arguments: [String], environment: [String], keeping kept: [Int32]
    ) throws(Errno) -> Int32 {
        if case .failure(let error)? = answer(.spawn(path)) { throw error }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor in kept {
            // Onto itself: glibc then takes close-on-exec away, in the child alone.
            posix_spawn_file_actions_adddup2(&actions, descriptor, descriptor)
        }
        let argumentTexts = CTexts(arguments)
        let environmentTexts = CTexts(environment)
        var process = pid_t()
        let status = posix_spawn(
            &process, path, &actions, nil, argumentTexts.pointers, environmentTexts.pointers)
        if status != 0 { throw Errno(rawValue: status) }
        return process
    }

    /// waitpid(2) without waiting: how a child ended; nil while it runs.
    ///
    /// - Throws: ECHILD for what is no child, or was reaped already.
    public static func reap(_ process: Int32) throws(Errno) -> ProcessEnd? {
        var status: Int32 = 0
        let reaped = try checked(.reap) { waitpid(process, &status, WNOHANG) }
        if reaped != process { return nil }
        let signal = status & 0x7F
        return signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal)
    }

    /// kill(2). A process that is gone is no error.
    public static func kill(_ process: Int32, _ signal: Int32) {
        _ = Glibc.kill(process, signal)
    }

    /// getppid(2).
    public static func parentProcessIdentifier() -> Int32 {
        getppid()
    }

    /// environ(7): "NAME=value", each.
    public static func environment() -> [String] {
        var texts: [String] = []
        guard var next = CPlatform_environment() else { return [] }
        // Safe: the array ends with a null pointer.
        while let text = next.pointee {
            texts.append(String(cString: text))
            next += 1
        }
        return texts
    }

    /// readlink(2); nil for what is no link.
    public static func target(ofLink path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { room in
            guard let start = room.baseAddress else { return nil }
            let count = readlink(path, start, room.count)
            if count <= 0 { return nil }
            return String(decoding: room.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
    }

    /// socketpair(2): both ends of a local stream, non-blocking and close-on-exec.
    static func makeSocketPair() throws(Errno) -> (Int32, Int32) {
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        var ends: [Int32] = [-1, -1]
        _ = try checked(.socketPair) { socketpair(AF_UNIX, Int32(kind), 0, &ends) }
        return (ends[0], ends[1])
    }

    /// A null-terminated array of C strings, for execve(2).
    private final class CTexts {
        let pointers: [UnsafeMutablePointer<CChar>?]

        init(_ texts: [String]) {
            pointers = texts.map { strdup($0) } + [nil]
        }

        deinit {
            // Safe: strdup's memory, freed once, here.
            for pointer in pointers { free(pointer) }
        }
    }
}
