/// One end of a connection between two processes of this machine, for short lines of text.
///
/// It belongs to the loop of its waiter and is not thread-safe.
public final class Channel {
    /// What the other side has said.
    public enum Message: Equatable {
        case line(String)
        /// Nothing yet; the waiter is woken when there is more.
        case nothing
        /// The other side is gone, or talks nonsense.
        case end
    }

    private static let lineLimit = 64 << 10
    private static let readSize = 4 << 10

    private let socket: Socket
    private let received = ByteBuffer(capacity: readSize)

    /// Takes over a connected descriptor.
    ///
    /// - Throws: what the kernel says about it; it is closed then.
    public init(owning descriptor: Int32, waiter: Waiter) throws(Errno) {
        socket = try Socket(owning: descriptor, loop: waiter.loop)
        socket.waiter = waiter
    }

    /// Takes over a descriptor that another process left open for this one.
    ///
    /// - Throws: what the kernel says about it.
    public convenience init(inherited descriptor: Int32, waiter: Waiter) throws(Errno) {
        try Syscalls.setUpInherited(descriptor)
        try self.init(owning: descriptor, waiter: waiter)
    }

    /// Two connected descriptors.
    public static func pair() throws(Errno) -> (near: Int32, far: Int32) {
        try Syscalls.makeSocketPair()
    }

    /// The next line, without its end.
    public func next() -> Message {
        while true {
            if let line = takeLine() { return .line(line) }
            if received.count >= Self.lineLimit { return .end }
            received.reserve(Self.readSize)
            switch try? socket.read(into: received) {
            case .bytes: continue
            case .wouldBlock: return .nothing
            case .endOfStream, nil: return .end
            }
        }
    }

    /// Says one line, which must not be long: it never waits.
    ///
    /// - Returns: false when the other side is gone, or does not read.
    @discardableResult
    public func send(_ line: String) -> Bool {
        let bytes = Array(line.utf8.prefix(Self.lineLimit - 1)) + [UInt8(ascii: "\n")]
        let result = try? bytes.withUnsafeBytes { bytes throws(Errno) in try socket.write(bytes) }
        return result == .bytes(bytes.count)
    }

    /// Ends the connection. Closing twice is allowed.
    public func close() {
        socket.close()
    }

    private func takeLine() -> String? {
        let bytes = received.withUnsafeBytes { Array($0) }
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        received.consume(end + 1)
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
