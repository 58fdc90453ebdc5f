internal import HTTP

/// Writes times as RFC 3339 UTC with milliseconds, "2026-11-30T06:13:47.123Z".
///
/// A busy loop writes many lines in one second: everything up to the second is kept between them.
struct Timestamp {
    private var second = Int64.min
    private var text = InlineArray<19, UInt8>(repeating: UInt8(ascii: "0"))

    /// Appends the time `microseconds` after 1970-01-01T00:00:00Z; times outside the years 1970 to
    /// 9999 become the nearest one that has four digits.
    mutating func append(_ microseconds: Int64, to line: inout LineWriter) {
        let clamped = min(max(microseconds, 0), 253_402_300_799_999_999)
        let (wanted, rest) = clamped.quotientAndRemainder(dividingBy: 1_000_000)
        if wanted != second { render(second: wanted) }
        line.append(verbatim: text.span)
        line.append(byte: UInt8(ascii: "."))
        line.append(decimal: rest / 1000, digits: 3)
        line.append(byte: UInt8(ascii: "Z"))
    }

    private mutating func render(second: Int64) {
        self.second = second
        let (days, time) = second.quotientAndRemainder(dividingBy: 86_400)
        let (year, month, day) = HTTPDate.date(daysSince1970: days)
        put(year, at: 0, digits: 4)
        text[4] = UInt8(ascii: "-")
        put(month, at: 5, digits: 2)
        text[7] = UInt8(ascii: "-")
        put(day, at: 8, digits: 2)
        text[10] = UInt8(ascii: "T")
        put(time / 3600, at: 11, digits: 2)
        text[13] = UInt8(ascii: ":")
        put(time / 60 % 60, at: 14, digits: 2)
        text[16] = UInt8(ascii: ":")
        put(time % 60, at: 17, digits: 2)
    }

    private mutating func put(_ value: Int64, at index: Int, digits: Int) {
        var rest = value
        for position in stride(from: index + digits - 1, through: index, by: -1) {
            text[position] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
    }
}
