internal import Policy

/// `[replay]`: where spent tokens are remembered.
extension ConfigurationLoader {
    /// `[replay]`, or its defaults.
    func readReplay(_ root: TableReader) -> ReplayReading {
        guard let table = root.table("replay", schema: .replay, label: "[replay]") else {
            return ReplayReading()
        }
        var reading = ReplayReading(table: table)
        let lifetimes: ClosedRange<Duration> = .seconds(1) ... .hours(7 * 24)
        if let setting = table.setting("limited_use_max_lifetime"),
            let lifetime = setting.wholeSeconds(in: lifetimes)
        {
            reading.settings.limitedUseMaxLifetime = lifetime
            if lifetime >= .minutes(30) {
                setting.warning(
                    "takes session tokens for limited-use ones: they may live for 30m",
                    hint: "limited-use tokens live for 5m")
            }
        }
        if let word = table.setting("when_unavailable")?.choice(WhenUnavailable.self) {
            reading.settings.whenUnavailable = word
        }
        let limit = table.setting("max_entries")?.integer(in: 1...100_000_000)
        if let limit { reading.settings.maxEntries = limit }
        guard let kind = readStoreKind(table) else { return reading }
        readStore(kind, table, into: &reading.settings)
        readPatience(kind, table, into: &reading.settings)
        readOthersKeys(kind, table)
        return reading
    }

    private func readStoreKind(_ table: TableReader) -> StoreKind? {
        guard let setting = table.setting("store") else { return .file }
        // People put the URL here, with its password.
        guard let text = setting.node.string, text.contains("://") else {
            return setting.choice(StoreKind.self)
        }
        setting.error(
            "must be \(alternatives(StoreKind.allCases.map(\.rawValue))), not a URL",
            hint: "write store = \"redis\", and the URL into \"redis\"")
        return nil
    }

    private func readStore(
        _ kind: StoreKind, _ table: TableReader, into settings: inout ReplaySettings
    ) {
        switch kind {
        case .memory: settings.store = .memory
        case .file: settings.store = .file
        case .redis:
            if let server = readRedis(table) { settings.store = .redis(server) }
        case .google:
            settings.timeout = .seconds(2)
            settings.monitorPatience = .milliseconds(500)
            if let account = readGoogle(table) { settings.store = .google(account) }
        }
    }

    private func readPatience(
        _ kind: StoreKind, _ table: TableReader, into settings: inout ReplaySettings
    ) {
        let times: ClosedRange<Duration> = .milliseconds(1) ... .minutes(1)
        if let timeout = table.setting("timeout")?.duration(in: times) {
            settings.timeout = timeout
            settings.monitorPatience = min(settings.monitorPatience, timeout)
        }
        guard let setting = table.setting("monitor_patience"),
            let patience = setting.duration(in: times)
        else { return }
        settings.monitorPatience = patience
        if patience > settings.timeout, kind.isRemote {
            setting.error(
                "must not be longer than \"timeout\", \(DurationText.format(settings.timeout))",
                hint: "a monitored request waits no longer than an enforced one")
        }
    }

    /// Keys of one store that stand beside another: for the day when the store is changed, if the
    /// file says which one it is today, else a mistake.
    private func readOthersKeys(_ kind: StoreKind, _ table: TableReader) {
        if kind != .redis { checkSpareRedis(table) }
        for key in Schema.replay.keys {
            guard let setting = table.setting(key), let owners = StoreKind.owners(of: key),
                !owners.contains(kind)
            else { continue }
            let isLeftOut = table.setting("store") == nil
            setting.hasNoEffect(
                because: "\"store\" is \"\(kind.rawValue)\"" + (isLeftOut ? " by default" : ""),
                isSwitchedOff: !isLeftOut,
                hint: isLeftOut && owners == [.redis] ? "write store = \"redis\"" : nil)
        }
    }
}

/// What was read of `[replay]`, with the table for what only the routes can tell.
struct ReplayReading {
    var settings = ReplaySettings()
    /// nil when the file has none.
    var table: TableReader?
}

/// The words of `store`.
enum StoreKind: String, CaseIterable {
    case memory, file, redis, google

    var isRemote: Bool { self == .redis || self == .google }

    /// The stores that a key means something to; nil: every one.
    static func owners(of key: String) -> [StoreKind]? {
        switch key {
        case "max_entries": [.memory, .file]
        case "timeout", "monitor_patience": [.redis, .google]
        case "google": [.google]
        default: ConfigurationLoader.redisKeys.contains(key) ? [.redis] : nil
        }
    }
}
