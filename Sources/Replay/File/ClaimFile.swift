internal import Reactor
internal import Synchronization

/// The claims of a file, shared by everything in the process that has opened it, and with other
/// processes through LMDB.
///
/// One mutex lets one transaction of the process run at a time; LMDB would do the same, and without
/// it the map could change under a transaction. Each transaction takes a microsecond or two.
final class ClaimFile: Sendable {
    /// Where it is.
    let place: ClaimDirectory
    /// Opened for looking only.
    let isReadOnly: Bool
    /// The file was deleted or replaced while it was open: others cannot see what is claimed in it.
    private let isLost = Atomic<Bool>(false)
    private let content: Mutex<Content?>

    /// The open file and its tables. `claims` maps a key to the second until which it is retained,
    /// `expiry` holds the same the other way round, for purging; both change in one transaction.
    struct Content {
        let lmdb: LMDBFile
        let main: LMDBFile.Table
        let claims: LMDBFile.Table
        let expiry: LMDBFile.Table
    }

    init(place: ClaimDirectory, isReadOnly: Bool, content: sending Content) {
        self.place = place
        self.isReadOnly = isReadOnly
        self.content = Mutex(content)
    }

    /// Claims each key unless it is claimed, all in one transaction: what a commit costs, copies of
    /// the pages that it changes, is shared by them. When the transaction fails, none is claimed.
    ///
    /// - Parameter entryLimit: How many claims there may be with these.
    func claim(_ turn: inout [TurnClaim], entryLimit: Int) {
        let isUsable = !isReadOnly && !isLost.load(ordering: .relaxed)
        let isAnswered =
            isUsable
            && content.withLock { content in
                guard let content else { return false }
                do throws(LMDBError) {
                    try Self.claim(&turn, entryLimit: entryLimit, in: content, at: place)
                    return true
                } catch {
                    return error == .mapFull && Self.lookUp(&turn, in: content, at: place)
                }
            }
        if isAnswered { return }
        for index in turn.indices { turn[index].outcome = .unavailable(.system) }
    }

    /// Answers when the file has no room for what is new: what is known is `reused` all the same.
    private static func lookUp(
        _ turn: inout [TurnClaim], in content: Content, at place: ClaimDirectory
    ) -> Bool {
        // A process that was killed while it read keeps pages from being used again.
        content.lmdb.dropDeadReaders()
        return (try? claim(&turn, entryLimit: 0, in: content, at: place)) != nil
    }

    private static func claim(
        _ turn: inout [TurnClaim], entryLimit: Int, in content: Content, at place: ClaimDirectory
    ) throws(LMDBError) {
        let transaction = try begin(content, at: place)
        let header = try header(of: content, in: transaction)
        let before = try transaction.measure(content.claims).entries
        var entries = before
        for index in turn.indices {
            turn[index].outcome = try claim(
                turn[index], entries: &entries, entryLimit: entryLimit, header, in: content,
                transaction)
        }
        if entries > before { try transaction.commit() }
    }

    @inline(__always)
    private static func claim(
        _ claim: TurnClaim, entries: inout Int, entryLimit: Int, _ header: FileHeader,
        in content: Content, _ transaction: borrowing LMDBTransaction
    ) throws(LMDBError) -> ClaimOutcome {
        if claim.retainedUntil <= header.forgottenThrough { return .expired }
        let key = ClaimRecordKey(claim.key)
        if entries >= entryLimit {
            let found = try transaction.value(of: key, in: content.claims, as: Int64.self)
            return found == nil ? .full : .reused
        }
        let isNew = try transaction.insert(key, claim.retainedUntil, into: content.claims)
        if !isNew { return .reused }
        _ = try transaction.insert(
            ExpiryRecordKey(second: claim.retainedUntil, key: claim.key), EmptyRecord(),
            into: content.expiry)
        entries += 1
        let since = header.reliableSince(bootSecond: claim.bootSecond)
        return claim.issuedAt < since ? .predates : .claimed
    }

