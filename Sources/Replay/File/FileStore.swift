public import Reactor
internal import Synchronization

/// Claims in a file of this machine, shared by everything that opens the same folder: the loops of
/// a process, and the old and the new process of an upgrade. It survives whatever happens to
/// processes, kill -9 in the middle of a claim included; a reboot it starts anew.
/// docs/decisions/0051-file-store.md has the reasons and the figures.
public final class FileStore: ClaimStore {
    /// How many claims a purge forgets under the file's lock: 70 to 280 microseconds,
    /// the longer the more there are.
    static let purgeBatch = 128

    let file: ClaimFile
    public let reliableSince: Int64
    private let entryLimit: Int
    private let boot: Boot
    private let clock: TrustedClock
    private let isClosed = Atomic<Bool>(false)

    /// Opens the claims in a folder, and makes both if they are not there.
    ///
    /// - Parameters:
    ///   - directory: The folder above it must exist.
    ///   - entryLimit: Claims that are remembered at most, 1 or more. Their disk space is taken at
    ///     once: 160 bytes for each.
    ///   - now: What the machine may have claimed before is not known to a new file.
    ///   - boot: The machine's, but for tests.
    /// - Throws: what keeps it from being used, where, and what to do.
    public static func open(
        directory: String, entryLimit: Int, now: ClaimInstant, boot: Boot
    ) throws(StoreOpenError) -> FileStore {
        precondition(Boot.isName(boot.id), "a boot id is a part of a file's name")
        let file = try OpenClaimFiles.open(
            directory: directory, boot: boot,
            bytes: ClaimFile.bytes(forEntries: max(1, entryLimit)), now: now)
        return FileStore(file: file, entryLimit: max(1, entryLimit), now: now, boot: boot)
    }

    /// Opens the claims in a folder for `inspect` only, beside any process that uses them. Makes
    /// and changes nothing; it can claim and purge nothing.
    ///
    /// - Returns: nil when nothing was claimed there since the machine booted.
    public static func openForInspection(
        directory: String, entryLimit: Int, now: ClaimInstant, boot: Boot
    ) throws(StoreOpenError) -> FileStore? {
        guard
            let file = try OpenClaimFiles.openForInspection(
                directory: directory, bootID: boot.id)
        else { return nil }
        return FileStore(file: file, entryLimit: max(1, entryLimit), now: now, boot: boot)
    }

    private init(file: ClaimFile, entryLimit: Int, now: ClaimInstant, boot: Boot) {
        self.file = file
        self.entryLimit = entryLimit
        self.boot = boot
        clock = TrustedClock(now: now)
        reliableSince = file.header()?.reliableSince ?? now.wallSeconds &+ 1
    }

    deinit {
        close()
    }

    /// Closes the file, unless another store of this process uses it. Claims are answered with
    /// `unavailable` from then on.
    public func close() {
        if !isClosed.exchange(true, ordering: .relaxed) { OpenClaimFiles.close(file) }
    }

    public var name: StaticString { "file" }
    public var needsToken: Bool { false }
    public var isRemote: Bool { false }

    public func makeSession(on loop: EventLoop) -> any ClaimSession { FileSession(store: self) }

    /// Also frees what killed processes hold, and notices a file that was deleted under the
    /// process.
    public func purge(at now: ClaimInstant) -> Bool {
        if isClosed.load(ordering: .relaxed) { return false }
        file.lookAfter()
        let count = file.purge(through: clock.trusted(now), limit: Self.purgeBatch)
        return count == Self.purgeBatch
    }

    /// `bytes` are those of pages in use, `byteLimit` is what the file takes of the disk.
    public var statistics: StoreStatistics {
        let measured = file.measure()
        return StoreStatistics(
            entries: measured?.entries, entryLimit: entryLimit, bytes: measured?.bytes,
            byteLimit: measured?.byteLimit)
    }

    /// The most bytes of the file that were ever in use, for the tests of its size.
    package var highWaterBytes: Int { file.highWaterBytes }

    /// What sessions do, without a loop. Never waits for more than other claims.
    package func claim(_ claim: borrowing Claim) -> ClaimOutcome {
        var turn = [turnClaim(claim)]
        self.claim(&turn)
        return turn[0].outcome
    }

    /// Claims what came together.
    func claim(_ turn: inout [TurnClaim]) {
        if isClosed.load(ordering: .relaxed) { return }
        file.claim(&turn, entryLimit: entryLimit)
    }

    /// A claim as the file knows it.
    func turnClaim(_ claim: borrowing Claim) -> TurnClaim {
        TurnClaim(
            key: claim.key, issuedAt: claim.issuedAt, retainedUntil: claim.retainedUntil,
            bootSecond: boot.second(asOf: claim.at))
    }

    /// See `claim`.
    package func release(_ claim: borrowing Claim) -> Bool {
        if isClosed.load(ordering: .relaxed) { return false }
        return file.release(claim.key, retainedUntil: claim.retainedUntil)
    }

    /// See `claim`.
    package func inspect(_ claim: borrowing Claim) -> ClaimOutcome {
        if isClosed.load(ordering: .relaxed) { return .unavailable(.system) }
        return file.inspect(
            claim, entryLimit: entryLimit, bootSecond: boot.second(asOf: claim.at))
    }
}
