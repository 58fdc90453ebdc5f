internal import Reactor

extension RedisLink {
    /// Logs in, when there is a password, and sends the first commands in the same write.
    ///
    /// - Returns: the replies to `commands`.
    /// - Throws: `denied` when the log-in is refused. What the server says about it is not repeated:
    ///   some repeat the password.
    func logIn(
        username: String? = nil, password: String?, then commands: [RedisCommand],
        until deadline: MonotonicInstant
    ) async throws(RedisFailure) -> [RedisReply] {
        guard let password else { return try await call(commands, until: deadline) }
        var logIn = RedisCommand("AUTH")
        if let username { logIn = logIn.adding(username) }
        var replies = try await call([logIn.adding(password)] + commands, until: deadline)
        if let code = replies.removeFirst().errorCode {
            throw RedisFailure(
                .denied, "it refuses the log-in (\(code))", hint: RedisFailure.permissions)
        }
        return replies
    }
}
