internal import Configuration
internal import Reactor

/// Where a command reads and writes, so that tests can look on.
struct Console {
    /// Writes a line to the standard output.
    var print: (String) -> Void
    /// Writes a line to the standard error.
    var complain: (String) -> Void
    /// Reads the standard input to its end; nil when it cannot be read or has more than 64 KiB.
    var readInput: () -> String?
    /// The files and the environment that configurations may refer to.
    var surroundings: Surroundings
    /// Seconds since 1970.
    var now: () -> Int64
    /// Key sets, fetched where they are behind a URL.
    var fetchedKeySets: any KeySetSource
    /// Where it is looked up whether a token was used.
    var claims: any ClaimInspector
    /// The standard output is a terminal that shows colours.
    var isColoured = false

    /// The descriptors 0, 1 and 2 of this process.
    static var process: Console {
        Console(
            print: { write($0 + "\n", to: 1) },
            complain: { write($0 + "\n", to: 2) },
            readInput: { readAll(0) },
            surroundings: .process,
            now: { Syscalls.wallMicroseconds() / 1_000_000 },
            fetchedKeySets: FetchedKeySets(),
            claims: StoreInspector(),
            isColoured: Syscalls.isTerminal(1) && Syscalls.environmentVariable("NO_COLOR") == nil
                && Syscalls.environmentVariable("TERM") != "dumb")
    }

    /// Writes what can be written: nobody is left to tell that a terminal is gone.
    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            do throws(Errno) {
                let rest = bytes.span.extracting(written...)
                let count = try rest.withUnsafeBytes { bytes throws(Errno) in
                    try Syscalls.write(descriptor, bytes)
                }
                if count == 0 { return }
                written += count
            } catch {
                if error != .wouldBlock { return }
                Syscalls.waitWritable(descriptor, milliseconds: 1000)
            }
        }
    }

    private static func readAll(_ descriptor: Int32) -> String? {
        let most = 64 << 10
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while text.count <= most {
            let count = buffer.withUnsafeMutableBytes { bytes in
                try? Syscalls.read(descriptor, bytes)
            }
            guard let count else { return nil }
            if count == 0 { return String(decoding: text, as: UTF8.self) }
            text += buffer.prefix(count)
        }
        return nil
    }
}
