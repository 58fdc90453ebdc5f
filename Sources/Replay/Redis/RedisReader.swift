internal import CHiredis
internal import Reactor

/// Why what a server sends is of no use.
struct RedisGarbage: Error {
    /// What is wrong with it.
    let reason: String
}

/// Takes the bytes of a server apart into replies (RESP2), with hiredis's reader. Bounds that the
/// reader does not have are added: the bytes that wait for the rest of a reply, and what one reply
/// holds.
final class RedisReader {
    /// What a reply may take: a thousand masters with their replicas (CLUSTER SLOTS) do.
    static let replyLimit = 1 << 20

    // Safe: owned by this object alone, freed in `deinit`; the functions and the budget that it
    // points to live as long as the process and as this object.
    private let reader: UnsafeMutablePointer<redisReader>
    private let budget: Budget

    init() {
        // No input leads here: it allocates a fixed size, and Swift's own allocations trap as well.
        guard let reader = redisReaderCreateWithFunctions(Self.functions) else {
            preconditionFailure("out of memory")
        }
        self.reader = reader
        budget = Budget(limit: Self.replyLimit)
        reader.pointee.privdata = Unmanaged.passUnretained(budget).toOpaque()
    }

    deinit {
        redisReaderFree(reader)
    }

    /// Takes over all bytes of `buffer`.
    ///
    /// - Throws: when more wait for the rest of a reply than any reply may have.
    func feed(_ buffer: ByteBuffer) throws(RedisGarbage) {
        let waiting = reader.pointee.len - reader.pointee.pos
        if buffer.count > 2 * Self.replyLimit - waiting { throw Self.tooLarge }
        let status = buffer.withUnsafeBytes { bytes in
            let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            return redisReaderFeed(reader, start, bytes.count)
        }
        buffer.removeAll()
        if status != REDIS_OK { throw failure }
    }

    /// The next reply; nil until it is complete.
    ///
    /// - Throws: when the bytes are no RESP2. Nothing that comes afterwards means anything.
    func next() throws(RedisGarbage) -> RedisReply? {
        var object: UnsafeMutableRawPointer?
        if redisReaderGetReply(reader, &object) != REDIS_OK { throw failure }
        guard let object else {
            if reader.pointee.len - reader.pointee.pos > Self.replyLimit { throw Self.tooLarge }
            return nil
        }
        budget.left = Self.replyLimit
        return Unmanaged<RedisReply>.fromOpaque(object).takeRetainedValue()
    }

    private static var tooLarge: RedisGarbage { RedisGarbage(reason: "a reply is too large") }

    private var failure: RedisGarbage {
        if budget.left < 0 { return Self.tooLarge }
        return RedisGarbage(reason: "it is no Redis protocol (RESP2)")
    }

    /// What the reply that is being read may still take.
    private final class Budget {
        var left: Int

        init(limit: Int) {
            left = limit
        }

        /// What one element takes besides its bytes.
        static let elementBytes = 64

        func spend(_ bytes: Int) -> Bool {
            left = bytes > left ? -1 : left - bytes
            return left >= 0
        }
    }

    // Never freed, and never changed: hiredis wants it to be mutable but only reads it.
    nonisolated(unsafe) private static let functions = {
        let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
        functions.initialize(
            to: redisReplyObjectFunctions(
                createString: { task, start, count in
                    RedisReader.add(task, bytes: count) { type in
                        let text = UnsafeRawBufferPointer(start: start, count: count)
                        let kind: RedisReply.Kind =
                            switch type {
                            case REDIS_REPLY_ERROR: .error
                            case REDIS_REPLY_STATUS: .status
                            default: .string
                            }
                        return RedisReply(kind, bytes: Array(text))
                    }
                },
                createArray: { task, count in
                    // Who promises more elements than a reply can hold does not mean it.
                    let bytes = min(Int(count), replyLimit) * Budget.elementBytes
                    return bytes > replyLimit
                        ? nil : RedisReader.add(task, bytes: 0) { _ in RedisReply(.array) }
                },
                createInteger: { task, value in
                    RedisReader.add(task, bytes: 0) { _ in RedisReply(.integer, integer: value) }
                },
                createNil: { task in RedisReader.add(task, bytes: 0) { _ in RedisReply(.null) } },
                freeObject: { object in
                    guard let object else { return }
                    Unmanaged<RedisReply>.fromOpaque(object).release()
                }))
        return functions
    }()

    /// Makes a reply where hiredis is in the tree of replies. The root is owned by hiredis until it
    /// is handed out or freed, all others by the array that they are in.
    ///
    /// - Returns: nil, which ends the reading, when the reply is too large.
    private static func add(
        _ task: UnsafePointer<redisReadTask>?, bytes: Int, _ make: (Int32) -> RedisReply
    ) -> UnsafeMutableRawPointer? {
        guard let task = task?.pointee, let owner = task.privdata else { return nil }
        let budget = Unmanaged<Budget>.fromOpaque(owner).takeUnretainedValue()
        if !budget.spend(bytes + Budget.elementBytes) { return nil }
        let reply = make(task.type)
        guard let array = task.parent?.pointee.obj else {
            return Unmanaged.passRetained(reply).toOpaque()
        }
        Unmanaged<RedisReply>.fromOpaque(array).takeUnretainedValue().append(reply)
        return Unmanaged.passUnretained(reply).toOpaque()
    }
}
