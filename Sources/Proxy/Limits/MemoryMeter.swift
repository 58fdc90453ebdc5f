public import Configuration
internal import HTTP
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
    /// Nil when that cannot be read. Does not allocate: it is asked ten times a second.
    public static func used() -> UInt64? {
        guard let descriptor = try? Syscalls.openForReading("/proc/self/status") else { return nil }
        defer { Syscalls.close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { memory in
            let count = (try? Syscalls.read(descriptor, memory)) ?? 0
            // Safe: the kernel wrote `count` bytes, and the span ends before the memory does.
            return unsafe parse(Span(_unsafeBytes: UnsafeRawBufferPointer(memory).prefix(count)))
        }
    }

    /// The sum of RssAnon and RssShmem (proc_pid_status(5)); nil when one of them is not there.
    static func parse(_ status: Span<UInt8>) -> UInt64? {
        guard let own = kibibytes("rssanon:", status), let shared = kibibytes("rssshmem:", status)
        else { return nil }
        return (own &+ shared) &* 1024
    }

    /// The number in the line that begins with `name`, in small letters; nil when there is none.
    private static func kibibytes(_ name: StaticString, _ status: Span<UInt8>) -> UInt64? {
        var start = 0
        while start < status.count {
            var end = start
            while end < status.count, status[end] != UInt8(ascii: "\n") { end += 1 }
            let line = status.extracting(start..<end)
            if line.hasPrefix(name) { return number(line.extracting(name.utf8CodeUnitCount...)) }
            start = end + 1
        }
        return nil
    }

    /// The first number of a text, up to fifteen digits.
    private static func number(_ text: Span<UInt8>) -> UInt64? {
        var number: UInt64?
        var digits = 0
        for index in text.indices {
            let digit = text[index] &- UInt8(ascii: "0")
            if digit > 9 {
                if number == nil { continue }
                break
            }
            digits += 1
            if digits > 15 { return nil }
            number = (number ?? 0) &* 10 &+ UInt64(digit)
        }
        return number
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
