/// Durations as the configuration spells them: a whole number and a unit.
enum DurationText {
    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Reads "250ms", "30s", "10m", "24h", "7d"; nil for anything else, also for more than nine
    /// digits.
    static func parse(_ text: String) -> Duration? {
        guard let (number, suffix) = numberAndUnit(text),
            let unit = units.first(where: { $0.suffix == suffix })
        else { return nil }
        return .milliseconds(Int64(number) * unit.milliseconds)
    }

    /// The shortest spelling that `parse` reads back as the same duration. Whole milliseconds only.
    static func format(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        if milliseconds == 0 { return "0s" }
        for unit in units.reversed() where milliseconds % unit.milliseconds == 0 {
            return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
        }
        return "\(milliseconds)ms"
    }
}

/// A duration as the configuration spells it, such as "29m".
public func spelling(of duration: Duration) -> String { DurationText.format(duration) }

/// Splits "64KiB" into 64 and "KiB". At most nine digits, so that no unit makes the number
/// overflow.
func numberAndUnit(_ text: String) -> (number: UInt32, unit: Substring)? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    guard (1...9).contains(digits.utf8.count), let number = UInt32(digits) else { return nil }
    return (number, text[digits.endIndex...])
}
