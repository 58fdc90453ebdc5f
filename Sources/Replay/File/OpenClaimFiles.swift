internal import Reactor
internal import Synchronization

/// The files of claims that this process has open. LMDB's locks belong to processes, so a process
/// that opened a file twice would lose them with the first of the two that is closed.
enum OpenClaimFiles {
    private struct Entry {
        let file: ClaimFile
        var users: Int
    }

    private static let entries = Mutex<[ClaimDirectory.Identity: Entry]>([:])

    /// A file for claiming; made when it is not there.
    ///
    /// - Parameters:
    ///   - bytes: How large the file has to be at least.
    ///   - now: Decides what a new file can vouch for.
    static func open(directory: String, boot: Boot, bytes: Int, now: ClaimInstant)
        throws(StoreOpenError) -> ClaimFile
    {
        let place = try ClaimDirectory(path: directory, bootID: boot.id, create: true)
        let identity = try place.identity()
        return try entries.withLock { entries throws(StoreOpenError) in
            try place.checkSuitable()
            try place.lock()
            defer { place.unlock() }
            if let entry = entries[identity] {
                if entry.file.isReadOnly {
                    throw StoreOpenError(
                        "cannot open the claims in \(directory): this process inspects them",
                        hint: "close the inspecting store first")
                }
                try entry.file.grow(to: bytes)
                entries[identity]?.users += 1
                return entry.file
            }
            try place.removeOtherBoots()
            // A file of another boot may have come from another machine, with its folder: what was
            // claimed in it may have been issued until this moment.
            let fresh = FileHeader(
                version: FileHeader.currentVersion, reliableSince: now.wallSeconds &+ 1,
                forgottenThrough: .min, uptime: boot.uptime(at: now))
            let file = try ClaimFile.open(place, bytes: bytes, fresh: fresh)
            entries[identity] = Entry(file: file, users: 1)
            return file
        }
    }

    /// A file for looking; nil when there is none of this boot. Makes and changes nothing.
    static func openForInspection(directory: String, bootID: String) throws(StoreOpenError)
        -> ClaimFile?
    {
        do throws(Errno) {
            _ = try Syscalls.status(at: directory)
        } catch {
            if error == .noSuchFile { return nil }
        }
        let place = try ClaimDirectory(path: directory, bootID: bootID, create: false)
        let identity = try place.identity()
        return try entries.withLock { entries throws(StoreOpenError) in
            if let entry = entries[identity] {
                entries[identity]?.users += 1
                return entry.file
            }
            try place.lock()
            defer { place.unlock() }
            let data = place.dataFile()
            if data.bytes == 0 || !data.hasLockFile { return nil }
            guard let file = try ClaimFile.openForInspection(place) else { return nil }
            entries[identity] = Entry(file: file, users: 1)
            return file
        }
    }

    /// One user less; the last one closes the file.
    static func close(_ file: ClaimFile) {
        entries.withLock { entries in
            guard let identity = entries.first(where: { $0.value.file === file })?.key else {
                return
            }
            entries[identity]?.users -= 1
            if entries[identity]?.users == 0 {
                entries[identity] = nil
                file.close()
            }
        }
    }
}
