internal import Glibc

/// A growable run of bytes between a socket and a parser: bytes are appended at the end, read from
/// the front, and the memory is reused.
///
/// A run at the front can be *pinned*: the head of a message stays readable while its body streams
/// through the space behind it. Offsets into the pinned bytes stay valid until `unpin()`, whatever
/// moves or grows in between.
///
/// A buffer belongs to one event loop and is not thread-safe.
public final class ByteBuffer {
    // Safe: this object alone owns the memory and frees it in `deinit`; every index below lies in
    // 0...capacity by the invariant pinStart + pinnedCount <= front <= back <= capacity.
    private var storage: UnsafeMutableRawBufferPointer
    private var pinStart = 0
    private var front = 0
    private var back = 0

    /// Bytes kept by `pin`.
    public private(set) var pinnedCount = 0

    /// Makes a buffer that can hold `capacity` bytes before it has to grow.
    public init(capacity: Int) {
        storage = .allocate(byteCount: max(capacity, 64), alignment: 16)
    }

    deinit {
        storage.deallocate()
    }

    /// Bytes that the memory can hold in all.
    public var capacity: Int { storage.count }

    /// Bytes appended and not yet consumed.
    public var count: Int { back - front }

    /// Nothing is here, not even pinned bytes.
    public var isUnused: Bool { back == 0 }

    /// Whether no byte waits to be read.
    public var isEmpty: Bool { back == front }

    /// The bytes that wait to be read.
    public var bytes: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let span = unsafe Span<UInt8>(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: storage[front..<back]))
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// The bytes that `pin` kept.
    public var pinnedBytes: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let span = unsafe Span<UInt8>(
                _unsafeBytes: UnsafeRawBufferPointer(
                    rebasing: storage[pinStart..<(pinStart + pinnedCount)]))
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Drops `count` bytes from the front of what waits to be read.
    public func consume(_ count: Int) {
        precondition(count >= 0 && count <= back - front)
        front += count
        if front == back && pinnedCount == 0 {
            front = 0
            back = 0
        }
    }

    /// Consumes `count` bytes but keeps them readable as `pinnedBytes`.
    public func pin(_ count: Int) {
        precondition(pinnedCount == 0 && count >= 0 && count <= back - front)
        // Nothing pinned lies at 0, as the invariant has it, wherever `front` goes from here.
        pinStart = count > 0 ? front : 0
        pinnedCount = count
        front += count
    }

    /// Gives up the pinned bytes.
    public func unpin() {
        pinStart = 0
        pinnedCount = 0
        if front == back {
            front = 0
            back = 0
        }
    }

    /// Forgets every byte, pinned ones too; the memory stays.
    public func removeAll() {
        pinStart = 0
        pinnedCount = 0
        front = 0
        back = 0
    }

    /// Forgets every byte, and gives memory back when it grew beyond `limit` bytes.
    public func shrink(above limit: Int, to capacity: Int) {
        removeAll()
        if storage.count <= limit { return }
        storage.deallocate()
        storage = .allocate(byteCount: max(capacity, 64), alignment: 16)
    }

    /// Makes room for at least `count` more bytes, by moving what is here to the start of the
    /// memory or by growing it.
    @inline(__always)
    public func reserve(_ count: Int) {
        if storage.count - back < count { makeRoom(count) }
    }

    @inline(never)
    private func makeRoom(_ count: Int) {
        let keep = pinnedCount + self.count
        if storage.count - keep >= count {
            move(into: storage)
            return
        }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(storage.count * 2, keep + count), alignment: 16)
        move(into: larger)
        storage.deallocate()
        storage = larger
    }

    /// Lets `body` fill the free space behind the last byte and appends as many bytes as it says it
    /// wrote.
    ///
    /// - Parameter body: Gets the free space; returns how many bytes of it are valid now.
    @inline(__always)
    public func appendUnsafe<E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> Int
    ) throws(E) -> Int {
        let free = UnsafeMutableRawBufferPointer(rebasing: storage[back...])
        let written = try body(free)
        precondition(written >= 0 && written <= free.count)
        back += written
        return written
    }

    /// Lets `body` read the waiting bytes through a pointer, for a system call or a C library.
    @inline(__always)
    public func withUnsafeBytes<R, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(UnsafeRawBufferPointer(rebasing: storage[front..<back]))
    }

    /// Appends one byte.
    @inline(__always)
    public func append(_ byte: UInt8) {
        if back == storage.count { reserve(1) }
        storage[back] = byte
        back += 1
    }

    /// Appends the bytes of a span, which must not be this buffer's own: making room moves those.
    public func append(_ span: Span<UInt8>) {
        let count = span.count
        if count == 0 { return }
        reserve(count)
        // Safe: `reserve` made room for `count` bytes, and `span` cannot overlap the free space.
        span.withUnsafeBytes { source in
            storage.baseAddress.unsafelyUnwrapped.advanced(by: back).copyMemory(
                from: source.baseAddress.unsafelyUnwrapped, byteCount: count)
        }
        back += count
    }

    /// Appends bytes that are not this buffer's own.
    public func append(copying bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        // Safe: `reserve` made room for all of `bytes`.
        if let source = bytes.baseAddress {
            storage.baseAddress.unsafelyUnwrapped.advanced(by: back).copyMemory(
                from: source, byteCount: bytes.count)
        }
        back += bytes.count
    }

    /// Appends the bytes of an array.
    public func append(_ array: [UInt8]) {
        append(array.span)
    }

    /// Appends a literal; its bytes are in the binary, so nothing is allocated.
    @inline(__always)
    public func append(_ literal: StaticString) {
        let count = literal.utf8CodeUnitCount
        reserve(count)
        // Safe: a StaticString with a pointer representation has `count` bytes at `utf8Start`.
        storage.baseAddress.unsafelyUnwrapped.advanced(by: back).copyMemory(
            from: literal.utf8Start, byteCount: count)
        back += count
    }

    /// Appends the UTF-8 of a string: configuration and log text, not for the hot path.
    @_disfavoredOverload  // A literal means a StaticString: without this it would become a String.
    public func append(_ string: String) {
        var string = string
        string.withUTF8 { utf8 in
            if utf8.isEmpty { return }
            reserve(utf8.count)
            storage.baseAddress.unsafelyUnwrapped.advanced(by: back).copyMemory(
                from: utf8.baseAddress.unsafelyUnwrapped, byteCount: utf8.count)
            back += utf8.count
        }
    }

    /// Appends a number in decimal digits.
    public func append(decimal value: UInt64) {
        reserve(20)
        var digits = 1
        var rest = value
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        rest = value
        var index = back + digits
        back = index
        repeat {
            index -= 1
            storage[index] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
            rest /= 10
        } while rest > 0
    }

    /// Takes all that waits in `other`, without copying it: the two change their memory. Only for an
    /// empty buffer, and one that has nothing pinned.
    public func takeAll(of other: ByteBuffer) {
        precondition(back == 0 && pinnedCount == 0 && other.pinnedCount == 0)
        swap(&storage, &other.storage)
        (front, back) = (other.front, other.back)
        other.removeAll()
    }

    private func move(into target: UnsafeMutableRawBufferPointer) {
        let waiting = count
        let base = target.baseAddress.unsafelyUnwrapped
        let source = storage.baseAddress.unsafelyUnwrapped
        // Safe: both runs fit (the caller compared), and memmove allows the overlap when target is
        // storage.
        memmove(base, source + pinStart, pinnedCount)
        memmove(base + pinnedCount, source + front, waiting)
        pinStart = 0
        front = pinnedCount
        back = front + waiting
    }
}
