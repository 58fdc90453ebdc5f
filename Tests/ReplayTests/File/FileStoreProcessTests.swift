internal import Reactor
internal import Replay
internal import TestKit
import Testing

@Suite("The file store and other processes")
struct FileStoreProcessTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    var directory: String { folder.path(of: "replay") }

    @Test("R13: kill -9 in the middle of claims loses none and stops nobody", arguments: 0..<20)
    func kills(round: Int) throws {
        let store = try open(entryLimit: 1_000_000)
        for generation in 0..<3 {
            let hammer = try HammerProcess(directory: directory, entryLimit: 1_000_000, count: 0)
            let first = try #require(hammer.next())
            #expect(generation == 0 || first > 0)
            var last = first
            for _ in 0..<(200 + round * 37) { last = try #require(hammer.next()) }
            hammer.kill()
            while let number = hammer.next() { last = number }
            // All that it was told is there; of what it was about to claim, at most one.
            let entries = try #require(store.statistics.entries)
            #expect(entries == Int(last) + 1 || entries == Int(last) + 2)
            #expect(store.claim(claim(0)) == .reused)
            #expect(store.claim(claim(last)) == .reused)
        }
        // Both tables tell the same story: what the index forgets, the claims forget.
        while store.purge(at: later) {}
        #expect(store.statistics.entries == 0)
        #expect(store.statistics.bytes == 0)
    }

    @Test("R2: of two processes that claim the same tokens, each token passes in one of them")
    func twoProcesses() throws {
        _ = try open(entryLimit: 100_000)
        let hammers = try (0..<2).map { _ in
            try HammerProcess(directory: directory, entryLimit: 100_000, count: 20_000)
        }
        var given: [UInt64] = []
        for hammer in hammers { while let number = hammer.next() { given.append(number) } }
        #expect(given.count == 20_000)
        #expect(Set(given).count == 20_000)
    }

    @Test("R14: a process with a larger file does not disturb one with a smaller")
    func growsBesideAnother() throws {
        let store = try open(entryLimit: 1000)
        #expect(store.claim(claim(1_000_001)) == .claimed)
        let hammer = try HammerProcess(directory: directory, entryLimit: 100_000, count: 60_000)
        var count = 0
        while hammer.next() != nil { count += 1 }
        #expect(count == 60_000)
        // A third that wants something in between must not cut the file.
        let middle = try open(entryLimit: 50_000)
        #expect(middle.statistics.byteLimit ?? 0 > 100_000 * 150)
        middle.close()
        // Its own limit is reached long since; what the other claimed it sees all the same.
        #expect(store.statistics.entries == 60_001)
        #expect(store.claim(claim(59_999)) == .reused)
        #expect(store.claim(claim(2_000_000)) == .full)
        while store.purge(at: later) {}
        #expect(store.claim(claim(2_000_000, life: 900)) == .claimed)
        store.close()
        // And a smaller one that comes later takes nothing away from it.
        let small = try open(entryLimit: 10)
        #expect(small.statistics.byteLimit ?? 0 > 100_000 * 150)
    }

    private func open(entryLimit: Int) throws(StoreOpenError) -> FileStore {
        try FileStore.open(
            directory: directory, entryLimit: entryLimit, now: .present, boot: .current())
    }

    private var later: ClaimInstant {
        var later = ClaimInstant.present
        later.wallMicroseconds += 3_000_000_000
        later.monotonic = later.monotonic.advanced(by: .seconds(3000))
        return later
    }

    /// What a claim-hammer claims.
    private func claim(_ number: UInt64, life: Int64 = 600) -> Claim {
        func mix(_ value: UInt64) -> UInt64 {
            var value = value
            value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
            value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
            return value ^ (value >> 31)
        }
        let now = ClaimInstant.present
        return Claim(
            key: ClaimKey(high: mix(number &* 2 &+ 1), low: mix(number &* 2 &+ 2)),
            issuedAt: now.wallSeconds + 2, retainedUntil: now.wallSeconds + life, at: now)
    }
}

extension ClaimInstant {
    fileprivate static var present: ClaimInstant {
        ClaimInstant(wallMicroseconds: Syscalls.wallMicroseconds(), monotonic: .now)
    }
}
