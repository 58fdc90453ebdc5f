internal import Glibc

/// What tells one version of a file from another, and what it takes, as fstat(2) has it.
public struct FileStatus: Sendable, Equatable {
    /// Not a folder, device or pipe.
    public let isRegularFile: Bool
    /// The permission bits: who may read, write and execute.
    public let permissions: UInt32
    /// Bytes.
    public let size: Int64
    /// Bytes of the disk that it takes.
    public let allocatedBytes: Int64
    /// Of the file system and, in it, of the file: a renamed-over path has another file.
    public let device: UInt64
    /// Changes when another file takes the name.
    public let inode: UInt64
    /// Last change of the content, nanoseconds since 1970.
    public let modifiedNanoseconds: Int64

    /// What fstat(2) said.
    init(_ status: stat) {
        isRegularFile = status.st_mode & S_IFMT == S_IFREG
        permissions = status.st_mode & 0o7777
        size = Int64(status.st_size)
        allocatedBytes = Int64(status.st_blocks) &* 512
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        modifiedNanoseconds =
            Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
    }
}

extension Syscalls {
    /// fstat(2).
    public static func status(of descriptor: Int32) throws(Errno) -> FileStatus {
        var status = stat()
        _ = try checked(.status(descriptor)) { fstat(descriptor, &status) }
        return FileStatus(status)
    }

    /// stat(2): what a path leads to, through symbolic links.
    public static func status(ofPath path: String) throws(Errno) -> FileStatus {
        var status = stat()
        _ = try checked(.statusOfPath(path)) { stat(path, &status) }
        return FileStatus(status)
    }

    /// rename(2): replaces `target` in one step.
    public static func rename(_ path: String, to target: String) throws(Errno) {
        _ = try checked(.rename(path)) { Glibc.rename(path, target) }
    }
}
