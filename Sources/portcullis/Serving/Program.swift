internal import Reactor

/// The program file of this process and how it was started, so that it can be started again after
/// somebody has replaced the file.
struct Program: Sendable, Equatable {
    /// Where the file is looked for.
    let path: String
    /// The program's name and its arguments, as they were given.
    let arguments: [String]

    /// This process's. Ask at the start: later the file may be another one.
    static func current(_ arguments: [String]) -> Program? {
        let file = "/proc/self/exe"
        guard let running = try? Syscalls.status(at: file) else { return nil }
        // The name that it was started by: behind it may be a symbolic link that an upgrade sets
        // anew. Anybody can make up a name, so it has to lead to the file that runs.
        for path in candidates(arguments.first ?? "") {
            if let found = try? Syscalls.status(at: path), found.device == running.device,
                found.inode == running.inode
            {
                return Program(path: path, arguments: arguments)
            }
        }
        guard let target = Syscalls.target(ofLink: file) else { return nil }
        return Program(path: withoutDeleted(target), arguments: arguments)
    }

    /// The kernel's note behind a file that was removed or replaced.
    static func withoutDeleted(_ path: String) -> String {
        let note = " (deleted)"
        return path.hasSuffix(note) ? String(path.dropLast(note.count)) : path
    }

    private static func candidates(_ name: String) -> [String] {
        if name.isEmpty { return [] }
        if name.hasPrefix("/") { return [name] }
        if name.contains("/") {
            // The process may be moved to another folder; the file is not.
            return Syscalls.target(ofLink: "/proc/self/cwd").map { ["\($0)/\(name)"] } ?? []
        }
        return (Syscalls.environmentVariable("PATH") ?? "").split(separator: ":")
            .filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }
    }
}
