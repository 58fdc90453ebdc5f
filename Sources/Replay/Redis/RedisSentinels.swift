internal import Reactor

/// The sentinels of a server, asked for the master's address by one loop.
final class RedisSentinels {
    /// What one sentinel may take while there are others.
    private static let longestAttempt = Duration.milliseconds(500)

    private let context: RedisContext
    private let loop: EventLoop
    private let master: String
    /// In the order in which they are asked: the last that knew an address comes first.
    private var sentinels: [RedisAddress]

    init(_ sentinels: [RedisAddress], master: String, context: RedisContext, loop: EventLoop) {
        // Loops and machines spread over the sentinels.
        self.sentinels = sentinels.shuffled()
        self.master = master
        self.context = context
        self.loop = loop
    }

    /// Who is the master, by the first sentinel that knows.
    func locate(waiter: Waiter, until deadline: MonotonicInstant) async throws(RedisFailure)
        -> RedisAddress
    {
        var latest = RedisFailure(.unreachable, "no sentinel is configured")
        for (index, sentinel) in sentinels.enumerated() {
            let limit = min(deadline, loop.now.advanced(by: Self.longestAttempt))
            do throws(RedisFailure) {
                let address = try await ask(sentinel, waiter, limit)
                sentinels.remove(at: index)
                sentinels.insert(sentinel, at: 0)
                return address
            } catch {
                latest = RedisFailure(
                    error.kind, "sentinel \(sentinel): \(error.reason)", hint: error.hint)
            }
        }
        throw latest
    }

    /// The first sentinel was wrong: the others are asked before it.
    func distrustFirst() {
        if !sentinels.isEmpty { sentinels.append(sentinels.removeFirst()) }
    }

    private func ask(
        _ sentinel: RedisAddress, _ waiter: Waiter, _ deadline: MonotonicInstant
    ) async throws(RedisFailure) -> RedisAddress {
        let link = try await context.connector.connect(
            to: sentinel, on: loop, waiter: waiter, until: deadline)
        defer { link.close() }
        let question = RedisCommand("SENTINEL", "get-master-addr-by-name").adding(master)
        let replies = try await link.logIn(
            password: context.settings.sentinelPassword, then: [question], until: deadline)
        guard let reply = replies.first else { throw RedisFailure(.protocolError, "no reply") }
        if let code = reply.errorCode {
            throw RedisFailure(code, to: "tell who the master is")
        }
        if reply.kind == .null {
            throw RedisFailure(
                .protocolError, "it knows no master of the name \"\(master)\"",
                hint: "the name behind the slash of the URL has to be the one of `sentinel monitor`"
            )
        }
        guard reply.elements.count == 2, let port = reply.elements[1].number,
            let address = RedisAddress(announced: reply.elements[0].text, port: port)
        else { throw RedisFailure(.protocolError, "it answers what makes no sense") }
        return address
    }
}

extension RedisAddress {
    /// An address that a server tells; nil when it makes no sense.
    init?(announced host: String, port: Int64) {
        guard let port = UInt16(exactly: port), port > 0, 1...253 ~= host.utf8.count,
            host.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
        else { return nil }
        self = .tcp(host: host, port: port)
    }
}
