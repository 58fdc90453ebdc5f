internal import Glibc
internal import Reactor
internal import Replay

/// The keys 0, 1, 2 …, each of 128 bits that look random.
func claimKey(_ number: UInt64) -> ClaimKey {
    func mix(_ value: UInt64) -> UInt64 {
        var value = value
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
    return ClaimKey(high: mix(number &* 2 &+ 1), low: mix(number &* 2 &+ 2))
}

/// Claims one key after the other until it is killed or has done them all.
func hammer(folder: String, limit: Int, count: UInt64) throws(StoreOpenError) {
    let store = try FileStore.open(
        directory: folder, entryLimit: limit, now: instant(), boot: .current())
    for number in 0..<count {
        let now = instant()
        let claim = Claim(
            key: claimKey(number), issuedAt: store.reliableSince,
            retainedUntil: now.wallSeconds + 600, at: now)
        if store.claim(claim) != .claimed { continue }
        // The claim is made before anybody can know of it, as in the proxy.
        var written = number
        if write(STDOUT_FILENO, &written, 8) != 8 { exit(0) }
    }
}
