internal import Reactor

extension ClaimFile {
    private static let bytesPerEntry = 160
    private static let claimsName = "claims"
    private static let expiryName = "expiry"

    /// Disk space for a number of claims, in bytes: what they took at worst, with room to spare
    /// (docs/decisions/0051-file-store.md).
    ///
    /// - Parameter entryLimit: 1 or more; absurd numbers give absurd sizes, which no disk has.
    static func bytes(forEntries entryLimit: Int) -> Int {
        let mebibyte = 1 << 20
        let (claims, overflow) = entryLimit.multipliedReportingOverflow(by: bytesPerEntry)
        let bounded = overflow ? .max / 2 : min(claims, .max / 2)
        return (bounded / mebibyte + 2) * mebibyte
    }

    /// Opens a file for claiming. The directory is locked, and this process has the file open
    /// nowhere else.
    ///
    /// - Parameter fresh: The header of a new file.
    static func open(_ place: ClaimDirectory, bytes: Int, fresh: FileHeader)
        throws(StoreOpenError) -> ClaimFile
    {
        let present = place.dataFile().bytes
        // Never less than it has: LMDB would cut it off, and others may have it mapped.
        let bytes = max(bytes, present)
        do throws(StoreOpenError) {
            try place.reserveLockFile()
            if present > 0 { try place.reserveData(bytes) }
            let content = try openContent(
                of: place, bytes: bytes, fresh: fresh, isNew: present == 0)
            return ClaimFile(place: place, isReadOnly: false, content: content)
        } catch {
            if present == 0 { place.removeData() }
            throw error
        }
    }

    private static func openContent(
        of place: ClaimDirectory, bytes: Int, fresh: FileHeader, isNew: Bool
    ) throws(StoreOpenError) -> Content {
        let lmdb = try place.naming(bytes: bytes) { () throws(LMDBError) in
            try LMDBFile.open(path: place.dataPath, mapBytes: bytes, tables: 2, readOnly: false)
        }
        // LMDB itself has to make a new file; it writes nothing into the map doing so.
        if isNew { try place.reserve(lmdb.descriptor, bytes: bytes) }
        let found = try place.naming(bytes: bytes) { () throws(LMDBError) in
            let transaction = try lmdb.begin()
            let main = try transaction.mainTable()
            let version = try version(in: transaction, main)
            // Nothing is changed when the file is another version's.
            if let version, version != FileHeader.currentVersion {
                return Tables.otherVersion(version)
            }
            if version == nil { try transaction.set(FileHeader.key, to: fresh, in: main) }
            let claims = try transaction.table(claimsName, create: true)
            let expiry = try transaction.table(expiryName, create: true)
            try transaction.commit()
            return .found(main: main, claims: claims, expiry: expiry)
        }
        return try found.content(lmdb, at: place)
    }

    /// Opens a file for looking; nil when a process died before it had made it.
    static func openForInspection(_ place: ClaimDirectory) throws(StoreOpenError) -> ClaimFile? {
        let lmdb = try place.naming(bytes: 0) { () throws(LMDBError) in
            try LMDBFile.open(path: place.dataPath, mapBytes: 0, tables: 2, readOnly: true)
        }
        let found = try place.naming(bytes: 0) { () throws(LMDBError) -> Tables? in
            let transaction = try lmdb.begin(readOnly: true)
            let main = try transaction.mainTable()
            guard let version = try version(in: transaction, main) else { return nil }
            if version != FileHeader.currentVersion { return .otherVersion(version) }
            let claims = try transaction.table(claimsName, create: false)
            let expiry = try transaction.table(expiryName, create: false)
            // The handles of tables stay valid only when their transaction ends well.
            try transaction.commit()
            return .found(main: main, claims: claims, expiry: expiry)
        }
        guard let content = try found?.content(lmdb, at: place) else { return nil }
        return ClaimFile(place: place, isReadOnly: true, content: content)
    }

    private static func version(
        in transaction: borrowing LMDBTransaction, _ main: LMDBFile.Table
    ) throws(LMDBError) -> UInt64? {
        try transaction.start(of: FileHeader.key, in: main, as: UInt64.self)
    }

    private enum Tables {
        case found(main: LMDBFile.Table, claims: LMDBFile.Table, expiry: LMDBFile.Table)
        case otherVersion(UInt64)

        func content(_ lmdb: LMDBFile, at place: ClaimDirectory) throws(StoreOpenError) -> Content {
            switch self {
            case .found(let main, let claims, let expiry):
                Content(lmdb: lmdb, main: main, claims: claims, expiry: expiry)
            case .otherVersion(let version): throw place.isOtherVersion(version)
            }
        }
    }
}
