internal import Reactor

/// What the key `…epoch` of a server holds: who wrote it into which memory, and since when that
/// memory is whole. Lost memory loses it too, and memory that came from elsewhere (a replica, an old
/// file) brings one with another identity.
struct RedisMarker: Equatable {
    /// `RedisServerFacts.identity` of the server.
    var identity: [UInt8]
    /// Tokens issued before this second, since 1970, may have been claimed and forgotten.
    var second: Int64

    init(identity: [UInt8], second: Int64) {
        self.identity = identity
        self.second = second
    }

    /// Reads what a server has; nil when it is nothing, or nothing of ours.
    init?(_ reply: RedisReply) {
        guard reply.kind == .string, reply.bytes.count <= 256,
            let space = reply.bytes.lastIndex(of: UInt8(ascii: " ")),
            let second = Int64(String(decoding: reply.bytes[(space + 1)...], as: UTF8.self)),
            0...Self.latest ~= second
        else { return nil }
        self.init(identity: Array(reply.bytes[..<space]), second: second)
    }

    /// The second from which on a memory that is empty now can vouch for tokens. By the later of two
    /// clocks: a proxy whose own is behind would vouch, for all others too, for what was forgotten.
    /// One that is ahead of ours by more than clocks may differ is wrong, and not believed further.
    static func second(on loop: EventLoop, server: RedisServerClock) -> Int64 {
        let wall = loop.wallMicroseconds / 1000
        let bounded = min(server.milliseconds(at: loop.now), wall + RedisClaimEnds.margin)
        return max(wall, bounded) / 1000 + 1
    }

    private static let latest: Int64 = 1 << 40

    /// What is stored.
    var bytes: [UInt8] { identity + Array(" \(second)".utf8) }
}
