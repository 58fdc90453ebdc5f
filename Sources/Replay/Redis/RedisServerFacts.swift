/// What INFO says of a server.
struct RedisServerFacts: Equatable {
    /// Changes when its memory may have changed: with each start (`run_id`), and when it becomes
    /// the master or gets another master's data (`master_replid`).
    var identity: [UInt8]
    /// It is no replica.
    var isMaster: Bool
    /// It is in cluster mode.
    var isCluster: Bool
    /// It has a limit of memory and drops keys before their time when it is reached: the policy.
    var evictionPolicy: String?

    /// Reads the lines of INFO (sections server, memory, replication and cluster).
    ///
    /// - Returns: nil when there is no `run_id`.
    init?(info: [UInt8]) {
        var values: [Substring: Substring] = [:]
        let text = String(decoding: info, as: UTF8.self)
        for line in text.split(whereSeparator: \.isNewline) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            values[line[..<colon]] = line[line.index(after: colon)...]
        }
        guard let run = values["run_id"], !run.isEmpty, run.utf8.count <= 64,
            !run.contains(" ")
        else { return nil }
        let replication = values["master_replid"].map { ".\($0.prefix(64))" } ?? ""
        identity = Array("\(run)\(replication)".utf8)
        isMaster = (values["role"] ?? "master") == "master"
        isCluster = values["cluster_enabled"] == "1" || values["redis_mode"] == "cluster"
        evictionPolicy = Self.evictionPolicy(values)
    }

    private static func evictionPolicy(_ values: [Substring: Substring]) -> String? {
        guard let limit = values["maxmemory"], limit != "0",
            let policy = values["maxmemory_policy"], policy != "noeviction"
        else { return nil }
        return String(policy.prefix(32))
    }
}
