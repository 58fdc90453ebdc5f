internal import Operations

/// A report as a terminal shows it at three in the morning: what is wrong first, plain ASCII, at most
/// 100 columns; colours only where somebody wants them.
struct StatusView {
    private static let width = 100
    /// Rows of a table; the document has them all.
    private static let rowLimit = 15

    private let report: StatusReport
    private let isColoured: Bool

    init(_ report: StatusReport, isColoured: Bool = false) {
        self.report = report
        self.isColoured = isColoured
    }

    /// Line by line.
    var lines: [String] {
        head + problems + traffic + verdicts + reasons + failures + upstreams + keySets + replay
            + certificates + listeners
    }

    // MARK: The process

    private var head: [String] {
        let process = report.process
        let configuration = report.configuration
        let readiness = process.ready ? "ready" : "NOT READY"
        let most = process.memoryLimitBytes.map { " of \($0 >> 20)" } ?? ""
        let memory = process.residentBytes.map { "\($0 >> 20)\(most) MiB of memory, " } ?? ""
        let limit = process.descriptorLimit.map { " of \($0)" } ?? ""
        let descriptors = process.openDescriptors.map { "\($0)\(limit) descriptors" } ?? ""
        let failures = configuration.failedReloads
        let failed = failures > 0 ? ", \(failures) failed" : ""
        return [
            fitted(
                "portcullis \(process.version): \(process.phase), \(readiness); pid \(process.pid), up "
                    + "\(Self.span(process.uptimeSeconds)), \(process.loops) event loops"),
            fitted(memory + descriptors),
            fitted(
                "\(configuration.file), in place since \(configuration.loadedAt); "
                    + "\(configuration.reloads) reloads\(failed)"),
        ]
    }

    private var problems: [String] {
        if report.problems.isEmpty { return ["", "No problems."] }
        return title("Problems")
            + report.problems.flatMap { problem in
                let (mark, colour) =
                    switch problem.severity {
                    case .critical: ("!!", Self.red)
                    case .warning: ("! ", Self.yellow)
                    case .note: ("- ", "")
                    }
                return Self.wrapped(Self.plain(problem.text), Self.width - 5).enumerated().map {
                    coloured("  \($0 == 0 ? mark : "  ") \($1)", colour)
                }
            }
    }

    // MARK: Traffic

    private var traffic: [String] {
        let windows = report.traffic.windows
        if windows.isEmpty { return [] }
        var table = TextTable(["last"] + windows.map { "\($0.minutes) min" })
        table.append(["requests/s"] + windows.map { Self.rate($0.perSecond) })
        table.append(["requests"] + windows.map { "\($0.requests)" })
        table.append(["5xx"] + windows.map { "\($0.serverErrors)" })
        table.append(["rejected"] + windows.map { "\($0.rejected)" })
        table.append(["would reject"] + windows.map { "\($0.wouldReject)" })
        return title("Traffic") + shown(table)
    }

    private static let countColumns = ["1 min", "5 min", "15 min"]

    private var verdicts: [String] {
        let rows = report.traffic.verdicts.map { row in
            [row.route, Self.word(row.verdict), Self.word(row.action)]
                + row.requests.all.map(String.init)
        }
        return section("Verdicts", ["route", "verdict", "action"] + Self.countColumns, rows)
    }

    private var reasons: [String] {
        let rows = report.traffic.reasons.map { row in
            [row.verdict, Self.word(row.reason), Self.word(row.action)]
                + row.requests.all.map(String.init)
        }
        return section(
            "Why not verified", ["verdict", "reason", "action"] + Self.countColumns, rows)
    }

    private var failures: [String] {
        let rows = report.traffic.failures.map { row in
            [row.failure] + row.requests.all.map(String.init)
        }
        let limits = report.traffic.limits.map { row in
            [row.limit] + row.hits.all.map(String.init)
        }
        return section("Failures", ["failure"] + Self.countColumns, rows)
            + section("Limits that were hit", ["limit"] + Self.countColumns, limits)
    }

    // MARK: State

    private var upstreams: [String] {
        let rows = report.upstreams.flatMap { upstream in
            // Those that somebody may have to do something about come first.
            let servers =
                upstream.servers.filter { $0.state != .ready }
                + upstream.servers.filter { $0.state == .ready }
            return servers.map { server in
                let ago = server.lastFailureSecondsAgo.map { " \(Self.span($0)) ago" } ?? ""
                return [
                    upstream.name, server.server, server.state.rawValue, "\(server.inFlight)",
                    "\(server.idleConnections)", server.lastFailure.map { $0 + ago } ?? "-",
                    server.configured == server.server ? "" : server.configured,
                ]
            }
        }
        return section(
            "Upstreams",
            ["upstream", "server", "state", "in flight", "idle", "last failure", "configured as"],
            rows, limit: 3 * Self.rowLimit)
    }

