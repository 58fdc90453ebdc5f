internal import Reactor

/// A connection that is logged in at a master: requests in, answers out.
final class RedisConnection {
    private let link: RedisLink
    private let loop: EventLoop
    private let context: RedisContext
    private let server: String
    private let identity: [UInt8]
    private let markerKey: [UInt8]
    private var clock: RedisServerClock
    private var pipeline = RedisPipeline()
    /// The marker is missing, and this is to be written.
    private var lostMarker: RedisMarker?

    init(
        _ link: RedisLink, _ setUp: RedisSetUp, server: String, context: RedisContext,
        loop: EventLoop
    ) {
        self.link = link
        self.server = server
        self.context = context
        self.loop = loop
        identity = setUp.identity
        markerKey = setUp.markerKey
        clock = setUp.clock
    }

    /// Requests that are not answered yet.
    var requestCount: Int { pipeline.requestCount }

    /// Nothing is under way.
    var isIdle: Bool { pipeline.isEmpty }

    /// When the server will have been silent for too long.
    var stall: MonotonicInstant {
        pipeline.oldest?.advanced(by: context.settings.stallTimeout) ?? .never
    }

    /// Sends what the socket takes.
    func flush() throws(RedisFailure) {
        try link.flush()
    }

    /// Ends the connection.
    func close() {
        link.close()
    }

    /// Whoever still waits is told why it is in vain. What was sent may have been executed.
    func fail(_ failure: StoreFailure) {
        pipeline.fail(failure.afterSending)
    }

    // MARK: Sending

    /// Writes requests, and what has to be asked behind them.
    func send(_ requests: [RedisRequest], asksForInformation: Bool) {
        var isWorthIt = asksForInformation
        for request in requests where !request.isAbandoned {
            if send(request) { isWorthIt = true }
        }
        if !isWorthIt { return }
        if let marker = lostMarker {
            lostMarker = nil
            // Before the marker is read: another proxy may have been quicker.
            RedisCommand("SET").adding(markerKey).adding(marker.bytes).adding("NX")
                .append(to: link.outgoing)
            pipeline.expect(.acknowledgement)
        }
        if asksForInformation {
            RedisCommand("INFO").append(to: link.outgoing)
            pipeline.expect(.information)
        }
        RedisCommand("GET").adding(markerKey).append(to: link.outgoing)
        pipeline.expect(.marker)
        RedisCommand("TIME").append(to: link.outgoing)
        pipeline.expect(.time(sent: loop.now))
    }

    /// - Returns: whether it was sent, and not answered at once.
    private func send(_ request: RedisRequest) -> Bool {
        let command: RedisCommand
        switch request.purpose {
        case .claim(let nonce, let retainedUntil, let wall):
            let now = loop.now
            let server = clock.milliseconds(at: now)
            let waited = now.microseconds(since: request.made) / 1000
            let end = context.ends.end(
                retainedUntil: retainedUntil, server: server, wall: wall + waited, at: now)
            if context.ends.mayBeForgotten(retainedUntil: retainedUntil, server: server, at: now) {
                request.finish(.forgotten)
                return false
            }
            command = RedisCommand("SET").adding(request.key).adding(nonce).adding("NX")
                .adding("PXAT").adding(String(end))
        case .release(let nonce):
            command = RedisCommand("EVAL", Self.release, "1").adding(request.key).adding(nonce)
        case .inspect:
            command = RedisCommand("GET").adding(request.key)
        }
        if request.isAsking {
            RedisCommand("ASKING").append(to: link.outgoing)
            pipeline.expect(.acknowledgement)
        }
        command.append(to: link.outgoing)
        pipeline.expect(.request(request))
        return true
    }

    private static let release: StaticString =
        "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

    // MARK: Receiving

    /// Takes what came, and answers the requests whose batch is complete.
    ///
    /// - Throws: when the connection is of no use any more.
    func receive() throws(RedisFailure) {
        while let reply = try link.next() {
            if let batch = try pipeline.receive(reply) { try conclude(batch) }
        }
    }

    private func conclude(_ batch: RedisPipeline.Batch) throws(RedisFailure) {
        do throws(RedisFailure) {
            guard let clock = RedisServerClock(batch.time, sent: batch.sent) else {
                throw RedisFailure(batch.time.errorCode ?? "ERR", to: "tell the time")
            }
            self.clock = clock
            try judge(batch.marker)
        } catch {
            // A redirection holds whatever its memory is.
            for (request, reply) in batch.answers where reply.kind == .error {
                request.finish(answer(reply))
            }
            for (request, _) in batch.answers {
                request.finish(.failure(error.kind.afterSending))
            }
            throw error
        }
        for (request, reply) in batch.answers { request.finish(answer(reply)) }
        if let information = batch.information { try check(information) }
        for (request, reply) in batch.answers { try notice(reply, to: request) }
    }

    private func answer(_ reply: RedisReply) -> RedisAnswer {
        .reply(reply, serverMilliseconds: clock.milliseconds(at: loop.now))
    }

    /// Looks whether the memory is the one that it was.
    private func judge(_ reply: RedisReply?) throws(RedisFailure) {
        guard let reply else { return }
        if let code = reply.errorCode {
            throw RedisFailure(code, to: "tell the marker of its memory")
        }
        if let marker = RedisMarker(reply) {
            if marker.identity != identity {
                throw RedisFailure(.disconnected, "it became another server in the meantime")
            }
            context.memory.adopt(marker.second, on: loop)
            return
        }
        let marker = RedisMarker(
            identity: identity, second: RedisMarker.second(on: loop, server: clock))
        lostMarker = marker
        context.memory.adopt(marker.second, on: loop)
        context.notices.remark(
            .warning, "a Redis server lost what it knew of used tokens", server: server,
            [
                ("since", String(marker.second)),
                (
                    "effect",
                    "tokens issued earlier are answered with predates until they have expired"
                ),
            ])
    }

    private func check(_ information: RedisReply) throws(RedisFailure) {
        guard let facts = RedisServerFacts(info: information.bytes) else { return }
        try context.check(facts, of: server)
        if facts.identity != identity {
            throw RedisFailure(.disconnected, "it became another server in the meantime")
        }
    }

    private func notice(_ reply: RedisReply, to request: RedisRequest) throws(RedisFailure) {
        guard let code = reply.errorCode, code != "MOVED", code != "ASK" else { return }
        if case .release = request.purpose {
            context.notices.remark(
                .warning, "a Redis server does not take claims back", server: server,
                [("error", code), ("hint", "the user needs +eval and +get +del on ~PREFIX*")])
        } else {
            context.notices.remark(
                .error, "a Redis server refuses claims", server: server,
                [("error", code), ("hint", RedisFailure.hint(forRefusedClaim: code))])
        }
        if code == "READONLY" {
            throw RedisFailure(.protocolError, "it is a replica now")
        }
    }
}
