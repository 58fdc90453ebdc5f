internal import Glibc
internal import Reactor

/// Reads small files that somebody else writes: whole or not at all, and never something that
/// blocks.
enum KeyFile {
    /// What a file held, and which version of it that was.
    struct Content {
        /// The whole file.
        let bytes: [UInt8]
        /// Which version of the file it was.
        let version: FileStatus
    }

    /// Why a file could not be read, as the end of a sentence.
    struct Failure: Error {
        /// As in "cannot read FILE: …".
        let reason: String
    }

    /// Reads a file, unless it still is the known version.
    ///
    /// - Parameter known: The version that was read last; nil reads in any case.
    /// - Parameter maximumBytes: A larger file is refused.
    /// - Returns: nil when the file is the known version.
    static func read(
        _ path: String, unless known: FileStatus? = nil, maximumBytes: Int
    ) throws(Failure) -> Content? {
        do throws(Errno) {
            // Not to wait for the writer of a named pipe.
            let descriptor = try Syscalls.open(path, O_RDONLY | O_NONBLOCK)
            defer { Syscalls.close(descriptor) }
            // The version is taken before the bytes: a change in between is then seen at the next
            // look.
            let version = try Syscalls.status(of: descriptor)
            if version == known { return nil }
            if !version.isRegularFile { throw Errno.invalidArgument }
            let bytes = try read(descriptor, atMost: maximumBytes + 1)
            if bytes.count > maximumBytes { throw Errno(rawValue: EFBIG) }
            return Content(bytes: bytes, version: version)
        } catch {
            switch error {
            case .invalidArgument: throw Failure(reason: "it is no regular file")
            case Errno(rawValue: EFBIG):
                throw Failure(reason: "it is larger than \(maximumBytes) bytes")
            default: throw Failure(reason: error.description)
            }
        }
    }

    /// Replaces a file in one step: a reader sees the old bytes or the new ones. Without
    /// fsync(2): what a crash of the machine leaves behind is checked when it is read, and is
    /// only a saving of time.
    ///
    /// - Throws: the kernel's error; the file is then what it was.
    static func replace(_ path: String, with bytes: [UInt8]) throws(Errno) {
        let temporary = "\(path).new"
        let descriptor = try Syscalls.open(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        do throws(Errno) {
            defer { Syscalls.close(descriptor) }
            try write(bytes, to: descriptor)
        } catch {
            try? Syscalls.unlink(temporary)
            throw error
        }
        do throws(Errno) {
            try Syscalls.rename(temporary, to: path)
        } catch {
            try? Syscalls.unlink(temporary)
            throw error
        }
    }

    private static func read(_ descriptor: Int32, atMost maximum: Int) throws(Errno) -> [UInt8] {
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { chunk.deallocate() }
        while bytes.count < maximum {
            let count = try Syscalls.read(descriptor, chunk)
            if count == 0 { break }
            bytes.append(contentsOf: chunk.prefix(count))
        }
        return bytes
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Errno) {
        var start = 0
        while start < bytes.count {
            let rest = bytes.span.extracting(droppingFirst: start)
            let written = try rest.withUnsafeBytes { rest throws(Errno) in
                try Syscalls.write(descriptor, rest)
            }
            // Nothing written and no error would repeat for ever.
            if written == 0 { throw .inputOutput }
            start += written
        }
    }
}
