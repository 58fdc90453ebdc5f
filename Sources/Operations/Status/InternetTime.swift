internal import HTTP

/// Times as RFC 3339 writes them, "2026-11-30T06:13:47Z".
enum InternetTime {
    /// - Parameter seconds: Since 1970; the years 1970 to 9999.
    static func text(_ seconds: Int64) -> String {
        let (days, time) = min(max(seconds, 0), 253_402_300_799)
            .quotientAndRemainder(dividingBy: 86_400)
        let date = HTTPDate.date(daysSince1970: days)
        let day = [padded(date.year, 4), padded(date.month), padded(date.day)]
        let clock = [time / 3600, time / 60 % 60, time % 60].map { padded($0) }
        return "\(day.joined(separator: "-"))T\(clock.joined(separator: ":"))Z"
    }

    private static func padded(_ value: Int64, _ digits: Int = 2) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
