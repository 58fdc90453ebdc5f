internal import CNGHTTP2
internal import Glibc

/// Where nghttp2 gets its memory from: a request makes it allocate and free two dozen small blocks,
/// which are kept here in lists by size. Larger ones are the system's.
///
/// The memory belongs to one event loop and is not thread-safe.
final class LibraryMemory {
    // Safe: made in `init`, freed in `deinit`. No object, because the library calls so often that
    // counting references to one would cost more than the lists do.
    private let lists = UnsafeMutablePointer<FreeBlocks>.allocate(capacity: 1)

    init() {
        lists.initialize(to: FreeBlocks())
    }

    deinit {
        releaseFree()
        lists.deallocate()
    }

    /// Gives the free blocks back to the system.
    func releaseFree() {
        lists.pointee.removeAll()
    }

    /// Calls `body` with the functions for the library, which keeps a copy of them. A session that
    /// was made with them must go before this object.
    func withFunctions<R>(_ body: (UnsafeMutablePointer<nghttp2_mem>) -> R) -> R {
        var functions = nghttp2_mem(
            mem_user_data: UnsafeMutableRawPointer(lists),
            malloc: { size, context in FreeBlocks.at(context)?.pointee.allocate(size) },
            free: { block, context in
                if let block { FreeBlocks.at(context)?.pointee.release(block) }
            },
            calloc: { count, size, context in
                let (total, isTooMuch) = count.multipliedReportingOverflow(by: size)
                if isTooMuch { return nil }
                let block = FreeBlocks.at(context)?.pointee.allocate(total)
                if let block { memset(block, 0, total) }
                return block
            },
            realloc: { block, size, context in
                guard let block else { return FreeBlocks.at(context)?.pointee.allocate(size) }
                return FreeBlocks.at(context)?.pointee.resize(block, to: size)
            })
        return withUnsafeMutablePointer(to: &functions, body)
    }
}

/// Lists of free blocks. A block is a header, which holds the size that can be used, and behind it
/// what the library sees.
private struct FreeBlocks {
    /// Sizes are multiples of this.
    private static var step: Int { 32 }
    /// Blocks of up to `step * classCount` bytes are kept.
    private static var classCount: Int { 16 }
    /// Free blocks of one size.
    private static var kept: Int { 512 }
    /// In front of each block: its size. Keeps what follows aligned for every type.
    private static var headerSize: Int { 16 }

    // Safe: the lists alone own these blocks. Each begins with the address of the next one.
    private var free = InlineArray<16, UnsafeMutableRawPointer?>(repeating: nil)
    private var counts = InlineArray<16, Int>(repeating: 0)

    static func at(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<FreeBlocks>? {
        // Safe: `withFunctions` gave this pointer, and whoever called it keeps the lists alive.
        context?.assumingMemoryBound(to: FreeBlocks.self)
    }

    mutating func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
        if size < 0 || size > Int.max - Self.headerSize { return nil }
        let index = max(size - 1, 0) / Self.step
        let isSmall = index < Self.classCount
        let usable = isSmall ? (index + 1) * Self.step : size
        guard let block = (isSmall ? take(index) : nil) ?? malloc(usable + Self.headerSize) else {
            return nil
        }
        block.storeBytes(of: usable, as: Int.self)
        return block + Self.headerSize
    }

    mutating func release(_ bytes: UnsafeMutableRawPointer) {
        let block = bytes - Self.headerSize
        let index = block.load(as: Int.self) / Self.step - 1
        if index >= Self.classCount || counts[index] >= Self.kept { return Glibc.free(block) }
        block.storeBytes(of: free[index], as: UnsafeMutableRawPointer?.self)
        free[index] = block
        counts[index] += 1
    }

    mutating func resize(
        _ bytes: UnsafeMutableRawPointer, to size: Int
    ) -> UnsafeMutableRawPointer? {
        let usable = (bytes - Self.headerSize).load(as: Int.self)
        if size <= usable { return bytes }
        guard let moved = allocate(size) else { return nil }
        moved.copyMemory(from: bytes, byteCount: usable)
        release(bytes)
        return moved
    }

    mutating func removeAll() {
        for index in 0..<Self.classCount {
            while let block = take(index) { Glibc.free(block) }
        }
    }

    private mutating func take(_ index: Int) -> UnsafeMutableRawPointer? {
        guard let block = free[index] else { return nil }
        free[index] = block.load(as: UnsafeMutableRawPointer?.self)
        counts[index] -= 1
        return block
    }
}
