internal import FoundationEssentials

/// What a configuration file may refer to outside itself: other files, and environment variables.
public struct Surroundings: Sendable {
    /// The bytes of a file, or nil when it cannot be read.
    public var file: @Sendable (_ path: String) -> [UInt8]?
    /// An environment variable's value, or nil when it is not set.
    public var environment: @Sendable (_ name: String) -> String?

    public init(
        file: @escaping @Sendable (_ path: String) -> [UInt8]?,
        environment: @escaping @Sendable (_ name: String) -> String?
    ) {
        self.file = file
        self.environment = environment
    }

    /// The files and the environment of this process.
    public static let process = Surroundings(
        file: { path in (try? Data(contentsOf: URL(filePath: path))).map(Array.init) },
        environment: { name in ProcessInfo.processInfo.environment[name] })

    /// No files and no environment.
    public static let empty = Surroundings(file: { _ in nil }, environment: { _ in nil })
}
