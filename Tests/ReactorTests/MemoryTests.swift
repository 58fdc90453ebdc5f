import Glibc
import Reactor
import Testing

@Suite("Memory of the process")
struct MemoryTests {
    @Test("code that starting needed is given back, and comes back when it is used")
    func releases() throws {
        let before = try Self.residentFileKilobytes()
        Memory.releaseStartUp()
        #expect(try Self.residentFileKilobytes() < before)
        // Most of what runs from here on was let go of.
        #expect((1...100).map { String($0, radix: 3) }.joined().count == 384)
    }

    private static func residentFileKilobytes() throws -> Int {
        let file = try #require(fopen("/proc/self/status", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = fread(&bytes, 1, bytes.count, file)
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("RssFile:") })
        let words = line.split(whereSeparator: \.isWhitespace)
        return try #require(words.dropFirst().first.flatMap { Int($0) })
    }
}
