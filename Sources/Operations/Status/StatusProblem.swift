/// Something that an operator should look at.
public struct StatusProblem: Sendable, Codable, Equatable {
    /// How bad it is.
    public enum Severity: String, Sendable, Codable, CaseIterable {
        /// Requests are failing, or will very soon.
        case critical
        /// Something does not work, and is made up for as yet.
        case warning
        /// Somebody wanted it so.
        case note
    }

    public var severity: Severity
    public var text: String

    public init(_ severity: Severity, _ text: String) {
        self.severity = severity
        self.text = text
    }
}

extension StatusReport {
    private static let soonSeconds: Int64 = 14 * 86_400
    /// From this share of a limit on, in percent.
    private static let nearlyFull = 90
    /// 5xx in the last minute: how many, and what percentage of all.
    private static let notableErrors: UInt64 = 10
    private static let notableShare = 5.0
    /// Servers of one upstream that are listed one by one.
    private static let serverLimit = 10

    /// What is wrong by what the report says, the worst first.
    var derivedProblems: [StatusProblem] {
        // Before there are loops, nobody can say how upstreams are.
        let upstreams = process.loops > 0 ? upstreams : []
        let all =
            processProblems + configurationProblems + trafficProblems
            + upstreams.flatMap(Self.problems) + keySets.flatMap(Self.problems) + replayProblems
            + certificates.compactMap(Self.problem)
        return StatusProblem.Severity.allCases.flatMap { severity in
            all.filter { $0.severity == severity }
        }
    }

    private var processProblems: [StatusProblem] {
        var problems = process.silentLoops.map {
            StatusProblem(.critical, "event loop \($0) does not answer: its clients wait")
        }
        problems += process.notReady.map { StatusProblem(.critical, "not ready: \($0)") }
        if let open = process.openDescriptors, let limit = process.descriptorLimit,
            UInt64(open) * 100 >= limit * UInt64(Self.nearlyFull)
        {
            problems.append(
                .init(.critical, "\(open) of \(limit) descriptors are in use (LimitNOFILE)"))
        }
        if process.droppedLogLines > 0 {
            problems.append(
                .init(
                    .warning,
                    "\(process.droppedLogLines) log lines were dropped since the start: "
                        + "the reader of the log is too slow"))
        }
        return problems
    }

    private var configurationProblems: [StatusProblem] {
        guard let at = configuration.lastReloadAt, let first = configuration.lastReloadErrors.first
        else { return [] }
        let count = configuration.lastReloadErrors.count
        let more = count > 1 ? " (and \(count - 1) more)" : ""
        let line = first.split(separator: "\n").first.map(String.init) ?? first
        return [.init(.warning, "the reload at \(at) changed nothing: \(line)\(more)")]
    }

    private var trafficProblems: [StatusProblem] {
        guard let last = traffic.windows.first, last.serverErrors >= Self.notableErrors,
            last.requests > 0
        else { return [] }
        let share = Double(last.serverErrors) * 100 / Double(last.requests)
        if share < Self.notableShare { return [] }
        let failure = traffic.failures.max { $0.requests.oneMinute < $1.requests.oneMinute }
        let cause = failure.flatMap { failure in
            failure.requests.oneMinute > 0 ? ", mostly \(failure.failure)" : nil
        }
        return [
            .init(
                .critical,
                "\(Int(share.rounded())) % of the last minute's requests were answered "
                    + "with 5xx\(cause ?? "")")
        ]
    }

    private static func problems(_ upstream: UpstreamPart) -> [StatusProblem] {
        var problems: [StatusProblem] = []
        let isDrainedAlone = upstream.servers.allSatisfy { $0.state == .draining }
        if upstream.available == 0 {
            let consequence = upstream.panic ? "requests go to all of them" : "its requests get 503"
            problems.append(
                .init(
                    .critical,
                    isDrainedAlone && !upstream.servers.isEmpty
                        ? "upstream \(upstream.name): every server is drained: its requests get 503"
                        : "upstream \(upstream.name): no server works: \(consequence)"))
        } else if upstream.panic {
            problems.append(
                .init(
                    .critical,
                    "upstream \(upstream.name): only \(upstream.available) of "
                        + "\(upstream.total) servers work: requests go to all of them (panic)"))
        }
        let bad = upstream.servers.filter { $0.state != .ready && $0.state != .returning }
        for server in bad.prefix(serverLimit) {
            let why = server.why.map { ": \($0)" } ?? ""
            problems.append(
                .init(
                    server.state == .draining ? .note : .warning,
                    "upstream \(upstream.name): \(server.server) is \(server.state.rawValue)\(why)")
            )
        }
        if bad.count > serverLimit {
            problems.append(
                .init(.warning, "upstream \(upstream.name): and \(bad.count - serverLimit) more"))
        }
        if upstream.waiting > 0 {
            problems.append(
                .init(
                    .warning,
                    "upstream \(upstream.name): \(upstream.waiting) requests wait for "
                        + "room (limits)"))
        }
        return problems
    }

    private static func problems(_ keys: KeySetPart) -> [StatusProblem] {
        // An unusable key set is a reason not to be ready, and listed there.
        guard keys.usable, let error = keys.lastError else { return [] }
        return [
            .init(.warning, "the keys of project \(keys.project) could not be renewed: \(error)")
        ]
    }

    private var replayProblems: [StatusProblem] {
        guard let replay else { return [] }
        var problems: [StatusProblem] = []
        if let breaker = replay.breaker, breaker != "closed" {
            problems.append(
                .init(
                    .critical,
                    "the replay store \(replay.store) is out of reach: breaker \(breaker)"))
        }
        if let entries = replay.entries, let limit = replay.entryLimit, limit > 0,
            Double(entries) * 100 >= Double(limit) * Double(Self.nearlyFull)
        {
            problems.append(
                .init(
                    entries >= limit ? .critical : .warning,
                    "the replay store holds \(entries) of \(limit) claims (max_entries)"))
        }
        return problems
    }

    private static func problem(_ certificate: CertificatePart) -> StatusProblem? {
        let left = certificate.secondsLeft
        if left < 0 {
            return .init(.critical, "the certificate \(certificate.file) has expired")
        }
        if left > soonSeconds { return nil }
        return .init(
            left < 86_400 ? .critical : .warning,
            "the certificate \(certificate.file) expires at \(certificate.expiresAt)")
    }
}
