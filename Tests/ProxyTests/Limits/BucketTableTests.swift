import Policy
import TestKit
import Testing

@testable import Proxy

private let second: Int64 = 1_000_000_000

@Suite("The buckets of a limit")
struct BucketTableTests {
    private static let networks = NetworkPrefixes(ipv4: 32, ipv6: 64)

    private static func bucket(_ tokens: Int, per seconds: Int64 = 1, burst: Int? = nil) throws
        -> TokenBucket
    {
        try #require(
            TokenBucket(tokens: tokens, per: seconds * second, burst: burst ?? tokens))
    }

    @Test("a shard holds what a dictionary would, whatever the history", arguments: 0..<100)
    func histories(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let capacity = Int.random(in: 1...200, using: &random)
        let bucket = try Self.bucket(2, burst: 3)
        var shard = BucketShard(capacity: capacity)
        var model: [UInt64: Int64] = [:]
        // Keys with equal homes, so that chains form and wrap around.
        let keys = (0..<capacity * 2).map { _ in
            UInt64.random(in: 0...63, using: &random) << 1 | 1
                | UInt64.random(in: 0...99, using: &random) << 40
        }
        var now: Int64 = 0
        for step in 0..<3000 {
            now += Int64.random(in: 0...second / 100, using: &random)
            let key = keys.pick(using: &random)
            if Int.random(in: 0..<300, using: &random) == 0 {
                shard.purge(at: now)
                model = model.filter { $0.value > now }
                #expect(shard.count == model.count, "seed \(seed), step \(step)")
                continue
            }
            let inspected = shard.inspect(key, bucket, at: now)
            let charge = shard.charge(key, bucket, at: now)
            if charge == .noRoom {
                // Who has used something is never forgotten.
                #expect(model[key] ?? .min <= now, "seed \(seed), step \(step)")
                #expect(shard.count == capacity, "seed \(seed), step \(step)")
            } else {
                var full = model[key] ?? now
                let expected = bucket.take(from: &full, at: now)
                model[key] = full
                let known = expected.map(BucketShard.Charge.refused) ?? .taken
                #expect(charge == known, "seed \(seed), step \(step)")
                #expect(inspected == charge || inspected == .noRoom, "seed \(seed), step \(step)")
            }
            #expect(shard.count <= capacity)
        }
    }

    @Test("a full table forgets nobody, and gives nobody a bucket that it has not got")
    func full() throws {
        let bucket = try Self.bucket(1, per: 86_400)
        let table = BucketTable(bucket, networks: Self.networks, maxEntries: 1000)
        var random = SeededGenerator(seed: 1)
        // An attacker with many addresses, all of one neighbourhood.
        let addresses = try (0..<20_000).map {
            try #require(IPAddress("2001:db8:0:\(String($0, radix: 16))::1"))
        }
        let passed = addresses.filter { address in
            table.charge(
                table.hash.network(address), at: 0,
                neighbourhood: { table.hash.neighbourhood(address) }) == nil
        }
        #expect(table.entries <= table.maxEntries)
        #expect(table.maxEntries <= 1000)
        // Each has one request a day, and all that are too many have one together.
        #expect(passed.count == table.entries + 1)
        #expect(table.sharedCharges == UInt64(20_000 - table.entries))
        for address in passed.dropLast().shuffled(using: &random).prefix(500) {
            let wait = table.charge(table.hash.network(address), at: second) {
                table.hash.neighbourhood(address)
            }
            #expect(wait != nil)
        }
        // A stranger is served from what his own neighbourhood shares.
        let stranger = try #require(IPAddress("192.0.2.1"))
        let neighbour = try #require(IPAddress("192.0.2.99"))
        func charge(_ address: IPAddress) -> Int64? {
            table.charge(table.hash.network(address), at: second) {
                table.hash.neighbourhood(address)
            }
        }
        #expect(charge(stranger) == nil)
        #expect(charge(neighbour) == bucket.interval)
        // What is full again makes room, and nothing else.
        let later = second + bucket.fillTime
        #expect(
            table.charge(table.hash.network(neighbour), at: later) { 1 } == nil)
        #expect(table.sharedCharges > 0)
    }

    @Test("what nobody uses is given up, and its memory with it")
    func purging() throws {
        let table = BucketTable(
            try Self.bucket(1), networks: Self.networks, maxEntries: 10_000)
        for client in 1...5000 as ClosedRange<UInt64> {
            let key = client &* 0x9E37_79B9_7F4A_7C15 | 1
            #expect(table.charge(key, at: 0) { 1 } == nil)
        }
        #expect(table.entries == 5000)
        for _ in 0..<32 { table.purge(at: second - 1) }
        #expect(table.entries == 5000)
        for _ in 0..<32 { table.purge(at: second) }
        #expect(table.entries == 0)
        #expect(table.charge(1 << 63 | 1, at: second) { 1 } == nil)
        #expect(table.entries == 1)
    }

    @Test("takes no more memory than it says", arguments: [1000, 100_000, 1_000_000])
    func memory(entries: Int) throws {
        let table = BucketTable(try Self.bucket(1), networks: Self.networks, maxEntries: entries)
        #expect(table.maxEntries <= entries)
        #expect(table.maxEntries > entries - entries / 20)
        #expect(BucketTable.byteLimit(maxEntries: entries) <= entries * 96 + 65_536)
    }

    @Test("however many threads ask, as many pass as may")
    func concurrency() async throws {
        let table = BucketTable(
            try Self.bucket(1, per: 3600, burst: 5000), networks: Self.networks,
            maxEntries: 1000)
        let address = try #require(IPAddress("192.0.2.1"))
        let client = table.hash.network(address)
        let passed = await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    (0..<2500).count { _ in table.charge(client, at: 0) { 1 } == nil }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(passed == 5000)
    }

    @Test("what a client is depends on what the limit goes by, and on a secret")
    func hashes() throws {
        let (one, other) = (ClientHash(Self.networks), ClientHash(Self.networks))
        let address = try #require(IPAddress("2001:db8:1:2::1"))
        let sibling = try #require(IPAddress("2001:db8:1:2:ffff::2"))
        let neighbour = try #require(IPAddress("2001:db8:1:3::1"))
        #expect(one.network(address) == one.network(sibling))
        #expect(one.network(address) != one.network(neighbour))
        #expect(one.neighbourhood(address) == one.neighbourhood(neighbour))
        #expect(one.network(address) != other.network(address))
        #expect(one.network(address) != one.network(nil))
        #expect(one.app("a", project: 0) != one.app("a", project: 1))
        let (text, apart) = (Array("a".utf8), Array("b".utf8))
        #expect(one.value(text.span) != one.value(apart.span))
        #expect(one.value(text.span) != one.app("a", project: 0))
        for address in [address, sibling, neighbour] {
            #expect(one.network(address) & 1 == 1)
            #expect(one.neighbourhood(address) & 1 == 1)
        }
    }
}
