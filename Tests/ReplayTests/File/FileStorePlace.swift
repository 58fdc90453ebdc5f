internal import Reactor
internal import Replay
internal import Synchronization
internal import TestKit

/// A folder for stores, and a clock that goes when the test says so.
struct FileStorePlace {
    let folder: TemporaryFolder
    var now = ClaimInstant(
        wallMicroseconds: 1_800_000_000_500_000,
        monotonic: MonotonicInstant(nanoseconds: 5_000_000_000_000))

    init() throws {
        folder = try TemporaryFolder()
    }

    /// What the configuration would name.
    var directory: String { folder.path(of: "replay") }

    func open(entryLimit: Int = 1000, bootID: String = "boot-1") throws(StoreOpenError) -> FileStore
    {
        try FileStore.open(
            directory: directory, entryLimit: entryLimit, now: now, boot: Boot(id: bootID))
    }

    func openForInspection(bootID: String = "boot-1") throws(StoreOpenError) -> FileStore? {
        try FileStore.openForInspection(
            directory: directory, entryLimit: 1000, now: now, boot: Boot(id: bootID))
    }

    /// A token that was issued a moment ago, after whatever the store cannot know.
    func claim(_ number: UInt64, life: Int64 = 300) -> Claim {
        Claim(
            key: ClaimKey(high: number &* 0x9E37_79B9_7F4A_7C15, low: number),
            issuedAt: now.wallSeconds + 2, retainedUntil: now.wallSeconds + life, at: now)
    }

    /// Time passes.
    mutating func pass(seconds: Int64) {
        step(seconds: seconds)
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
    }

    /// Somebody sets the clock.
    mutating func step(seconds: Int64) {
        now.wallMicroseconds += seconds * 1_000_000
    }
}

/// What threads share that run a body at the same time.
private final class Race<R: Sendable>: Sendable {
    let results = Mutex<[R]>([])
    let ready = Atomic<Int>(0)
}

/// Runs `body` on so many threads, which all start at the same moment.
func onThreads<R: Sendable>(_ count: Int, _ body: @escaping @Sendable (Int) -> R) -> [R] {
    let race = Race<R>()
    for number in 0..<count {
        Thread.start(named: "racer") {
            race.ready.add(1, ordering: .acquiringAndReleasing)
            while race.ready.load(ordering: .acquiring) < count { Syscalls.pause(milliseconds: 0) }
            let result = body(number)
            race.results.withLock { $0.append(result) }
        }
    }
    while race.results.withLock({ $0.count }) < count { Syscalls.pause(milliseconds: 1) }
    return race.results.withLock { $0 }
}