    private var keySets: [String] {
        let rows = report.keySets.map { keys in
            [
                keys.project, keys.usable ? "usable" : "NOT USABLE", "\(keys.keys)",
                "\(keys.skipped)", keys.ageSeconds.map(Self.span) ?? "never loaded",
                keys.nextRefreshSeconds.map { "in " + Self.span($0) } ?? "now",
                keys.lastError ?? "",
            ]
        }
        return section(
            "Keys", ["project", "state", "keys", "skipped", "age", "next", "last error"], rows)
    }

    private var replay: [String] {
        guard let replay = report.replay else { return [] }
        let limit = replay.entryLimit.map { " of \($0)" } ?? ""
        let row = [
            replay.store, replay.entries.map { "\($0)\(limit)" } ?? "-", replay.breaker ?? "-",
        ]
        return section("Replay store", ["store", "claims", "breaker"], [row])
    }

    private var certificates: [String] {
        let rows = report.certificates.sorted { $0.secondsLeft < $1.secondsLeft }.map {
            [
                $0.expiresAt, $0.secondsLeft < 0 ? "EXPIRED" : Self.span($0.secondsLeft), $0.file,
                $0.names.joined(separator: " "),
            ]
        }
        return section("Certificates", ["expires", "left", "certificate", "names"], rows)
    }

    private var listeners: [String] {
        let rows = report.listeners.map {
            [
                $0.name, $0.protocols.joined(separator: ", ") + ($0.tls ? " over TLS" : ""),
                "\($0.active)", "\($0.idle)", "\($0.accepted)",
            ]
        }
        return section("Listeners", ["listen", "serves", "active", "idle", "accepted"], rows)
    }

    // MARK: Layout

    private static let red = "31"
    private static let yellow = "33"
    private static let bold = "1"

    private func section(
        _ name: String, _ header: [String], _ rows: [[String]], limit: Int = rowLimit
    ) -> [String] {
        if rows.isEmpty { return [] }
        let columns = header.indices.filter { column in
            rows.contains { !$0[column].isEmpty }
        }
        var table = TextTable(columns.map { header[$0] })
        for row in rows.prefix(limit) { table.append(columns.map { Self.plain(row[$0]) }) }
        let rest = rows.count - limit
        return title(name) + shown(table)
            + (rest > 0 ? ["  ... and \(rest) more; --json has all of them"] : [])
    }

    private func title(_ text: String) -> [String] { ["", coloured(text, Self.bold)] }

    private func shown(_ table: TextTable) -> [String] {
        table.description.split(separator: "\n").map { fitted(String($0)) }
    }

    private func coloured(_ text: String, _ code: String) -> String {
        isColoured && !code.isEmpty ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private func fitted(_ line: String) -> String {
        let line = Self.plain(line)
        return line.count <= Self.width ? line : line.prefix(Self.width - 3) + "..."
    }

    /// Printable ASCII, so that nothing from elsewhere reaches the terminal as more than text.
    private static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { 0x20...0x7E ~= $0.value ? $0 : $0 == "\n" ? " " : "?" }))
    }

    private static func wrapped(_ text: String, _ width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            var word = word
            if !line.isEmpty && line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            while word.count > width {
                lines.append(String(word.prefix(width)))
                word = word.dropFirst(width)
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return lines + [line]
    }

    private static func word(_ word: String) -> String { word.isEmpty ? "-" : word }

    private static func rate(_ value: Double) -> String {
        let tenths = Int((min(max(value, 0), 1e12) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// "3d 4h", "12m 5s".
    static func span(_ seconds: Int64) -> String {
        let units: [(Int64, String)] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")]
        let seconds = max(0, seconds)
        guard let first = units.firstIndex(where: { seconds >= $0.0 }) else { return "0s" }
        let large = "\(seconds / units[first].0)\(units[first].1)"
        let rest = seconds % units[first].0
        if first + 1 == units.count || rest / units[first + 1].0 == 0 { return large }
        return "\(large) \(rest / units[first + 1].0)\(units[first + 1].1)"
    }
}
