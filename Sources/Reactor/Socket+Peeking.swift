/// Looking at bytes that belong to somebody else in part: what stands in front of a TLS handshake.
extension Socket {
    /// Copies up to `limit` bytes of what is there into the free space of `buffer`, which must have
    /// some, and leaves them to be read.
    ///
    /// - Returns: `wouldBlock` when nothing has come since the last look. The waiter is woken when
    ///   more comes.
    /// - Throws: the kernel's error; the connection is then broken.
    public func peek(into buffer: ByteBuffer, limit: Int) throws(Errno) -> TransferResult {
        if !registration.isReadable { return .wouldBlock }
        // The next bytes, and the end, raise an edge; what is there already does not again.
        registration.isReadable = registration.isPeerClosed
        var result = TransferResult.wouldBlock
        _ = try buffer.appendUnsafe { free throws(Errno) in
            let count: Int
            do throws(Errno) {
                let room = UnsafeMutableRawBufferPointer(rebasing: free.prefix(limit))
                count = try Syscalls.peek(registration.descriptor, room)
            } catch {
                if error != .wouldBlock { throw error }
                return 0
            }
            result = count == 0 ? .endOfStream : .bytes(count)
            return count
        }
        return result
    }

    /// Takes `count` bytes that `peek` showed out of the way.
    ///
    /// - Parameter scratch: Room for them; empty again afterwards.
    /// - Throws: the kernel's error; the connection is then broken.
    public func discard(_ count: Int, scratch: ByteBuffer) throws(Errno) {
        scratch.removeAll()
        scratch.reserve(count)
        defer { scratch.removeAll() }
        var left = count
        while left > 0 {
            let taken = try scratch.appendUnsafe { free throws(Errno) in
                let room = UnsafeMutableRawBufferPointer(rebasing: free.prefix(left))
                return try Syscalls.receive(registration.descriptor, room)
            }
            if taken == 0 { throw .connectionReset }
            left -= taken
        }
        // There may be more behind them, of which no edge will tell.
        registration.isReadable = true
    }
}
