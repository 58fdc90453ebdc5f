/// One connection as the data path sees it, whatever carries the bytes: a socket, TLS over one, or
/// one stream of an HTTP/2 connection.
///
/// Calls try and never suspend. A task that got `wouldBlock` sleeps on the transport's `waiter`,
/// which is woken when trying again may help. A transport belongs to one event loop and is not
/// thread-safe.
public protocol Transport: AnyObject {
    /// The task that is woken by this transport.
    var waiter: Waiter? { get set }
    /// There may be bytes to read, or an end.
    var isReadable: Bool { get }
    /// The peer will send no more and reads no more, as far as one can tell. Bytes may still wait to
    /// be read.
    var isPeerClosed: Bool { get }
    /// The connection is of no use any more.
    var isBroken: Bool { get }

    /// The peer said that it did nothing with the request, or nothing of it left: somebody else may
    /// be asked.
    var isRefused: Bool { get }

    /// The transport broke because what the peer sends is no message.
    var isMalformed: Bool { get }

    /// The connection works, and should end after what is under way.
    var isDueToEnd: Bool { get }

    /// Reads what is there, into the free space of `buffer`, which must have some.
    ///
    /// - Throws: what broke the connection.
    func read(into buffer: ByteBuffer) throws(Errno) -> TransferResult

    /// Writes as much as is taken of `first` and, behind it, `second`.
    ///
    /// - Throws: what broke the connection.
    func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Errno)
        -> TransferResult

    /// Sends what was taken but has not left yet, as far as it can.
    ///
    /// - Returns: whether everything that was written has left this process.
    /// - Throws: what broke the connection.
    func flush() throws(Errno) -> Bool

    /// Whether an idle connection still stands: no end, no error, and no byte that nobody asked for.
    func isQuiet() -> Bool

    /// Ends our sending side; the peer reads an end of stream after what was written.
    func finishWriting()

    /// Makes `close` send a reset, so that the peer cannot take a cut-off message for a complete
    /// one.
    func resetOnClose()

    /// Ends both directions at once: reads see an end or fail, writes fail. `close` still has to
    /// come.
    func breakOff()

    /// Gives the connection up. Closing twice is allowed.
    func close()

    /// The transport carries one message each way and has ends of messages of its own, so content
    /// needs no framing.
    var carriesOneMessage: Bool { get }

    /// Content, or trailer fields, follow the head that is read, even if no field says so; only
    /// where `carriesOneMessage`.
    var hasContent: Bool { get }

    /// Trailer fields of the message that was read to its end; only where `carriesOneMessage`.
    var trailers: [(name: [UInt8], value: [UInt8])] { get }

    /// The message that was written is complete but for these trailer fields. Does nothing where the
    /// bytes say it themselves.
    func finishMessage(trailers: [(name: [UInt8], value: [UInt8])])
}

extension Transport {
    /// Writes as much as is taken of `bytes`.
    @inline(__always)
    public func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) -> TransferResult {
        try write(bytes, UnsafeRawBufferPointer(start: nil, count: 0))
    }

    public func flush() throws(Errno) -> Bool { true }
    public var carriesOneMessage: Bool { false }
    public var hasContent: Bool { false }
    public var isRefused: Bool { false }
    public var isMalformed: Bool { false }
    public var isDueToEnd: Bool { false }
    public var trailers: [(name: [UInt8], value: [UInt8])] { [] }
    public func finishMessage(trailers: [(name: [UInt8], value: [UInt8])]) {}
}
