/// Where a node of a cluster sends a request that it did not execute.
enum RedisRedirection: Equatable {
    /// The slot has another master.
    case moved(RedisAddress)
    /// The slot is moving, and this key is not here any more.
    case ask(RedisAddress)

    /// Reads an error such as "MOVED 3999 127.0.0.1:6381"; nil when it is none of the two.
    ///
    /// - Parameter asked: Who answered.
    init?(_ reply: RedisReply, from asked: RedisAddress) {
        guard let code = reply.errorCode, code == "MOVED" || code == "ASK",
            reply.bytes.count <= 512
        else { return nil }
        let words = reply.text.split(separator: " ")
        guard words.count == 3, let colon = words[2].lastIndex(of: ":"),
            let port = Int64(words[2][words[2].index(after: colon)...]),
            let address = RedisAddress(
                announced: String(words[2][..<colon]), port: port, by: asked)
        else { return nil }
        self = code == "MOVED" ? .moved(address) : .ask(address)
    }
}
