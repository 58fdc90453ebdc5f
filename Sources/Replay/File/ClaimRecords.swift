/// What the tables of the file hold. Layouts are fixed by `FileHeader.version`; all fields of a
/// record are eight bytes wide, so no record has padding.

/// The one record in the file's main table, in the byte order of the machine.
struct FileHeader: BitwiseCopyable, Equatable {
    /// The format that this program writes. All formats there will ever be keep a header that
    /// starts with its number, under the same key.
    static let currentVersion: UInt64 = 2
    /// "header" and two zeros, so that it cannot be the name of a table.
    static let key: UInt64 = 0x0000_7265_6461_6568

    /// The format of the file.
    var version: UInt64
    /// See `ClaimStore.reliableSince`.
    var reliableSince: Int64
    /// The highest `retainedUntil` that was ever purged: what is not later may have been there.
    var forgottenThrough: Int64
    /// When the file was made, in seconds since the machine's boot, which no setting of the clock
    /// changes.
    var uptime: Int64
}

/// The key of a claim, its value being the second until which it is retained (Int64).
struct ClaimRecordKey: BitwiseCopyable {
    var high: UInt64
    var low: UInt64

    init(_ key: ClaimKey) {
        high = key.high
        low = key.low
    }
}

/// A line of the index by expiry. LMDB compares keys byte by byte, hence the big-endian second.
///
/// The index is a plain table. One with duplicates (`MDB_DUPFIXED`) takes a fifth less space, but
/// goes through the code of LMDB that needed most of its corrections.
struct ExpiryRecordKey: BitwiseCopyable {
    private var bigEndianSecond: UInt64
    private var high: UInt64
    private var low: UInt64

    init(second: Int64, key: ClaimKey) {
        // Seconds before 1970 would sort as the latest; they are never retained anyway.
        bigEndianSecond = UInt64(max(0, second)).bigEndian
        high = key.high
        low = key.low
    }

    var second: Int64 { Int64(clamping: UInt64(bigEndian: bigEndianSecond)) }
    var key: ClaimKey { ClaimKey(high: high, low: low) }
}

/// No value: everything is in the key.
struct EmptyRecord: BitwiseCopyable {}
