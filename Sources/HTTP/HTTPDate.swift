/// A time as HTTP writes it (IMF-fixdate, RFC 9110, section 5.6.7): "Sun, 06 Nov 1994 08:49:37
/// GMT".
///
/// It makes a string: keep that for a second where answers are many.
public struct HTTPDate: Sendable, CustomStringConvertible {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Seconds since 1970-01-01T00:00:00Z, in the years 1970 to 9999.
    public let seconds: Int64

    /// Makes the date; what lies outside the years that four digits can tell becomes the nearest
    /// one.
    public init(seconds: Int64) {
        self.seconds = min(max(seconds, 0), 253_402_300_799)
    }

    public var description: String {
        let (day, time) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let date = Self.date(daysSince1970: day)
        // 1970 began on a Thursday.
        let weekday = Self.days[Int(day % 7)]
        let month = Self.months[Int(date.month - 1)]
        return "\(weekday), \(Self.padded(date.day)) \(month) \(Self.padded(date.year, 4)) "
            + "\(Self.padded(time / 3600)):\(Self.padded(time / 60 % 60)):\(Self.padded(time % 60)) GMT"
    }

    /// The Gregorian date of a day that is not before 1970, counted in years that start on March 1:
    /// a leap day is then a year's last day, and the months before it have lengths that one linear
    /// formula gives.
    public static func date(
        daysSince1970 days: Int64
    ) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let (era, dayOfEra) = shifted.quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }

    private static func padded(_ value: Int64, _ digits: Int = 2) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
