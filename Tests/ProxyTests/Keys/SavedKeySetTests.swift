import TestKit
import Testing

@testable import Proxy

@Suite("Saved key set")
struct SavedKeySetTests {
    private let saved = SavedKeySet(
        source: "https://keys.example.com/jwks?a=b", fetchedAt: 1_800_000_000,
        body: Array("{\"keys\":[]}\n\nmore".utf8))

    @Test("is read as it was written, and leaves nothing else behind")
    func roundTrip() throws {
        let folder = try TemporaryFolder()
        let path = SavedKeySet.path(in: folder.path, project: "production")
        try saved.write(to: path)
        try saved.write(to: path)
        #expect(SavedKeySet.read(path) == saved)
        #expect(try folder.names() == ["jwks-production.saved"])
    }

    @Test(
        "anything else is no saved key set",
        arguments: [
            "", "\n", "{\"keys\":[]}", "portcullis-key-set-1 x https://h/\n{}",
            "portcullis-key-set-2 1800000000 https://h/\n{}", "portcullis-key-set-1 1800000000\n{}",
            "portcullis-key-set-1 1800000000 https://h/ more\n{}",
            "portcullis-key-set-1 99999999999999999999 https://h/\n{}",
        ])
    func damaged(content: String) throws {
        let folder = try TemporaryFolder()
        #expect(SavedKeySet.read(try folder.write(content, to: "x")) == nil)
        #expect(SavedKeySet.read(folder.path(of: "missing")) == nil)
    }

    @Test(
        "knows its age, but not when the clock was set back",
        arguments: [
            (1_800_000_000, 0), (1_800_000_100, 100), (1_799_999_950, 0), (1_799_999_000, nil),
            (Int64.min, nil),
        ] as [(Int64, Int64?)])
    func age(now: Int64, seconds: Int64?) {
        #expect(saved.age(atWallSeconds: now) == seconds.map { .seconds($0) })
    }

    @Test(
        "T4: a project's name is no path",
        arguments: [
            ("production", "jwks-production.saved"),
            ("../../etc/x", "jwks-%2e%2e%2f%2e%2e%2fetc%2fx.saved"),
            ("a b\n", "jwks-a%20b%a.saved"),
        ])
    func path(project: String, file: String) {
        #expect(
            SavedKeySet.path(in: "/var/lib/portcullis", project: project)
                == "/var/lib/portcullis/\(file)")
    }
}

@Suite("Key file")
struct KeyFileTests {
    @Test("is read once for each version of it")
    func versions() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("one", to: "keys.json")
        let first = try #require(try KeyFile.read(path, maximumBytes: 10))
        #expect(first.bytes == Array("one".utf8))
        #expect(try KeyFile.read(path, unless: first.version, maximumBytes: 10) == nil)
        try folder.write("other", to: "keys.json")
        let second = try #require(
            try KeyFile.read(path, unless: first.version, maximumBytes: 10))
        #expect(second.bytes == Array("other".utf8))
        // Another file under the same name, as an atomic replacement makes it.
        try KeyFile.replace(path, with: Array("third".utf8))
        let third = try #require(
            try KeyFile.read(path, unless: second.version, maximumBytes: 10))
        #expect(third.bytes == Array("third".utf8))
    }

    @Test("says why it cannot be read")
    func failures() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("12345678901", to: "large")
        let reason = { (path: String) -> String? in
            do throws(KeyFile.Failure) {
                _ = try KeyFile.read(path, maximumBytes: 10)
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(reason(path) == "it is larger than 10 bytes")
        #expect(reason(folder.path(of: "none")) == "No such file or directory")
        #expect(reason(folder.path) == "it is no regular file")
        #expect(reason("/dev/zero") == "it is no regular file")
        #expect(
            try KeyFile.read(folder.write("1234567890", to: "full"), maximumBytes: 10)?.bytes.count
                == 10)
    }
}
