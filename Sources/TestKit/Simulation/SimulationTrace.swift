/// Everything that happened in a simulation as one number, and the last of it as text: two runs of one
/// seed must agree in both.
public struct SimulationTrace {
    private enum Entry {
        case call(time: Int64, name: StaticString, subject: Int, value: Int)
        case text(time: Int64, String)
        case bytes(UInt64)
    }

    private static let tailEntries = 400

    /// Keeps all of it, not only what happened last: to find where two runs part.
    private let keepsAll: Bool
    /// Depends on every entry and every byte so far.
    public private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    /// How many entries there were.
    public private(set) var count = 0
    private var kept: [Entry] = []
    private var oldest = 0

    init(keepsAll: Bool = false) {
        self.keepsAll = keepsAll
    }

    /// Notes a call or an event of the network.
    mutating func note(_ time: Int64, _ name: StaticString, _ subject: Int, _ value: Int) {
        mix(UInt64(bitPattern: time))
        mix(UInt64(name.utf8CodeUnitCount) << 32 | UInt64(name.utf8Start.pointee))
        mix(UInt64(bitPattern: Int64(subject)))
        mix(UInt64(bitPattern: Int64(value)))
        keep(.call(time: time, name: name, subject: subject, value: value))
    }

    /// Notes something in words.
    mutating func note(_ time: Int64, _ text: String) {
        mix(UInt64(bitPattern: time))
        for byte in text.utf8 { mix(UInt64(byte)) }
        keep(.text(time: time, text))
    }

    /// Notes bytes that were moved.
    mutating func note(_ bytes: UnsafeRawBufferPointer) {
        let before = hash
        defer { if keepsAll && !bytes.isEmpty { kept.append(.bytes(hash ^ before)) } }
        var index = 0
        while index + 8 <= bytes.count {
            mix(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        while index < bytes.count {
            mix(UInt64(bytes[index]))
            index += 1
        }
    }

    /// What was kept, in its order: seconds since the beginning, and what happened.
    public var lines: [String] {
        (kept[oldest...] + kept[..<oldest]).map(Self.line)
    }

    /// The last of it, one a line.
    public var tail: String {
        lines.suffix(Self.tailEntries).joined(separator: "\n")
    }

    private static func line(_ entry: Entry) -> String {
        switch entry {
        case .call(let time, let name, let subject, let value):
            "\(seconds(time))  \(name) \(subject) -> \(value)"
        case .text(let time, let text): "\(seconds(time))  \(text)"
        case .bytes(let sum): "    bytes \(String(sum, radix: 16))"
        }
    }

    private static func seconds(_ time: Int64) -> String {
        let digits = String(time % 1_000_000_000 / 1000)
        return "\(time / 1_000_000_000)." + String(repeating: "0", count: 6 - digits.count) + digits
    }

    private mutating func keep(_ entry: Entry) {
        count += 1
        if keepsAll || kept.count < Self.tailEntries {
            kept.append(entry)
            return
        }
        kept[oldest] = entry
        oldest = (oldest + 1) % Self.tailEntries
    }

    /// FNV-1a, word by word.
    private mutating func mix(_ word: UInt64) {
        hash = (hash ^ word) &* 0x0000_0100_0000_01B3
        hash ^= hash >> 29
    }
}
