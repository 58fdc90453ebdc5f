/// Shares of clients: "2%", "0.5%", or a number.
enum ShareText {
    /// One percent, in the millionths of a percent that `Route.enforcedShare` counts.
    static let onePercent: UInt32 = 1_000_000
    static let everybody: UInt32 = 100 * onePercent

    /// Reads "25%" or "0.5%" exactly; nil for anything else, also for more than six decimals.
    static func parse(_ text: String) -> UInt32? {
        guard text.hasSuffix("%") else { return nil }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let whole = parts.first, (1...3).contains(whole.utf8.count),
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isDigit) })
        else { return nil }
        let decimals = parts.count == 2 ? parts[1] : ""
        guard decimals.utf8.count <= 6 else { return nil }
        let padded = decimals + String(repeating: "0", count: 6 - decimals.utf8.count)
        guard let percent = UInt32(whole), let millionths = UInt32(padded) else { return nil }
        let share = percent * onePercent + millionths
        return share <= everybody ? share : nil
    }

    /// Reads a number of percent; nil when it is no share or has more than six decimals.
    static func parse(_ percent: Double) -> UInt32? {
        guard percent >= 0, percent <= 100 else { return nil }
        let share = (percent * Double(onePercent)).rounded()
        let isExact = abs(percent * Double(onePercent) - share) < 0.001
        return isExact ? UInt32(share) : nil
    }

    /// The share as people write it: "25%", "0.5%".
    static func format(_ share: UInt32) -> String {
        let (whole, millionths) = share.quotientAndRemainder(dividingBy: onePercent)
        if millionths == 0 { return "\(whole)%" }
        var decimals = String(millionths)
        decimals = String(repeating: "0", count: 6 - decimals.utf8.count) + decimals
        while decimals.hasSuffix("0") { decimals.removeLast() }
        return "\(whole).\(decimals)%"
    }
}
