internal import Reactor

/// Bytes of a stream that wait for their reader. The loop lends a buffer while there are any.
struct LentBuffer {
    private var buffer: ByteBuffer?

    /// Nothing is borrowed.
    var isEmpty: Bool { buffer == nil }

    /// How many bytes wait.
    var count: Int { buffer?.count ?? 0 }

    /// Adds bytes, of which there must be some.
    mutating func append(_ bytes: UnsafeRawBufferPointer, _ memory: HTTP2Memory) {
        borrowed(from: memory).append(copying: bytes)
    }

    /// Has `write` add what it will.
    ///
    /// - Returns: what `write` does.
    mutating func append(_ memory: HTTP2Memory, _ write: (ByteBuffer) -> Bool) -> Bool {
        let buffer = borrowed(from: memory)
        let isWritten = write(buffer)
        if buffer.isEmpty { giveBack(to: memory) }
        return isWritten
    }

    /// Moves bytes from the front to where the reader wants them.
    ///
    /// - Returns: how many.
    mutating func move(to target: UnsafeMutableRawBufferPointer, _ memory: HTTP2Memory) -> Int {
        guard let buffer else { return 0 }
        let count = min(target.count, buffer.count)
        buffer.withUnsafeBytes { bytes in
            // Safe: `count` is within both, and the target is not our buffer.
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        buffer.consume(count)
        if buffer.isEmpty { giveBack(to: memory) }
        return count
    }

    /// Moves all bytes into a buffer that is not in use.
    ///
    /// - Returns: how many.
    mutating func moveAll(to target: ByteBuffer, _ memory: HTTP2Memory) -> Int {
        guard let buffer = buffer.take() else { return 0 }
        target.takeAll(of: buffer)
        memory.giveBack(buffer)
        return target.count
    }

    /// Forgets what waits.
    mutating func giveBack(to memory: HTTP2Memory) {
        if let buffer = buffer.take() { memory.giveBack(buffer) }
    }

    private mutating func borrowed(from memory: HTTP2Memory) -> ByteBuffer {
        if let buffer { return buffer }
        let buffer = memory.takeBuffer()
        self.buffer = buffer
        return buffer
    }
}
