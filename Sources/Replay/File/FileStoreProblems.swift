internal import Reactor

/// What an operator can meet, in one place: what is wrong, where, and what to do.
extension ClaimDirectory {
    /// By the magic numbers of statfs(2): maps of these are not one memory for all processes, or
    /// their locks are not, or a full disk shows too late.
    static let unsuitableFileSystems: [UInt32: String] = [
        0x0000_6969: "NFS",
        0x0000_517B: "SMB",
        0xFF53_4D42: "CIFS",
        0xFE53_4D42: "SMB",
        0x0102_1997: "9P",
        0x5346_414F: "AFS",
        0x00C3_6400: "Ceph",
        0x6573_5546: "FUSE",
        0x0BD0_0BD0: "Lustre",
        0x4750_4653: "GPFS",
    ]

    /// The folder itself is not usable.
    static func cannotUse(_ path: String, _ error: Errno) -> StoreOpenError {
        let hint =
            switch error {
            case .noSuchFile: "create the folder above it, or set [server] state_directory"
            case .permissionDenied, .readOnlyFileSystem:
                "make it writable for the user that portcullis runs as, or set [server] "
                    + "state_directory to a folder that is"
            case .fileExists, .notDirectory:
                "move away what is there, or set [server] state_directory to another folder"
            case .noSpace, .quotaExceeded:
                "make room there, or set [server] state_directory to a disk with more"
            default: "correct that, or set [server] state_directory to another folder"
            }
        return StoreOpenError("cannot keep claims in \(path): \(error)", hint: hint)
    }

    /// The folder is on a file system that cannot hold a shared map.
    static func unsuitable(_ path: String, _ name: String) -> StoreOpenError {
        StoreOpenError(
            "cannot keep claims in \(path): it is on a \(name) file system, where processes do not "
                + "share memory reliably",
            hint: "set [server] state_directory to a local disk (ext4, XFS, Btrfs) or a tmpfs; to "
                + "share claims between machines, set [replay] store = \"redis\"")
    }

    /// Another process has the folder locked and does not let go.
    static func isBusy(_ path: String) -> StoreOpenError {
        StoreOpenError(
            "cannot open the claims in \(path): another process has been opening them for seconds",
            hint: "look for a portcullis process that is stopped or waits for its disk "
                + "(ps -o pid,stat,args -C portcullis), let it go on or end it, and start again")
    }

    /// The disk space of the file is not to be had.
    func cannotReserve(_ error: Errno, bytes: Int) -> StoreOpenError {
        let hint =
            switch error {
            case .noSpace, .quotaExceeded:
                "make room there, lower [replay] max_entries, or set [server] state_directory to a "
                    + "disk with more"
            case .fileTooBig:
                "raise the limit of a file's size (ulimit -f, LimitFSIZE=), or lower [replay] "
                    + "max_entries"
            case .notSupported:
                "its file system cannot reserve space (fallocate): set [server] state_directory to "
                    + "ext4, XFS, Btrfs or a tmpfs"
            default: "correct that, or set [server] state_directory to another folder"
            }
        return StoreOpenError("cannot reserve \(bytes) bytes for \(dataPath): \(error)", hint: hint)
    }

    /// Does what LMDB may refuse, and says for people what it said.
    func naming<R>(bytes: Int, _ body: () throws(LMDBError) -> R) throws(StoreOpenError) -> R {
        do throws(LMDBError) {
            return try body()
        } catch {
            throw cannotOpen(error, bytes: bytes)
        }
    }

    /// LMDB does not open the file.
    func cannotOpen(_ error: LMDBError, bytes: Int) -> StoreOpenError {
        switch error.errno {
        case .noSpace, .quotaExceeded, .fileTooBig:
            return cannotReserve(error.errno ?? .noSpace, bytes: bytes)
        case .noMemory:
            return StoreOpenError(
                "cannot map \(bytes) bytes of \(dataPath): \(error)",
                hint: "raise the limit of address space (ulimit -v, LimitAS=), or lower [replay] "
                    + "max_entries")
        case .permissionDenied, .readOnlyFileSystem:
            return StoreOpenError(
                "cannot open \(dataPath): \(error)",
                hint: "run as the user that owns the file and its \"-lock\" beside it")
        case .some:
            return StoreOpenError(
                "cannot open \(dataPath): \(error)",
                hint: "correct that, or set [server] state_directory to another folder")
        case nil:
            return StoreOpenError(
                "cannot use \(dataPath): \(error)",
                hint: "it is damaged, or no file of claims: stop every portcullis that uses it, "
                    + "and remove it and the \"-lock\" beside it; tokens issued until then are "
                    + "refused afterwards, new ones are not")
        }
    }

    /// The file was written by another version of the program.
    func isOtherVersion(_ version: UInt64) -> StoreOpenError {
        StoreOpenError(
            "cannot use \(dataPath): it has format \(version), and this program has format "
                + "\(FileHeader.currentVersion)",
            hint: "stop every portcullis that uses it, then remove it and the \"-lock\" beside it "
                + "and start this one (tokens issued until then are refused, new ones are not), or "
                + "go on with the version that wrote it")
    }
}
