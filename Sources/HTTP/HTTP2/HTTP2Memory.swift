internal import Reactor

/// What the HTTP/2 connections of a loop lend to their streams, and get back: a stream has a buffer
/// only while bytes lie in it, so one that waits costs next to nothing, and one that begins costs no
/// allocation.
///
/// The memory belongs to one event loop and is not thread-safe.
public final class HTTP2Memory {
    static let bufferSize = 4 << 10
    private static let keptBufferSize = 16 << 10

    private var buffers = Spares<ByteBuffer>(limit: 512)
    private var heads = Spares<OutgoingHead>(limit: 256)
    private var assemblies = Spares<HeadAssembly>(limit: 64)
    /// What the library itself allocates.
    let library = LibraryMemory()

    public init() {}

    /// An empty buffer.
    func takeBuffer() -> ByteBuffer {
        buffers.take() ?? ByteBuffer(capacity: Self.bufferSize)
    }

    /// Takes a buffer back; what it holds is forgotten.
    func giveBack(_ buffer: consuming ByteBuffer) {
        buffer.shrink(above: Self.keptBufferSize, to: Self.bufferSize)
        buffers.giveBack(buffer)
    }

    func takeHead() -> OutgoingHead {
        heads.take() ?? OutgoingHead()
    }

    func giveBack(_ head: consuming OutgoingHead) {
        head.reset()
        heads.giveBack(head)
    }

    func takeAssembly() -> HeadAssembly {
        assemblies.take() ?? HeadAssembly(limits: HeadLimits())
    }

    func giveBack(_ assembly: consuming HeadAssembly) {
        assemblies.giveBack(assembly)
    }

    /// Regular housekeeping: frees what was not needed since the last call.
    ///
    /// - Returns: How many objects were freed.
    public func sweep() -> Int {
        let freed = buffers.sweep() + heads.sweep() + assemblies.sweep()
        // Its blocks are small, and go with the burst that needed the objects.
        if freed > 0 { library.releaseFree() }
        return freed
    }
}
