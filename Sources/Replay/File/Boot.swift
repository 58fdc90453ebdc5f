internal import Reactor

/// Which run of the machine this is. Claims on disk are worth something within it only: without
/// fsync, what a crash of the machine leaves of them is anybody's guess.
public struct Boot: Sendable {
    /// The kernel's name for the run: 1 to 64 of the characters a-z, 0-9 and "-".
    public let id: String
    /// How long the machine has slept since, in nanoseconds: the monotonic clock stops then.
    private let slept: @Sendable () -> Int64

    /// A run of the machine.
    ///
    /// - Parameter slept: Nanoseconds that the monotonic clock did not count.
    public init(id: String, slept: @escaping @Sendable () -> Int64 = { 0 }) {
        self.id = id
        self.slept = slept
    }

    /// The present one (random(4): /proc/sys/kernel/random/boot_id).
    public static func current() throws(StoreOpenError) -> Boot {
        let path = "/proc/sys/kernel/random/boot_id"
        guard let id = readLine(of: path), isName(id) else {
            throw StoreOpenError(
                "cannot read the machine's boot id from \(path)",
                hint: "the store \"file\" needs it to know whether its claims are of this boot; "
                    + "make /proc available, or set [replay] store = \"memory\" or \"redis\"")
        }
        return Boot(id: id, slept: Syscalls.sleptNanoseconds)
    }

    /// Whether a text may be an id, and with that a part of a file's name.
    static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// Seconds since the machine booted, its sleep included.
    func uptime(at now: ClaimInstant) -> Int64 {
        (now.monotonic.nanoseconds &+ slept()) / 1_000_000_000
    }

    /// The second in which the machine booted, as the clock of `now` would have shown it.
    func second(asOf now: ClaimInstant) -> Int64 {
        now.wallSeconds &- uptime(at: now)
    }

    private static func readLine(of path: String) -> String? {
        guard let descriptor = try? Syscalls.openForReading(path) else { return nil }
        defer { Syscalls.close(descriptor) }
        let bytes = try? [UInt8](unsafeUninitializedCapacity: 128) { buffer, count in
            // Safe: the kernel writes at most as many bytes as the buffer has.
            count = try Syscalls.read(descriptor, UnsafeMutableRawBufferPointer(buffer))
        }
        guard let bytes else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}
