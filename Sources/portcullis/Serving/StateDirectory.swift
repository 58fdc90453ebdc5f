internal import Configuration
internal import Proxy
internal import Reactor

/// The folder that outlives the process.
enum StateDirectory {
    /// The folder, made if need be; nil, and a warning, when nothing can be written there.
    static func usable(_ path: String, _ log: any EventLog) -> String? {
        // Making what is there already fails, and so does what is checked next.
        try? Syscalls.makeDirectory(path, mode: 0o700)
        if Syscalls.isWritable(path) { return path }
        log.log(
            .warning,
            "the state directory cannot be written; key sets are not kept for the next start",
            [
                ("state_directory", path),
                ("hint", "create it for this user, or set [server] state_directory"),
            ])
        return nil
    }
}
