internal import FoundationEssentials

/// A folder that is gone when the test is.
public final class TemporaryFolder: Sendable {
    public let path: String

    public init() throws {
        path = "/tmp/portcullis-test-\(UInt64.random(in: 0...UInt64.max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of a file in it.
    public func path(of name: String) -> String {
        "\(path)/\(name)"
    }

    /// Writes a file, over an older one of that name, as editors do: in place.
    ///
    /// - Returns: its path.
    @discardableResult
    public func write(_ text: String, to name: String) throws -> String {
        let path = path(of: name)
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }

    /// The bytes of a file in it.
    public func read(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path(of: name))))
    }

    /// The names of the files in it, sorted.
    public func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }
}