    /// Takes back a claim, if it is there with this expiry: one of the same key with another was
    /// made by another request.
    func release(_ key: ClaimKey, retainedUntil: Int64) -> Bool {
        if isReadOnly || isLost.load(ordering: .relaxed) { return false }
        return content.withLock { content in
            guard let content else { return false }
            do throws(LMDBError) {
                let transaction = try Self.begin(content, at: place)
                let found = try transaction.value(
                    of: ClaimRecordKey(key), in: content.claims, as: Int64.self)
                guard found == retainedUntil else { return false }
                try transaction.remove(ClaimRecordKey(key), from: content.claims)
                try transaction.remove(
                    ExpiryRecordKey(second: retainedUntil, key: key), from: content.expiry)
                try transaction.commit()
                return true
            } catch {
                return false
            }
        }
    }

    /// What `claim` would answer.
    func inspect(_ claim: borrowing Claim, entryLimit: Int, bootSecond: Int64) -> ClaimOutcome {
        let key = claim.key
        let (issuedAt, retainedUntil) = (claim.issuedAt, claim.retainedUntil)
        return content.withLock { content in
            guard let content else { return .unavailable(.system) }
            do throws(LMDBError) {
                let transaction = try Self.begin(content, at: place, readOnly: isReadOnly)
                let header = try Self.header(of: content, in: transaction)
                if retainedUntil <= header.forgottenThrough { return .expired }
                let found = try transaction.value(
                    of: ClaimRecordKey(key), in: content.claims, as: Int64.self)
                if found != nil { return .reused }
                if try transaction.measure(content.claims).entries >= entryLimit { return .full }
                let since = header.reliableSince(bootSecond: bootSecond)
                return issuedAt < since ? .predates : .claimed
            } catch {
                return .unavailable(.system)
            }
        }
    }

    /// Forgets claims that nobody retains any longer, and remembers in the same transaction up to
    /// which second that was done.
    ///
    /// - Parameters:
    ///   - second: Claims that are retained until then or less.
    ///   - limit: How many at most: other processes wait meanwhile.
    /// - Returns: how many were forgotten.
    func purge(through second: Int64, limit: Int) -> Int {
        if isReadOnly || isLost.load(ordering: .relaxed) { return 0 }
        return content.withLock { content in
            guard let content else { return 0 }
            do throws(LMDBError) {
                let transaction = try Self.begin(content, at: place)
                var header = try Self.header(of: content, in: transaction)
                var count = 0
                while count < limit,
                    let record = try transaction.firstKey(
                        of: content.expiry, as: ExpiryRecordKey.self),
                    record.second <= second
                {
                    try transaction.remove(ClaimRecordKey(record.key), from: content.claims)
                    try transaction.remove(record, from: content.expiry)
                    header.forgottenThrough = max(header.forgottenThrough, record.second)
                    count += 1
                }
                if count == 0 { return 0 }
                try transaction.set(FileHeader.key, to: header, in: content.main)
                try transaction.commit()
                return count
            } catch {
                // A failed batch is undone as a whole and done again at the next purge.
                return 0
            }
        }
    }

    /// Looks after the file: frees what killed readers hold, and notices when the file at its path
    /// is not this one any more. A look that fails tells neither; the next one may.
    func lookAfter() {
        let opened = content.withLock { content in
            content?.lmdb.dropDeadReaders()
            return content.flatMap { try? Syscalls.status(of: $0.lmdb.descriptor) }
        }
        guard let opened else { return }
        do throws(Errno) {
            let present = try Syscalls.status(at: place.dataPath)
            if present.inode == opened.inode && present.device == opened.device { return }
        } catch {
            if error != .noSuchFile && error != .notDirectory { return }
        }
        isLost.store(true, ordering: .relaxed)
    }

    /// The header, as it is now.
    func header() -> FileHeader? {
        content.withLock { content in
            guard let content,
                let transaction = try? Self.begin(content, at: place, readOnly: isReadOnly)
            else { return nil }
            return try? Self.header(of: content, in: transaction)
        }
    }

