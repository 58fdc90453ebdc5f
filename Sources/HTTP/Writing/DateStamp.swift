public import Reactor

/// The value of the `Date` field (RFC 9110, section 5.6.7), written once a second and copied for the
/// rest of it. One per event loop.
public struct DateStamp: Sendable {
    private var second: Int64 = .min
    private var text = InlineArray<29, UInt8>(repeating: 0x20)

    public init() {}

    /// Appends a `Date` line.
    ///
    /// - Parameter unixSeconds: Seconds since 1970 without leap seconds, within the years 1 to 9999;
    ///   outside them the nearest such moment is written.
    @inline(__always)
    public mutating func appendField(to buffer: ByteBuffer, unixSeconds: Int64) {
        if unixSeconds != second { write(unixSeconds) }
        buffer.append("Date: ")
        buffer.append(text.span)
        buffer.appendLineEnd()
    }

    private mutating func write(_ unixSeconds: Int64) {
        second = unixSeconds
        // 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z
        let clamped = min(max(unixSeconds, -62_135_596_800), 253_402_300_799)
        let (days, secondOfDay) = clamped.flooredQuotientAndRemainder(by: 86_400)
        let date = CivilDate(daysSince1970: days)
        let weekday = (days + 4).flooredQuotientAndRemainder(by: 7).remainder
        put("SunMonTueWedThuFriSat", at: 0, from: weekday * 3)
        text[3] = 0x2C
        putNumber(date.day, digits: 2, at: 5)
        put("JanFebMarAprMayJunJulAugSepOctNovDec", at: 8, from: (date.month - 1) * 3)
        putNumber(date.year, digits: 4, at: 12)
        putNumber(secondOfDay / 3600, digits: 2, at: 17)
        text[19] = 0x3A
        putNumber(secondOfDay / 60 % 60, digits: 2, at: 20)
        text[22] = 0x3A
        putNumber(secondOfDay % 60, digits: 2, at: 23)
        put("GMT", at: 26, from: 0)
    }

    private mutating func put(_ names: StaticString, at index: Int, from start: Int64) {
        names.withUTF8Buffer { characters in
            for offset in 0..<3 { text[index + offset] = characters[Int(start) + offset] }
        }
    }

    private mutating func putNumber(_ value: Int64, digits: Int, at index: Int) {
        var rest = value
        for offset in (0..<digits).reversed() {
            text[index + offset] = UInt8(truncatingIfNeeded: rest % 10) + 0x30
            rest /= 10
        }
    }
}

/// A day of the Gregorian calendar.
private struct CivilDate {
    var year: Int64
    var month: Int64
    var day: Int64

    /// Counts from 1 March of the year 0, so that the leap day is the last of its year and every month
    /// starts at (153 * month + 2) / 5.
    init(daysSince1970 days: Int64) {
        let (era, dayOfEra) = (days + 719_468).flooredQuotientAndRemainder(by: 146_097)
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }
}

extension Int64 {
    fileprivate func flooredQuotientAndRemainder(
        by divisor: Int64
    ) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
