import Policy
import TestKit
import Testing

@Suite("A token bucket")
struct TokenBucketTests {
    private static let second: Int64 = 1_000_000_000

    /// The same bucket as people think of it: so much credit, in nanoseconds, of at most so much.
    private struct Model {
        let price: Int64
        let most: Int64
        var credit: Int64
        var now: Int64

        init(_ bucket: TokenBucket, at now: Int64) {
            price = bucket.interval
            most = bucket.fillTime
            credit = bucket.fillTime
            self.now = now
        }

        mutating func take(at instant: Int64) -> Int64? {
            credit = min(most, credit + (instant - now))
            now = instant
            if credit < price { return price - credit }
            credit -= price
            return nil
        }
    }

    @Test("takes and refuses as a model does, whatever the history", arguments: 0..<200)
    func histories(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bucket = try #require(
            TokenBucket(
                tokens: .random(in: 1...1000, using: &random),
                per: .random(in: 1...3600, using: &random) * Self.second,
                burst: .random(in: 1...50, using: &random)))
        var now = Int64.random(in: 0...1 << 60, using: &random)
        var full = Bool.random(using: &random) ? now : Int64.min
        var model = Model(bucket, at: now)
        for step in 0..<500 {
            let longest = [1, bucket.interval, bucket.interval * 3, bucket.fillTime * 2]
            now += .random(in: 0...longest.pick(using: &random), using: &random)
            let seen = bucket.wait(full, at: now)
            let expected = model.take(at: now)
            #expect(seen == expected, "seed \(seed), step \(step)")
            #expect(bucket.take(from: &full, at: now) == expected, "seed \(seed), step \(step)")
        }
    }

    @Test("lets exactly its burst pass at once, and then one at a time", arguments: [1, 2, 7, 100])
    func burst(size: Int) throws {
        let bucket = try #require(TokenBucket(tokens: 10, per: Self.second, burst: size))
        var full = Int64.min
        for _ in 0..<size { #expect(bucket.take(from: &full, at: 0) == nil) }
        let tenth = Self.second / 10
        #expect(bucket.take(from: &full, at: 0) == tenth)
        #expect(bucket.take(from: &full, at: tenth - 1) == 1)
        #expect(bucket.take(from: &full, at: tenth) == nil)
        #expect(bucket.take(from: &full, at: tenth) == tenth)
    }

    @Test("never gives more than its rate where that does not divide")
    func rounding() throws {
        let bucket = try #require(TokenBucket(tokens: 7, per: Self.second, burst: 1))
        #expect(bucket.interval == 142_857_143)
    }

    @Test(
        "has limits to what it can be",
        arguments: [
            (1, 86_400, 366, true), (1, 86_400, 367, false), (1, 1, 1_000_000, true),
            (1_000_000, 1, 1_000_000, true), (1, 86_400, Int.max, false), (0, 1, 1, false),
            (1, 0, 1, false), (1, 1, 0, false), (-1, 1, 1, false), (Int.max, 1, 1, true),
        ])
    func edges(tokens: Int, seconds: Int64, burst: Int, isPossible: Bool) {
        let bucket = TokenBucket(tokens: tokens, per: seconds * Self.second, burst: burst)
        #expect((bucket != nil) == isPossible)
    }

    @Test("one a day: the second waits a day")
    func oneADay() throws {
        let day = 86_400 * Self.second
        let bucket = try #require(TokenBucket(tokens: 1, per: day, burst: 1))
        var full = Int64.min
        #expect(bucket.take(from: &full, at: 5) == nil)
        #expect(bucket.take(from: &full, at: 5) == day)
        #expect(bucket.take(from: &full, at: day + 4) == 1)
        #expect(bucket.take(from: &full, at: day + 5) == nil)
    }

    @Test(
        "survives the ends of the clock",
        arguments: [Int64.min, -1, 0, 1, Int64.max - 1, .max], [Int64.min, 0, Int64.max])
    func endsOfTheClock(now: Int64, full: Int64) throws {
        let bucket = try #require(TokenBucket(tokens: 1, per: Self.second, burst: 1_000_000))
        var changed = full
        let wait = bucket.take(from: &changed, at: now)
        #expect(wait.map { 0 < $0 && $0 <= bucket.fillTime } ?? true)
        #expect(bucket.wait(changed, at: now).map { $0 > 0 } ?? true)
    }

    @Test("gives nothing away when the clock is set back, and recovers", arguments: 0..<50)
    func clockSteps(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let burst = Int.random(in: 1...20, using: &random)
        let bucket = try #require(TokenBucket(tokens: 10, per: Self.second, burst: burst))
        var (now, full) = (Int64(1) << 40, Int64.min)
        var (passed, forward) = (0, Int64(0))
        for _ in 0..<2000 {
            let step = Int64.random(in: -5...5, using: &random) * Self.second / 20
            now += Int.random(in: 0..<100, using: &random) == 0 ? -3600 * Self.second : step
            forward += max(step, 0)
            if bucket.take(from: &full, at: now) == nil { passed += 1 }
        }
        #expect(Int64(passed) <= Int64(burst) + forward / bucket.interval, "seed \(seed)")
        // However far the clock went back, the bucket is full after the time that it takes.
        now -= 1_000_000 * Self.second
        _ = bucket.take(from: &full, at: now)
        now += bucket.fillTime
        for _ in 0..<burst { #expect(bucket.take(from: &full, at: now) == nil, "seed \(seed)") }
    }
}

@Suite("A client network")
struct NetworkPrefixTests {
    @Test(
        "is what the first bits of an address say",
        arguments: [
            ("192.0.2.77", 32, 64, "192.0.2.77"), ("192.0.2.77", 24, 64, "192.0.2.0"),
            ("192.0.2.77", 25, 64, "192.0.2.0"), ("192.0.2.177", 25, 64, "192.0.2.128"),
            ("192.0.2.77", 0, 64, "0.0.0.0"), ("::ffff:192.0.2.77", 24, 0, "192.0.2.0"),
            ("2001:db8:1:2:3:4:5:6", 32, 64, "2001:db8:1:2::"),
            ("2001:db8:1:2:3:4:5:6", 32, 48, "2001:db8:1::"),
            ("2001:db8:1:2:3:4:5:6", 32, 128, "2001:db8:1:2:3:4:5:6"),
            ("2001:db8:1:2:3:4:5:6", 32, 127, "2001:db8:1:2:3:4:5:6"),
            ("2001:db8:1:2:3:4:5:7", 32, 127, "2001:db8:1:2:3:4:5:6"),
            ("2001:db8:1:2:ff3f::", 32, 65, "2001:db8:1:2:8000::"),
            ("2001:db8:1:2:3:4:5:6", 32, 0, "::"), ("2001:db8::1", 32, 200, "2001:db8::1"),
        ])
    func networks(address: String, ipv4: Int, ipv6: Int, network: String) throws {
        let prefixes = NetworkPrefixes(ipv4: ipv4, ipv6: ipv6)
        #expect(try #require(IPAddress(address)).network(prefixes) == IPAddress(network))
    }
}
