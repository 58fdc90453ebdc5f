internal import Reactor

/// Finds, or starts, the marker of a server's memory when a connection is set up.
struct RedisMarkerKeeper {
    let link: RedisLink
    let identity: [UInt8]
    let keys: [[UInt8]]
    /// The server's clock.
    let clock: RedisServerClock
    let context: RedisContext
    let loop: EventLoop

    /// Makes sure that there is a marker.
    ///
    /// - Returns: the key that goes on proving it.
    func keep(server: String, until deadline: MonotonicInstant) async throws(RedisFailure)
        -> [UInt8]
    {
        let replies = try await link.call(
            keys.map { RedisCommand("GET").adding($0) }, until: deadline)
        var known: Int64?
        var places: [(key: [UInt8], isThere: Bool, isEmpty: Bool)] = []
        var refusal = "ERR"
        for (key, reply) in zip(keys, replies) {
            if let code = reply.errorCode {
                // The slot has moved; other keys are still here.
                refusal = code
                continue
            }
            let marker = RedisMarker(reply)
            let isOurs = marker?.identity == identity
            if let marker, isOurs { known = max(known ?? 0, marker.second) }
            places.append((key, isOurs, reply.kind == .null))
        }
        guard let primary = places.first?.key else {
            throw RedisFailure(refusal, to: "tell the marker of its memory")
        }
        let second = known ?? RedisMarker.second(on: loop, server: clock)
        let marker = RedisMarker(identity: identity, second: second)
        var commands: [RedisCommand] = []
        for place in places where !place.isThere {
            let command = RedisCommand("SET").adding(place.key).adding(marker.bytes)
            // Another proxy may have been quicker; a stranger's marker is overwritten.
            commands.append(place.isEmpty ? command.adding("NX") : command)
        }
        if known == nil { note(second, server) }
        commands.append(RedisCommand("GET").adding(primary))
        let outcome = try await link.call(commands, until: deadline)
        try adopt(outcome, orElse: second)
        return primary
    }

    private func adopt(_ replies: [RedisReply], orElse second: Int64) throws(RedisFailure) {
        guard let last = replies.last else { return }
        if let found = RedisMarker(last), found.identity == identity {
            context.memory.adopt(found.second, on: loop)
            return
        }
        switch replies.first?.errorCode {
        case "OOM"?:
            // Full is a state of its own, which claims are answered with. Until there is room for
            // a marker, each batch finds that it is missing.
            context.memory.adopt(second, on: loop)
        case let code?: throw RedisFailure(code, to: "keep the marker of its memory")
        case nil: throw RedisFailure(.protocolError, "it does not keep the marker of its memory")
        }
    }

    private func note(_ second: Int64, _ server: String) {
        context.notices.remark(
            .info, "a Redis server starts to remember used tokens", server: server,
            [("since", String(second))])
    }
}
