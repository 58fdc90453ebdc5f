import Testing

@testable import Operations

@Suite("Timestamps")
struct TimestampTests {
    @Test(
        "are RFC 3339 UTC with milliseconds",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_000_999, "1970-01-01T00:00:01.000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_500_000, "2024-02-29T23:59:59.500Z"),
            (1_798_761_600_123_456, "2027-01-01T00:00:00.123Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000Z"),
            (Int64.max, "9999-12-31T23:59:59.999Z"),
            (Int64.min, "1970-01-01T00:00:00.000Z"),
        ] as [(Int64, String)])
    func text(_ microseconds: Int64, _ expected: String) {
        var timestamp = Timestamp()
        let text = render { timestamp.append(microseconds, to: &$0) }
        #expect(text == expected)
    }

    @Test("forget the second that they kept when the next one comes")
    func cache() {
        var timestamp = Timestamp()
        let times: [Int64] = [59_999_999, 60_000_000, 59_000_000, 60_001_000]
        let seconds = times.map { time in render { timestamp.append(time, to: &$0) } }
        #expect(
            seconds == [
                "1970-01-01T00:00:59.999Z", "1970-01-01T00:01:00.000Z",
                "1970-01-01T00:00:59.000Z", "1970-01-01T00:01:00.001Z",
            ])
    }
}
