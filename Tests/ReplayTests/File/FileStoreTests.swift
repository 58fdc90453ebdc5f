internal import Reactor
internal import Replay
internal import TestKit
import Testing

@Suite("File store")
struct FileStoreTests {
    let place: FileStorePlace

    init() throws {
        place = try FileStorePlace()
    }

    @Test("R1: a token is claimed once")
    func claimsOnce() throws {
        let store = try place.open()
        #expect(store.claim(place.claim(1)) == .claimed)
        #expect(store.claim(place.claim(1)) == .reused)
        #expect(store.claim(place.claim(2)) == .claimed)
        #expect(store.statistics.entries == 2)
    }

    @Test("R1: of 64 threads that claim one token, exactly one is given it, 50 times over")
    func race() throws {
        let store = try place.open()
        for round in 0..<50 {
            let outcomes = onThreads(64) { _ in store.claim(place.claim(UInt64(round))) }
            #expect(outcomes.count { $0 == .claimed } == 1)
            #expect(outcomes.count { $0 == .reused } == 63)
        }
    }

    @Test("R5: the same key with another expiry is the same token")
    func otherExpiry() throws {
        let store = try place.open()
        #expect(store.claim(place.claim(1, life: 100)) == .claimed)
        #expect(store.claim(place.claim(1, life: 200)) == .reused)
    }

    @Test("R9: a claim that was taken back can be made again, once")
    func releases() throws {
        let store = try place.open()
        #expect(store.claim(place.claim(1)) == .claimed)
        #expect(store.release(place.claim(1)))
        #expect(!store.release(place.claim(1)))
        #expect(store.claim(place.claim(1)) == .claimed)
        #expect(store.claim(place.claim(1)) == .reused)
    }

    @Test("R9: nobody takes back the claim of a token with the same id and another expiry")
    func releasesOnlyItsOwn() throws {
        let store = try place.open()
        #expect(store.claim(place.claim(1, life: 200)) == .claimed)
        #expect(!store.release(place.claim(1, life: 100)))
        #expect(store.claim(place.claim(1, life: 200)) == .reused)
    }

    @Test("R4: an entry is forgotten at its expiry, not a second earlier")
    func purges() throws {
        var place = place
        let store = try place.open()
        #expect(store.claim(place.claim(1, life: 100)) == .claimed)
        #expect(store.claim(place.claim(2, life: 101)) == .claimed)
        place.pass(seconds: 99)
        #expect(!store.purge(at: place.now))
        #expect(store.statistics.entries == 2)
        place.pass(seconds: 1)
        #expect(!store.purge(at: place.now))
        #expect(store.statistics.entries == 1)
        place.pass(seconds: 1)
        #expect(!store.purge(at: place.now))
        #expect(store.statistics.entries == 0)
    }

