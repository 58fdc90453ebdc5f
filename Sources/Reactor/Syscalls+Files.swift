internal import CPlatform
internal import Glibc

/// What a store that lives in a file asks of the kernel.
extension Syscalls {
    /// stat(2).
    public static func status(at path: String) throws(Errno) -> FileStatus {
        var status = stat()
        _ = try checked(.statusOfPath(path)) { stat(path, &status) }
        return FileStatus(status)
    }

    /// open(2) of a folder, for what is asked about it.
    public static func openDirectory(_ path: String) throws(Errno) -> Int32 {
        try open(path, O_RDONLY | O_DIRECTORY)
    }

    /// open(2) of a file that exists, for reading.
    public static func openForReading(_ path: String) throws(Errno) -> Int32 {
        try open(path, O_RDONLY)
    }

    /// open(2) of a file for reading and writing; a new one is the user's alone.
    public static func openForWriting(_ path: String) throws(Errno) -> Int32 {
        try open(path, O_RDWR | O_CREAT, mode: 0o600)
    }

    /// opendir(3), readdir(3): what is in a folder, in no order.
    public static func names(in directory: String) throws(Errno) -> [String] {
        if case .failure(let error)? = answer(.openDirectory(directory)) { throw error }
        guard let stream = opendir(directory) else { throw Errno(rawValue: Glibc.errno) }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            // Safe: the kernel ends the name with a zero inside the entry, which stays valid until
            // the next readdir.
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// flock(2), exclusive, without waiting. Closing the descriptor unlocks.
    ///
    /// - Returns: false while another descriptor holds the lock.
    public static func tryLock(_ descriptor: Int32) throws(Errno) -> Bool {
        do {
            _ = try checked(.lock(descriptor)) { flock(descriptor, LOCK_EX | LOCK_NB) }
            return true
        } catch .wouldBlock {
            return false
        }
    }

    /// flock(2): gives the lock back.
    public static func unlock(_ descriptor: Int32) {
        _ = flock(descriptor, LOCK_UN)
    }

    /// poll(2) of nothing: keeps the thread waiting.
    public static func pause(milliseconds: Int32) {
        _ = Glibc.poll(nil, 0, milliseconds)
    }

    /// fallocate(2): takes disk space for the first `bytes` of a file, without making it longer.
    ///
    /// The kernel's own call: posix_fallocate(3) writes zeros by hand where a file system cannot do
    /// it, which destroys what others write meanwhile. And only if the space is there: some file
    /// systems fill the disk before they find out, and a file beyond RLIMIT_FSIZE is a signal.
    public static func reserve(_ descriptor: Int32, bytes: Int) throws(Errno) {
        if bytes > CPlatform_file_size_limit() { throw .fileTooBig }
        let lacking = Int64(bytes) &- (try status(of: descriptor).allocatedBytes)
        if lacking > CPlatform_free_bytes(descriptor) { throw .noSpace }
        _ = try checked(.reserve(descriptor)) { CPlatform_reserve(descriptor, Int64(bytes)) }
    }

    /// ftruncate(2).
    public static func truncate(_ descriptor: Int32, bytes: Int) throws(Errno) {
        _ = try checked(.truncate(descriptor)) { ftruncate(descriptor, off_t(bytes)) }
    }

    /// statfs(2): the magic number of the kind of file system; 0 when nobody knows.
    public static func fileSystemMagic(of descriptor: Int32) -> UInt32 {
        CPlatform_file_system_magic(descriptor)
    }

    /// clock_gettime(2): how long the machine has slept since it booted, CLOCK_BOOTTIME less
    /// CLOCK_MONOTONIC, in nanoseconds.
    public static func sleptNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        let sinceBoot = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
        return max(0, sinceBoot &- monotonicNanoseconds())
    }
}

extension Errno {
    /// EDQUOT: the user's share of the disk is used up.
    public static let quotaExceeded = Errno(rawValue: EDQUOT)
    /// EFBIG: longer than a file may be (RLIMIT_FSIZE).
    public static let fileTooBig = Errno(rawValue: EFBIG)
    /// EEXIST.
    public static let fileExists = Errno(rawValue: EEXIST)
    /// ENOTDIR.
    public static let notDirectory = Errno(rawValue: ENOTDIR)
    /// EROFS.
    public static let readOnlyFileSystem = Errno(rawValue: EROFS)
    /// EOPNOTSUPP: the file system cannot do that.
    public static let notSupported = Errno(rawValue: EOPNOTSUPP)
}
