internal import Glibc
internal import Reactor
internal import Replay

/// Fills a store and times what it does then: figures for docs/decisions/0051-file-store.md.
func measure(folder: String, count: Int) throws(StoreOpenError) {
    let sample = 200_000
    let began = instant()
    let store = try FileStore.open(
        directory: folder, entryLimit: count + sample, now: began, boot: .current())
    func claim(_ number: Int, life: Int64) -> ClaimOutcome {
        store.claim(
            Claim(
                key: claimKey(UInt64(number)), issuedAt: store.reliableSince,
                retainedUntil: began.wallSeconds + life, at: began))
    }
    // As if they had come at an even pace for five minutes, each for five minutes.
    var time = CPUTime()
    for number in 0..<count { _ = claim(number, life: 300 + Int64(number * 300 / count)) }
    time.report("claim while filling", count)
    for number in count..<(count + sample) { _ = claim(number, life: 600) }
    time.report("claim", sample)
    for number in stride(from: 0, to: count, by: max(1, count / sample)) {
        _ = claim(number, life: 600)
    }
    time.report("claim of what was claimed", count / max(1, count / sample))
    let statistics = store.statistics
    let entries = statistics.entries ?? 0
    print("entries \(entries), in use \(store.highWaterBytes / max(1, entries)) bytes each")

    var later = began
    later.wallMicroseconds += 1_000_000_000
    later.monotonic = later.monotonic.advanced(by: .seconds(1000))
    var (batches, longest) = (0, Int64(0))
    var isMore = true
    time = CPUTime()
    while isMore {
        let start = MonotonicInstant.now
        isMore = store.purge(at: later)
        longest = max(longest, MonotonicInstant.now.nanoseconds - start.nanoseconds)
        batches += 1
    }
    time.report("purged entry", entries)
    print("\(batches) batches, the longest took \(longest / 1000) us")
}

/// Fills a store to its limit for a day of five-minute tokens, hour after hour, and tells how much
/// of the file that ever took.
func churn(folder: String, limit: Int) throws(StoreOpenError) {
    var now = instant()
    let store = try FileStore.open(
        directory: folder, entryLimit: limit, now: now, boot: Boot(id: "churn"))
    var number: UInt64 = 0
    for second in 0..<9000 {
        // Arrivals swing between nothing and more than there is room for.
        let phase = second % 900
        let arrivals = limit * (phase < 450 ? 3 : 1) / 500 * ((second / 100) % 3) / 2
        for _ in 0..<arrivals {
            let life = 240 + Int64(number % 7) * 20
            _ = store.claim(
                Claim(
                    key: claimKey(number), issuedAt: store.reliableSince,
                    retainedUntil: now.wallSeconds + life, at: now))
            number += 1
        }
        now.wallMicroseconds += 1_000_000
        now.monotonic = now.monotonic.advanced(by: .seconds(1))
        while store.purge(at: now) {}
    }
    let bytes = store.highWaterBytes
    print("\(number) claims, limit \(limit): \(bytes) bytes at most, \(bytes / limit) an entry")
}

/// Processor time of this process.
struct CPUTime {
    private var last = CPUTime.now()

    /// Prints what was spent since the last report, for each of `count`.
    mutating func report(_ what: String, _ count: Int) {
        let now = CPUTime.now()
        let (user, system) = (now.user - last.user, now.system - last.system)
        let each = Double(max(1, count))
        print(
            "\(what): \(Int(Double(user) / each * 1000)) ns user, "
                + "\(Int(Double(system) / each * 1000)) ns kernel")
        last = CPUTime.now()
    }

    private static func now() -> (user: Int, system: Int) {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func microseconds(_ time: timeval) -> Int { time.tv_sec * 1_000_000 + time.tv_usec }
        return (microseconds(usage.ru_utime), microseconds(usage.ru_stime))
    }
}
