internal import Configuration
internal import Reactor

/// Says in the log that clients run into a limit: at once, and then at most every ten seconds, since
/// a flood must not be one of log lines too. One loop's.
struct LimitNotices {
    private static let interval = Duration.seconds(10)

    private struct Notice {
        var isDueAt = MonotonicInstant(nanoseconds: 0)
        var unreported = 0
    }

    private var notices: [Limit: Notice] = [:]

    /// A connection of a listener ran into a limit; `message` says what became of it.
    mutating func note(
        _ limit: Limit, _ message: String, listener: String, client: String,
        now: MonotonicInstant, log: any EventLog
    ) {
        var notice = notices[limit] ?? Notice()
        defer { notices[limit] = notice }
        if now < notice.isDueAt {
            notice.unreported += 1
            return
        }
        log.log(
            .warning, message,
            [
                ("limit", limit.rawValue), ("listener", listener), ("client", client),
                ("not_reported", String(notice.unreported)),
            ])
        notice = Notice(isDueAt: now.advanced(by: Self.interval))
    }
}
