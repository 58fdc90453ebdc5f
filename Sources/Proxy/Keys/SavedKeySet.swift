internal import Reactor

/// The last good key set of a URL, kept in the state directory, so that a proxy which restarts
/// while the URL is out of reach can verify at once. Only as old as keys may be used anyway.
///
/// The file is one line that says where the keys came from and when, and behind it the key set as
/// it was received.
struct SavedKeySet: Equatable {
    private static let mark = "portcullis-key-set-1"
    private static let maximumBytes = (1 << 20) + (16 << 10)
    /// A clock that was set back a little is not a reason to forget.
    private static let futureToleranceSeconds: Int64 = 60

    /// Keys of another URL are not this project's keys, whatever the file is called.
    var source: String
    /// Wall clock, seconds since 1970.
    var fetchedAt: Int64
    /// The key set as it was received.
    var body: [UInt8]

    /// Where a project's key set is kept. A name is no path: what could be one in it is escaped.
    static func path(in directory: String, project: String) -> String {
        var name = ""
        for byte in project.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            default: name += "%" + String(byte, radix: 16)
            }
        }
        return "\(directory)/jwks-\(name).saved"
    }

    /// Reads what an earlier run kept; nil when there is nothing of use.
    static func read(_ path: String) -> SavedKeySet? {
        guard let content = try? KeyFile.read(path, maximumBytes: maximumBytes) else { return nil }
        return SavedKeySet(fileContent: content.bytes)
    }

    /// Keeps this key set.
    func write(to path: String) throws(Errno) {
        try KeyFile.replace(path, with: fileContent)
    }

    /// How long ago the keys were fetched; nil when that lies in the future, so that nobody knows.
    func age(atWallSeconds now: Int64) -> Duration? {
        let (seconds, overflow) = now.subtractingReportingOverflow(fetchedAt)
        if overflow || seconds < -Self.futureToleranceSeconds { return nil }
        return .seconds(max(0, seconds))
    }

    /// A key set that was received now or earlier.
    init(source: String, fetchedAt: Int64, body: [UInt8]) {
        self.source = source
        self.fetchedAt = fetchedAt
        self.body = body
    }

    /// Reads what `fileContent` wrote; nil for anything else.
    init?(fileContent bytes: [UInt8]) {
        guard let lineEnd = bytes.firstIndex(of: 0x0A) else { return nil }
        let line = String(decoding: bytes[..<lineEnd], as: UTF8.self)
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[0] == Self.mark, let fetchedAt = Int64(words[1]) else {
            return nil
        }
        self.init(
            source: String(words[2]), fetchedAt: fetchedAt, body: Array(bytes[(lineEnd + 1)...]))
    }

    /// What the file holds.
    var fileContent: [UInt8] {
        Array("\(Self.mark) \(fetchedAt) \(source)\n".utf8) + body
    }
}
