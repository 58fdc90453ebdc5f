#if DEBUG
    /// What the network brought to a socket and nobody has read.
    struct ArrivedBytes {
        private var bytes: [UInt8] = []
        private var firstUnread = 0
        /// Bytes that recv(2) with MSG_PEEK showed are there for the next recv(2).
        private(set) var isShown = false

        var isEmpty: Bool { firstUnread == bytes.count }

        /// More comes.
        mutating func append(_ more: [UInt8]) {
            bytes += more
        }

        /// Copies the first of them, as many as fit.
        ///
        /// - Returns: how many.
        mutating func show(_ memory: UnsafeMutableRawBufferPointer) -> Int {
            isShown = !isEmpty
            return copy(to: memory, atMost: .max)
        }

        /// Takes the first of them out, at most `limit` and as many as fit.
        ///
        /// - Returns: how many.
        mutating func take(_ memory: UnsafeMutableRawBufferPointer, atMost limit: Int) -> Int {
            let count = copy(to: memory, atMost: limit)
            firstUnread += count
            isShown = false
            if isEmpty {
                bytes.removeAll(keepingCapacity: true)
                firstUnread = 0
            }
            return count
        }

        private func copy(to memory: UnsafeMutableRawBufferPointer, atMost limit: Int) -> Int {
            let count = min(bytes.count - firstUnread, memory.count, limit)
            bytes.withUnsafeBytes { bytes in
                let unread = UnsafeRawBufferPointer(rebasing: bytes[firstUnread...].prefix(count))
                memory.copyMemory(from: unread)
            }
            return count
        }
    }
#endif
