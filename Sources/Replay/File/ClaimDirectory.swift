internal import Reactor

/// The folder of the file store: what may be in it, who may change it, and what can be wrong.
///
/// The file's name holds the boot id. So a file that a crash of the machine left in any state is
/// never opened again, and each boot starts with a sound one.
final class ClaimDirectory: Sendable {
    /// The folder, as it was configured.
    let path: String
    /// The file of this boot.
    let dataPath: String
    /// Open as long as this object lives: the lock of the folder hangs on it.
    private let descriptor: Int32
    private let dataName: String

    /// Which folder this is, whatever path led to it.
    struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    /// Opens a folder.
    ///
    /// - Parameter create: Make it when it is not there; the folder above must be.
    init(path: String, bootID: String, create: Bool) throws(StoreOpenError) {
        self.path = path
        dataName = "claims-\(bootID).mdb"
        dataPath = "\(path)/\(dataName)"
        do throws(Errno) {
            if create { try Self.make(path) }
            descriptor = try Syscalls.openDirectory(path)
        } catch {
            throw Self.cannotUse(path, error)
        }
    }

    deinit {
        Syscalls.close(descriptor)
    }

    /// Which folder it is.
    func identity() throws(StoreOpenError) -> Identity {
        do throws(Errno) {
            let status = try Syscalls.status(of: descriptor)
            return Identity(device: status.device, inode: status.inode)
        } catch {
            throw Self.cannotUse(path, error)
        }
    }

    /// The bytes of this boot's file, 0 when there is none, and whether its lock file is there.
    func dataFile() -> (bytes: Int, hasLockFile: Bool) {
        let status = try? Syscalls.status(at: dataPath)
        return (
            Int(clamping: status?.size ?? 0), (try? Syscalls.status(at: dataPath + "-lock")) != nil
        )
    }

    /// Checks that files can be made here, and that the kernel keeps maps of them consistent.
    func checkSuitable() throws(StoreOpenError) {
        if !Syscalls.isWritable(path) { throw Self.cannotUse(path, .permissionDenied) }
        let magic = Syscalls.fileSystemMagic(of: descriptor)
        if let name = Self.unsuitableFileSystems[magic] { throw Self.unsuitable(path, name) }
    }

    /// Takes the folder for itself: opening, making larger and removing files is done by one
    /// process at a time.
    func lock(patienceMilliseconds: Int32 = 10_000) throws(StoreOpenError) {
        var waited: Int32 = 0
        do throws(Errno) {
            while try !Syscalls.tryLock(descriptor) {
                if waited >= patienceMilliseconds { throw .wouldBlock }
                Syscalls.pause(milliseconds: 5)
                waited += 5
            }
        } catch {
            if error == .wouldBlock { throw Self.isBusy(path) }
            throw Self.cannotUse(path, error)
        }
    }

    func unlock() {
        Syscalls.unlock(descriptor)
    }

    /// Removes the files of other boots: earlier ones, and those of a machine that the folder was
    /// on before.
    func removeOtherBoots() throws(StoreOpenError) {
        do throws(Errno) {
            for name in try Syscalls.names(in: path)
            where name.hasPrefix("claims-") && !name.hasPrefix(dataName) {
                if name.hasSuffix(".mdb") || name.hasSuffix(".mdb-lock") {
                    try Syscalls.unlink("\(path)/\(name)")
                }
            }
        } catch {
            throw Self.cannotUse(path, error)
        }
    }

    /// Takes the disk space of the lock file, which LMDB maps as well. Only while the process does
    /// not have it open: closing it here would take LMDB's locks away.
    func reserveLockFile() throws(StoreOpenError) {
        try reserve(atPath: dataPath + "-lock", bytes: 1 << 16)
    }

    /// Takes the disk space of this boot's file, which is not open in this process.
    func reserveData(_ bytes: Int) throws(StoreOpenError) {
        try reserve(atPath: dataPath, bytes: bytes)
    }

    private func reserve(atPath path: String, bytes: Int) throws(StoreOpenError) {
        let file: Int32
        do throws(Errno) {
            file = try Syscalls.openForWriting(path)
        } catch {
            throw cannotOpen(LMDBError(code: error.rawValue), bytes: bytes)
        }
        defer { Syscalls.close(file) }
        try reserve(file, bytes: bytes)
    }

    /// Takes the disk space of an open file. A page of a map that the disk has no room for would
    /// kill the process when it is written.
    func reserve(_ file: Int32, bytes: Int) throws(StoreOpenError) {
        do throws(Errno) {
            try Syscalls.reserve(file, bytes: bytes)
        } catch {
            // What was taken behind the file's end is of no use to anybody.
            if let size = try? Syscalls.status(of: file).size {
                try? Syscalls.truncate(file, bytes: Int(size))
            }
            throw cannotReserve(error, bytes: bytes)
        }
    }

    /// Removes this boot's file, which nobody has used yet.
    func removeData() {
        try? Syscalls.unlink(dataPath)
        try? Syscalls.unlink(dataPath + "-lock")
    }

    private static func make(_ path: String) throws(Errno) {
        do throws(Errno) {
            try Syscalls.makeDirectory(path, mode: 0o700)
        } catch {
            if error != .fileExists { throw error }
        }
    }
}