    /// How many claims there are, the bytes of their pages, and the bytes of the file.
    func measure() -> (entries: Int, bytes: Int, byteLimit: Int)? {
        content.withLock { content in
            guard let content,
                let transaction = try? Self.begin(content, at: place, readOnly: isReadOnly),
                let claims = try? transaction.measure(content.claims),
                let expiry = try? transaction.measure(content.expiry)
            else { return nil }
            return (claims.entries, claims.bytes + expiry.bytes, content.lmdb.mapBytes)
        }
    }

    /// The most bytes that were ever in use.
    var highWaterBytes: Int { content.withLock { $0?.lmdb.highWaterBytes ?? 0 } }

    /// How many transactions changed it, for the tests of what shares one.
    var transactionCount: Int { content.withLock { $0?.lmdb.transactionCount ?? 0 } }

    /// Makes room for a store that may hold more. Called with the directory locked.
    func grow(to bytes: Int) throws(StoreOpenError) {
        try content.withLock { content throws(StoreOpenError) in
            guard let content, content.lmdb.mapBytes < bytes else { return }
            // Another process may have made it larger than that already.
            let bytes = max(bytes, place.dataFile().bytes)
            try place.reserve(content.lmdb.descriptor, bytes: bytes)
            do throws(LMDBError) {
                try content.lmdb.setMapBytes(bytes)
            } catch {
                throw place.cannotOpen(error, bytes: bytes)
            }
        }
    }

    /// Closes the file. Everything answers as if the disk were gone from then on.
    func close() {
        content.withLock { $0 = nil }
    }

    /// Begins a transaction, after mapping more of the file when another process made it larger.
    ///
    /// Readers of this process take LMDB's writing lock too, for less than a microsecond: so they
    /// have no slot that would have to be cleared up after a kill.
    @inline(__always)
    private static func begin(
        _ content: Content, at place: ClaimDirectory, readOnly: Bool = false
    ) throws(LMDBError) -> LMDBTransaction {
        do throws(LMDBError) {
            return try content.lmdb.begin(readOnly: readOnly)
        } catch {
            if error != .mapResized { throw error }
            try adoptSize(of: content, at: place)
            return try content.lmdb.begin(readOnly: readOnly)
        }
    }

    /// LMDB sets the file's length to that of the map, so a length that is read while another
    /// process makes the file larger would cut it off under its feet: hence the lock.
    private static func adoptSize(of content: Content, at place: ClaimDirectory) throws(LMDBError) {
        guard (try? place.lock(patienceMilliseconds: 100)) != nil else { throw .mapResized }
        defer { place.unlock() }
        guard let status = try? Syscalls.status(of: content.lmdb.descriptor) else {
            throw .mapResized
        }
        try content.lmdb.setMapBytes(Int(status.size))
    }

    private static func header(of content: Content, in transaction: borrowing LMDBTransaction)
        throws(LMDBError) -> FileHeader
    {
        guard
            let header = try transaction.value(
                of: FileHeader.key, in: content.main, as: FileHeader.self)
        else { throw .notFound }
        return header
    }
}

extension FileHeader {
    /// From which second on the file knows all claims.
    ///
    /// - Parameter bootSecond: When the machine booted by the clock that the request goes by. A
    ///   clock that was behind when the file was made, and is right now, tells better when that
    ///   was. It has to differ by two seconds: what is rounded here must not move the border.
    func reliableSince(bootSecond: Int64) -> Int64 {
        max(reliableSince, bootSecond &+ uptime &- 1)
    }
}

/// A claim among those that are made in one transaction.
struct TurnClaim {
    let key: ClaimKey
    let issuedAt: Int64
    let retainedUntil: Int64
    /// When the machine booted, by the clock that the request goes by.
    let bootSecond: Int64
    /// Set by the transaction.
    var outcome = ClaimOutcome.unavailable(.system)
}
