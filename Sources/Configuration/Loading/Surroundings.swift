internal import FoundationEssentials
internal import Glibc

/// What a configuration file may refer to outside itself: other files, and environment variables.
public struct Surroundings: Sendable {
    /// The bytes of a file, or nil when it cannot be read.
    public var file: @Sendable (_ path: String) -> [UInt8]?
    /// An environment variable's value, or nil when it is not set.
    public var environment: @Sendable (_ name: String) -> String?
    /// Type and permissions of a file (`st_mode` of stat(2)), or nil when they cannot be told.
    public var mode: @Sendable (_ path: String) -> UInt32?

    public init(
        file: @escaping @Sendable (_ path: String) -> [UInt8]?,
        environment: @escaping @Sendable (_ name: String) -> String?,
        mode: @escaping @Sendable (_ path: String) -> UInt32? = { _ in nil }
    ) {
        self.file = file
        self.environment = environment
        self.mode = mode
    }

    /// The files and the environment of this process.
    public static let process = Surroundings(
        file: { path in (try? Data(contentsOf: URL(filePath: path))).map(Array.init) },
        environment: { name in ProcessInfo.processInfo.environment[name] },
        mode: { path in
            // FileManager does not follow symbolic links, and mounted secrets are such.
            var status = stat()
            return stat(path, &status) == 0 ? status.st_mode : nil
        })

    /// No files and no environment.
    public static let empty = Surroundings(file: { _ in nil }, environment: { _ in nil })
}
