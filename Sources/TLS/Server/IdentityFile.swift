internal import Glibc
internal import Reactor

/// A small file that was read whole: a certificate, a key, an OCSP response.
struct IdentityFile {
    private static let maximumBytes = 1 << 20

    /// As configured.
    let path: String
    /// The whole content.
    let bytes: [UInt8]
    /// The permission bits.
    let permissions: UInt32

    /// Reads a file. Never waits: a pipe or a device is no certificate.
    init(_ path: String) throws(CertificateError) {
        self.path = path
        do throws(Errno) {
            let descriptor = try Syscalls.open(path, O_RDONLY | O_NONBLOCK)
            defer { Syscalls.close(descriptor) }
            let status = try Syscalls.status(of: descriptor)
            permissions = status.permissions
            if !status.isRegularFile || status.size > Self.maximumBytes {
                throw Errno.invalidArgument
            }
            bytes = try Self.read(descriptor)
        } catch {
            let remedy = "check the path, and that this process's user may read it"
            let reason =
                error == .invalidArgument
                ? "is no regular file of at most 1 MiB" : "cannot be read: \(error)"
            let isMissing = error == .noSuchFile || error == .notDirectory
            throw CertificateError(
                isMissing ? .missing : .unreadable, path, reason, remedy: remedy)
        }
    }

    /// Whether the text of the file holds `text`.
    func contains(_ text: StaticString) -> Bool {
        let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        guard bytes.count >= wanted.count else { return false }
        return (0...bytes.count - wanted.count).contains { start in
            bytes[start..<start + wanted.count].elementsEqual(wanted)
        }
    }

    private static func read(_ descriptor: Int32) throws(Errno) -> [UInt8] {
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 1)
        defer { chunk.deallocate() }
        while bytes.count <= maximumBytes {
            let count = try Syscalls.read(descriptor, chunk)
            if count == 0 { break }
            bytes.append(contentsOf: chunk.prefix(count))
        }
        return bytes
    }
}