    @Test("R4: a purge forgets a bounded number, and says that there is more")
    func purgesInBatches() throws {
        var place = place
        let store = try place.open()
        for number in 0..<300 { #expect(store.claim(place.claim(UInt64(number))) == .claimed) }
        place.pass(seconds: 400)
        #expect(store.purge(at: place.now))
        #expect(store.statistics.entries == 300 - 128)
        #expect(store.purge(at: place.now))
        #expect(!store.purge(at: place.now))
        #expect(store.statistics.entries == 0)
    }

    @Test("R4: a clock that is set back does not bring forgotten tokens back, after a restart too")
    func clockGoesBack() throws {
        var place = place
        let expired = place.claim(1, life: 100)
        do {
            let store = try place.open()
            #expect(store.claim(expired) == .claimed)
            place.pass(seconds: 100)
            _ = store.purge(at: place.now)
            #expect(store.statistics.entries == 0)
            place.step(seconds: -90)
            #expect(store.claim(expired) == .expired)
            #expect(store.inspect(expired) == .expired)
        }
        #expect(try place.open().claim(expired) == .expired)
    }

    @Test("R4: a clock that runs ahead for a while forgets nothing")
    func clockGoesAhead() throws {
        var place = place
        let store = try place.open()
        #expect(store.claim(place.claim(1, life: 300)) == .claimed)
        place.step(seconds: 3600)
        _ = store.purge(at: place.now)
        place.step(seconds: -3600)
        #expect(store.claim(place.claim(1, life: 300)) == .reused)
    }

    @Test("R12: no more claims than the limit; what is there is never evicted")
    func isFull() throws {
        var place = place
        let store = try place.open(entryLimit: 3)
        for number in 1...3 { #expect(store.claim(place.claim(UInt64(number))) == .claimed) }
        #expect(store.claim(place.claim(4)) == .full)
        #expect(store.inspect(place.claim(4)) == .full)
        #expect(store.claim(place.claim(1)) == .reused)
        #expect(store.statistics.entries == 3)
        #expect(store.release(place.claim(2)))
        #expect(store.claim(place.claim(4)) == .claimed)
        #expect(store.claim(place.claim(5)) == .full)
        place.pass(seconds: 400)
        _ = store.purge(at: place.now)
        #expect(store.claim(place.claim(5)) == .claimed)
    }

    @Test("R12: a limit of 20000 is reached exactly, and the file has room for it")
    func reachesTheLimit() throws {
        let store = try place.open(entryLimit: 20_000)
        for number in 0..<20_000 {
            #expect(store.claim(place.claim(UInt64(number))) == .claimed)
        }
        #expect(store.claim(place.claim(20_000)) == .full)
        let statistics = store.statistics
        #expect(statistics.entries == 20_000)
        #expect(statistics.entryLimit == 20_000)
        #expect((statistics.bytes ?? .max) < 20_000 * 150)
        #expect((statistics.bytes ?? .max) < statistics.byteLimit ?? 0)
    }

    @Test("R13: tokens from before a new file are told apart, and spent all the same")
    func predates() throws {
        let store = try place.open()
        #expect(store.reliableSince == place.now.wallSeconds + 1)
        var old = place.claim(1)
        old.issuedAt = store.reliableSince - 1
        #expect(store.inspect(old) == .predates)
        #expect(store.claim(old) == .predates)
        #expect(store.claim(old) == .reused)
        var new = place.claim(2)
        new.issuedAt = store.reliableSince
        #expect(store.claim(new) == .claimed)
    }

    @Test("inspecting claims nothing")
    func inspects() throws {
        let store = try place.open()
        #expect(store.inspect(place.claim(1)) == .claimed)
        #expect(store.claim(place.claim(1)) == .claimed)
        #expect(store.inspect(place.claim(1)) == .reused)
    }

    @Test("a session on a loop gives the same answers")
    func session() async throws {
        let store = try place.open()
        let claim = place.claim(1)
        let outcomes = try await TestLoop().run { host in
            let session = store.makeSession(on: host.loop)
            defer { session.close() }
            let waiter = Waiter(loop: host.loop)
            let first = await session.claim(claim, waiter: waiter, until: .never)
            let second = await session.claim(claim, waiter: waiter, until: .never)
            let seen = await session.inspect(claim, waiter: waiter, until: .never)
            let released = await session.release(claim, waiter: waiter, until: .never)
            return (first, second, seen, released)
        }
        #expect(outcomes == (.claimed, .reused, .reused, true))
    }

    @Test("a closed store cannot be asked")
    func closes() throws {
        let store = try place.open()
        store.close()
        store.close()
        #expect(store.claim(place.claim(1)) == .unavailable(.system))
        #expect(store.inspect(place.claim(1)) == .unavailable(.system))
        #expect(!store.release(place.claim(1)))
        #expect(!store.purge(at: place.now))
    }

    @Test("R4, R12, R13: random histories agree with the model", arguments: ClaimHistory.seeds(20))
    func histories(seed: UInt64) async throws {
        let folder = try TemporaryFolder()
        let subject = ClaimSubject(
            entryLimit: 12, crash: .remembers, noticesLateClock: true
        ) { now in
            try FileStore.open(
                directory: folder.path(of: "replay"), entryLimit: 12, now: now,
                boot: Boot(id: "boot-1"))
        }
        try await ClaimHistory.check(subject, seed: seed)
    }
}
