/// Why a server cannot be used, for the log. Never a password: what a server says about a log-in is
/// not repeated but for its first word.
struct RedisFailure: Error, Equatable {
    /// The word for logs and metrics.
    let kind: StoreFailure
    /// What happened.
    let reason: String
    /// What to do about it.
    var hint: String?

    init(_ kind: StoreFailure, _ reason: String, hint: String? = nil) {
        self.kind = kind
        self.reason = reason
        self.hint = hint
    }

    /// What an error reply to something else than a claim means.
    ///
    /// - Parameter activity: What was asked for, as the end of "refuses to".
    init(_ code: String, to activity: String) {
        let kind = StoreFailure(redisError: code)
        self.init(
            kind, "it refuses to \(activity) (\(code))",
            hint: kind == .denied ? Self.permissions : nil)
    }

    /// What the user of the store has to be allowed.
    static let permissions =
        "check user and password; the user needs ~PREFIX* and +set +get +eval +del +time +info "
        + "+select +client|setname, in a cluster +cluster|slots +asking too"
}

extension StoreFailure {
    /// What an error reply means, by its first word.
    init(redisError code: String) {
        switch code {
        case "NOAUTH", "WRONGPASS", "NOPERM": self = .denied
        default: self = .protocolError
        }
    }

    /// The failure as it is for a command that was sent before it showed. Those words that promise
    /// that nothing was executed are not true of it.
    var afterSending: StoreFailure {
        switch self {
        case .timeout, .disconnected, .protocolError: self
        case .unreachable, .tls, .denied, .evicting, .breakerOpen, .overloaded, .system:
            .disconnected
        }
    }
}

extension RedisFailure {
    /// What to do about an error reply to a claim.
    static func hint(forRefusedClaim code: String) -> String {
        switch code {
        case "OOM": "its memory is full: raise maxmemory"
        case "NOPERM", "NOAUTH", "WRONGPASS": permissions
        case "READONLY", "MASTERDOWN": "it is a replica: name the master, or use redis+sentinel://"
        case "MISCONF": "it cannot save to disk and refuses writes: see its log"
        case "LOADING": "it is loading its data and can be used soon"
        case "CLUSTERDOWN": "slots of the cluster have no master: see CLUSTER INFO"
        case "MOVED", "ASK", "CROSSSLOT": "it is in cluster mode: use redis+cluster://"
        case "ERR": "Redis 6.2 or Valkey is needed (SET with NX and PXAT)"
        default: "see the log of the server"
        }
    }
}
