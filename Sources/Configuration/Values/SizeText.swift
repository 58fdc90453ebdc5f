/// Sizes as the configuration spells them: a whole number and a binary unit.
enum SizeText {
    private static let units: [(suffix: String, bytes: UInt64)] = [
        ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
    ]

    /// Reads "512B", "64KiB", "1MiB"; nil for anything else, also for more than nine digits.
    static func parse(_ text: String) -> UInt64? {
        guard let (number, suffix) = numberAndUnit(text),
            let unit = units.first(where: { $0.suffix == suffix })
        else { return nil }
        return UInt64(number) * unit.bytes
    }

    /// The shortest spelling that `parse` reads back as the same size.
    static func format(_ bytes: UInt64) -> String {
        if bytes == 0 { return "0B" }
        for unit in units.reversed() where bytes % unit.bytes == 0 {
            return "\(bytes / unit.bytes)\(unit.suffix)"
        }
        return "\(bytes)B"
    }

    /// What "64KB", "64k" or "64 kib" was meant to be; nil where there is no telling.
    static func binarySpelling(of text: String) -> String? {
        let compact = text.filter { $0 != " " }
        guard let (number, unit) = numberAndUnit(compact) else { return nil }
        switch unit.lowercased() {
        case "", "b", "byte", "bytes": return "\(number)B"
        case "k", "kb", "kib": return "\(number)KiB"
        case "m", "mb", "mib": return "\(number)MiB"
        case "g", "gb", "gib": return "\(number)GiB"
        default: return nil
        }
    }
}
