internal import CLMDB
internal import Reactor

/// What LMDB says went wrong: one of its own negative codes, or an errno.
struct LMDBError: Error, Equatable, CustomStringConvertible {
    let code: Int32

    static let mapFull = LMDBError(code: MDB_MAP_FULL)
    /// Another process made the file larger than this one has mapped.
    static let mapResized = LMDBError(code: MDB_MAP_RESIZED)
    static let notFound = LMDBError(code: MDB_NOTFOUND)

    /// The errno, when the operating system is to blame.
    var errno: Errno? { code > 0 ? Errno(rawValue: code) : nil }

    var description: String {
        if let errno { return errno.description }
        guard let text = mdb_strerror(code) else { return "LMDB error \(code)" }
        return String(cString: text)
    }

    static func check(_ code: Int32) throws(LMDBError) {
        if code != MDB_SUCCESS { throw LMDBError(code: code) }
    }
}

/// An open LMDB file; closed when it goes. A process must not open a file twice, and must not use it
/// on two threads at once: transactions and changes of the map would meet.
///
/// Unsafe inside, and safe because `environment` lives exactly as long as this object, and no
/// transaction outlives the function that holds the object.
final class LMDBFile {
    /// A table of the file.
    struct Table {
        fileprivate let index: MDB_dbi
    }

    private let environment: OpaquePointer

    /// Opens a file, and makes it if `readOnly` is not set.
    ///
    /// - Parameters:
    ///   - mapBytes: How large it may get; 0 for what its makers chose. Never less than the file
    ///     has: LMDB would cut it off under the other processes that have it mapped.
    static func open(path: String, mapBytes: Int, tables: Int, readOnly: Bool) throws(LMDBError)
        -> LMDBFile
    {
        var created: OpaquePointer?
        try LMDBError.check(mdb_env_create(&created))
        guard let created else { throw LMDBError(code: MDB_PANIC) }
        // From here on it is closed whatever happens, as LMDB demands even when opening failed.
        let file = LMDBFile(owning: created)
        try LMDBError.check(mdb_env_set_maxdbs(created, MDB_dbi(tables)))
        if mapBytes > 0 { try LMDBError.check(mdb_env_set_mapsize(created, mapBytes)) }
        // No reader slot is bound to a thread: an inspecting task may go on on another one.
        let always = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD
        // Nothing is synced: the page cache outlives the process, and a reboot starts a new file.
        let mode = readOnly ? MDB_RDONLY : MDB_WRITEMAP | MDB_NOSYNC
        try LMDBError.check(mdb_env_open(created, path, UInt32(always | mode), 0o600))
        return file
    }

    private init(owning environment: OpaquePointer) {
        self.environment = environment
    }

    deinit {
        mdb_env_close(environment)
    }

    /// The descriptor of the file, which stays LMDB's.
    var descriptor: Int32 {
        var descriptor: mdb_filehandle_t = -1
        _ = mdb_env_get_fd(environment, &descriptor)
        return descriptor
    }

    /// How much of the file this process has mapped.
    var mapBytes: Int {
        var info = MDB_envinfo()
        _ = mdb_env_info(environment, &info)
        return info.me_mapsize
    }

    /// The highest page that was ever used, in bytes.
    var highWaterBytes: Int {
        var info = MDB_envinfo()
        var status = MDB_stat()
        _ = mdb_env_info(environment, &info)
        _ = mdb_env_stat(environment, &status)
        return (info.me_last_pgno + 1) * Int(status.ms_psize)
    }

    /// How many transactions changed the file.
    var transactionCount: Int {
        var info = MDB_envinfo()
        _ = mdb_env_info(environment, &info)
        return info.me_last_txnid
    }

    /// Maps more of the file. No transaction of this process may be open.
    func setMapBytes(_ bytes: Int) throws(LMDBError) {
        try LMDBError.check(mdb_env_set_mapsize(environment, bytes))
    }

    /// Frees what processes that died while reading still hold.
    func dropDeadReaders() {
        var dead: Int32 = 0
        _ = mdb_reader_check(environment, &dead)
    }

    /// Begins a transaction. One that writes waits for those of other processes, and has to end on
    /// the thread that began it: it never outlives a synchronous function here.
    @inline(__always)
    func begin(readOnly: Bool = false) throws(LMDBError) -> LMDBTransaction {
        var transaction: OpaquePointer?
        try LMDBError.check(
            mdb_txn_begin(environment, nil, readOnly ? UInt32(MDB_RDONLY) : 0, &transaction))
        guard let transaction else { throw LMDBError(code: MDB_PANIC) }
        return LMDBTransaction(transaction)
    }
}

/// A transaction: undone when it goes without `commit`.
///
/// Unsafe inside, and safe because the pointer is used by this value only, which cannot be copied.
/// Keys and values are values without pointers and without padding, whose bytes LMDB copies.
struct LMDBTransaction: ~Copyable {
    private let transaction: OpaquePointer

    fileprivate init(_ transaction: OpaquePointer) {
        self.transaction = transaction
    }

    deinit {
        mdb_txn_abort(transaction)
    }

    /// Makes what was done last. The transaction is over, whatever it says.
    @inline(__always)
    consuming func commit() throws(LMDBError) {
        let transaction = transaction
        discard self
        try LMDBError.check(mdb_txn_commit(transaction))
    }

    /// The table without a name, in which LMDB keeps the names of the others.
    func mainTable() throws(LMDBError) -> LMDBFile.Table {
        var index: MDB_dbi = 0
        try LMDBError.check(mdb_dbi_open(transaction, nil, 0, &index))
        return LMDBFile.Table(index: index)
    }

