import Testing

@testable import Configuration

@Suite("Durations, sizes and names")
struct ValueTests {
    @Test(
        "reads durations of a whole number and a unit",
        arguments: [
            ("250ms", Duration.milliseconds(250)), ("30s", .seconds(30)), ("10m", .seconds(600)),
            ("24h", .seconds(86_400)), ("7d", .seconds(604_800)), ("0s", .zero),
            ("999999999d", .seconds(999_999_999 * 86_400)),
        ])
    func durations(text: String, duration: Duration) {
        #expect(DurationText.parse(text) == duration)
    }

    @Test(
        "refuses what is no duration",
        arguments: [
            "", "30", "s", "-1s", "+1s", "1.5s", "30 s", "30S", "1m30s", "1w", "1000000000s", "٣s",
            "1s\u{0}",
        ])
    func notDurations(text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test(
        "writes durations so that they read back", arguments: ["250ms", "30s", "90m", "7d", "0s"])
    func durationText(text: String) throws {
        let duration = try #require(DurationText.parse(text))
        #expect(DurationText.format(duration) == text)
    }

    @Test(
        "reads sizes in binary units",
        arguments: [
            ("0B", UInt64(0)), ("512B", 512), ("64KiB", 65_536), ("1MiB", 1 << 20),
            ("4GiB", 4 << 30), ("1TiB", 1 << 40),
        ])
    func sizes(text: String, bytes: UInt64) {
        #expect(SizeText.parse(text) == bytes)
        #expect(SizeText.format(bytes) == text)
    }

    @Test(
        "refuses what is no size, and says what it was meant to be where it can",
        arguments: [
            ("64KB", "64KiB"), ("64k", "64KiB"), ("64 kib", "64KiB"), ("1mb", "1MiB"),
            ("2G", "2GiB"), ("512", "512B"), ("many", nil), ("-1B", nil), ("1.5MiB", nil),
            ("9999999999B", nil),
        ])
    func notSizes(text: String, meant: String?) {
        #expect(SizeText.parse(text) == nil)
        #expect(SizeText.binarySpelling(of: text) == meant)
    }

    @Test(
        "suggests what is near",
        arguments: [
            ("upsteam", "upstream"), ("uptsream", "upstream"), ("methds", "methods"),
            ("warn", "warning"), ("app-check", "app_check"), ("APPS", "apps"), ("x", nil),
            ("destination", nil), ("", nil),
        ])
    func suggestions(written: String, meant: String?) {
        let known = ["upstream", "methods", "warning", "app_check", "apps", "hosts"]
        #expect(nearest(to: written, among: known) == meant)
    }

    @Test(
        "knows which addresses get in each other's way",
        arguments: [
            ("127.0.0.1:80", "127.0.0.1:80", true), ("0.0.0.0:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.2:80", false), ("0.0.0.0:80", "0.0.0.0:81", false),
            ("[::]:80", "[::1]:80", true), ("[::]:80", "0.0.0.0:80", false),
            ("127.0.0.1:0", "127.0.0.1:0", false), ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
        ])
    func overlap(left: String, right: String, isOverlap: Bool) throws {
        let (left, right) = try (AddressText.listen(left), AddressText.listen(right))
        #expect(AddressText.overlap(left, right) == isOverlap)
        #expect(AddressText.overlap(right, left) == isOverlap)
    }

    @Test(
        "shows URLs without what may be secret in them",
        arguments: [
            ("https://example.com/jwks", "https://example.com/jwks"),
            ("https://example.com/jwks?key=secret", "https://example.com/jwks?…"),
            ("https://user:secret@example.com/", "https://…@example.com/"),
            ("user:secret@example.com:80", "…@example.com:80"),
        ])
    func redaction(url: String, shown: String) {
        #expect(redacted(url) == shown)
    }
}
