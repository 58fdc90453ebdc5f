public import Configuration
internal import Reactor

/// Measures what the process takes, and finds out what it may take.
public enum MemoryMeter {
    /// The limit that `memory_limit` means on this machine, in bytes; nil when there is none.
    public static func limit(_ setting: MemoryLimit) -> UInt64? {
        switch setting {
        case .off: nil
        case .bytes(let bytes): bytes
        case .auto: ControlGroup(read: text(of:)).memoryLimit
        }
    }

    /// Bytes that cannot be taken away from the process: its own pages and those of shared memory.
    /// Pages of files, such as the claim store's, do not count, since the kernel can write them back.
    /// Nil when that cannot be read.
    public static func used() -> UInt64? {
        text(of: "/proc/self/status").flatMap(parse)
    }

    /// The sum of RssAnon and RssShmem (proc_pid_status(5)).
    static func parse(_ status: String) -> UInt64? {
        var sum: UInt64?
        for line in status.utf8.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "))
            guard let name = words.first,
                name.starts(with: "RssAnon:".utf8) || name.starts(with: "RssShmem:".utf8)
            else { continue }
            let number = line.filter { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard let kibibytes = UInt64(String(decoding: number, as: UTF8.self)) else {
                return nil
            }
            sum = (sum ?? 0) &+ kibibytes &* 1024
        }
        return sum
    }

    /// A file of the kernel's, of which a page is enough.
    private static func text(of path: String) -> String? {
        guard let descriptor = try? Syscalls.openForReading(path) else { return nil }
        defer { Syscalls.close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: 4096) { memory, count in
            count = (try? Syscalls.read(descriptor, UnsafeMutableRawBufferPointer(memory))) ?? 0
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }
}