    /// A table by name.
    func table(_ name: String, create: Bool) throws(LMDBError) -> LMDBFile.Table {
        var index: MDB_dbi = 0
        try LMDBError.check(
            mdb_dbi_open(transaction, name, create ? UInt32(MDB_CREATE) : 0, &index))
        return LMDBFile.Table(index: index)
    }

    /// How many entries a table has, and how many bytes its pages take.
    @inline(__always)
    func measure(_ table: LMDBFile.Table) throws(LMDBError) -> (entries: Int, bytes: Int) {
        var status = MDB_stat()
        try LMDBError.check(mdb_stat(transaction, table.index, &status))
        let pages = status.ms_branch_pages + status.ms_leaf_pages + status.ms_overflow_pages
        return (status.ms_entries, pages * Int(status.ms_psize))
    }

    /// The value of a key; nil when there is none, or one of another size.
    @inline(__always)
    func value<Key: BitwiseCopyable, Value: BitwiseCopyable>(
        of key: Key, in table: LMDBFile.Table, as type: Value.Type
    ) throws(LMDBError) -> Value? {
        guard let found = try find(key, in: table) else { return nil }
        return Self.load(found, as: type)
    }

    /// The first bytes of a key's value, however long that is; nil when there are not so many.
    func start<Key: BitwiseCopyable, Value: BitwiseCopyable>(
        of key: Key, in table: LMDBFile.Table, as type: Value.Type
    ) throws(LMDBError) -> Value? {
        guard var found = try find(key, in: table) else { return nil }
        found.mv_size = min(found.mv_size, MemoryLayout<Value>.size)
        return Self.load(found, as: type)
    }

    /// Adds a key.
    ///
    /// - Returns: false when it is there already; nothing changes then.
    @inline(__always)
    func insert<Key: BitwiseCopyable, Value: BitwiseCopyable>(
        _ key: Key, _ value: Value, into table: LMDBFile.Table
    ) throws(LMDBError) -> Bool {
        let code = put(key, value, into: table, flags: UInt32(MDB_NOOVERWRITE))
        if code == MDB_KEYEXIST { return false }
        try LMDBError.check(code)
        return true
    }

    /// Sets the value of a key, new or old.
    @inline(__always)
    func set<Key: BitwiseCopyable, Value: BitwiseCopyable>(
        _ key: Key, to value: Value, in table: LMDBFile.Table
    ) throws(LMDBError) {
        try LMDBError.check(put(key, value, into: table, flags: 0))
    }

    /// Removes a key, if it is there.
    @inline(__always)
    func remove<Key: BitwiseCopyable>(_ key: Key, from table: LMDBFile.Table) throws(LMDBError) {
        let code = Self.withBytes(of: key) { mdb_del(transaction, table.index, &$0, nil) }
        if code != MDB_NOTFOUND { try LMDBError.check(code) }
    }

    /// The lowest key of a table, compared byte by byte; nil when the table is empty.
    func firstKey<Key: BitwiseCopyable>(of table: LMDBFile.Table, as type: Key.Type)
        throws(LMDBError) -> Key?
    {
        var opened: OpaquePointer?
        try LMDBError.check(mdb_cursor_open(transaction, table.index, &opened))
        guard let cursor = opened else { throw LMDBError(code: MDB_PANIC) }
        defer { mdb_cursor_close(cursor) }
        var key = MDB_val()
        var value = MDB_val()
        let code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        if code == MDB_NOTFOUND { return nil }
        try LMDBError.check(code)
        guard let loaded = Self.load(key, as: type) else { throw LMDBError(code: MDB_CORRUPTED) }
        return loaded
    }

    /// Where a key's value lies, until something else happens in the transaction; nil when there is
    /// no such key.
    @inline(__always)
    private func find<Key: BitwiseCopyable>(_ key: Key, in table: LMDBFile.Table)
        throws(LMDBError) -> MDB_val?
    {
        var found = MDB_val()
        let code = Self.withBytes(of: key) { mdb_get(transaction, table.index, &$0, &found) }
        if code == MDB_NOTFOUND { return nil }
        try LMDBError.check(code)
        return found
    }

    @inline(__always)
    private func put<Key: BitwiseCopyable, Value: BitwiseCopyable>(
        _ key: Key, _ value: Value, into table: LMDBFile.Table, flags: UInt32
    ) -> Int32 {
        Self.withBytes(of: key) { keyBytes in
            Self.withBytes(of: value) { valueBytes in
                mdb_put(transaction, table.index, &keyBytes, &valueBytes, flags)
            }
        }
    }

    /// Safe: LMDB reads the bytes during the call and never writes them, although its type says so.
    @inline(__always)
    private static func withBytes<T: BitwiseCopyable>(
        of value: T, _ body: (inout MDB_val) -> Int32
    ) -> Int32 {
        withUnsafeBytes(of: value) { bytes in
            var described = MDB_val(
                mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
            return body(&described)
        }
    }

    /// Safe: copied before anything else happens in the transaction, and only when the size is
    /// right. LMDB aligns nothing, so neither does this.
    @inline(__always)
    private static func load<T: BitwiseCopyable>(_ found: MDB_val, as type: T.Type) -> T? {
        guard found.mv_size == MemoryLayout<T>.size, let bytes = found.mv_data else { return nil }
        return bytes.loadUnaligned(as: type)
    }
}
