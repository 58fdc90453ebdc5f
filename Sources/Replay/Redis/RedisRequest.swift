internal import Reactor

/// What became of a request to a server.
enum RedisAnswer {
    /// It answered, and its memory was vouched for afterwards.
    ///
    /// - Parameter serverMilliseconds: Its clock after it did, since 1970.
    case reply(RedisReply, serverMilliseconds: Int64)
    /// Its memory of claims this old may be gone; it was not asked.
    case forgotten
    case failure(StoreFailure)
}

/// One command on its way to a server, for a task that sleeps until the answer is here.
final class RedisRequest {
    enum Purpose {
        /// - Parameters:
        ///   - nonce: What tells our claim from somebody else's.
        ///   - wallMilliseconds: Our wall clock when it was asked for, since 1970.
        case claim(nonce: [UInt8], retainedUntil: Int64, wallMilliseconds: Int64)
        case release(nonce: [UInt8])
        case inspect
    }

    let purpose: Purpose
    let key: [UInt8]
    /// The key is on its way to this server (ASK).
    let isAsking: Bool
    /// When it was asked for.
    let made: MonotonicInstant
    private var waiter: Waiter?
    private(set) var answer: RedisAnswer?

    init(
        _ purpose: Purpose, key: [UInt8], isAsking: Bool, made: MonotonicInstant, waiter: Waiter
    ) {
        self.purpose = purpose
        self.key = key
        self.isAsking = isAsking
        self.made = made
        self.waiter = waiter
    }

    /// Nobody waits for the answer any more.
    var isAbandoned: Bool { waiter == nil }

    /// Ends the wait. The first answer counts.
    func finish(_ answer: RedisAnswer) {
        guard let waiter, self.answer == nil else { return }
        self.answer = answer
        waiter.wake()
    }

    /// Sleeps until the answer is here.
    ///
    /// - Returns: nil at `deadline`. The command may have been, or may yet be, executed then.
    func wait(until deadline: MonotonicInstant) async -> RedisAnswer? {
        while answer == nil, let waiter {
            if await waiter.wait(until: deadline) == .timedOut { break }
        }
        waiter = nil
        return answer
    }
}
