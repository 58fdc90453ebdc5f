internal import Policy

/// `replay` and `when_unavailable` of a route, and what they and `[replay]` say about each other.
extension ConfigurationLoader {
    /// Reads both keys.
    ///
    /// - Parameter appCheck: nil when it is wrong itself.
    func readReplayRules(_ table: TableReader, appCheck: Route.Mode?, into route: inout Route) {
        let setting = table.setting("replay")
        let replay = setting == nil ? route.replay : setting?.choice(Route.Mode.self)
        let whenUnavailable = table.setting("when_unavailable")
        route.whenUnavailable = whenUnavailable?.choice(WhenUnavailable.self)
        guard let replay else { return }
        if replay == .off {
            let reason = setting == nil ? "the route has no \"replay\"" : "\"replay\" is \"off\""
            whenUnavailable?.hasNoEffect(because: reason, isSwitchedOff: setting != nil)
        }
        if let setting, let appCheck, replay > appCheck {
            let isLeftOut = table.setting("app_check") == nil
            setting.error(
                "is stricter than \"app_check\": \(quoted(replay.rawValue)) needs app_check = "
                    + "\(quoted(replay.rawValue)), not \(quoted(appCheck.rawValue))",
                hint: isLeftOut ? "\"app_check\" is \"monitor\" where it is left out" : nil)
            return
        }
        route.replay = replay
        if replay == .enforce, route.whenUnavailable == .allow {
            whenUnavailable?.warning(Self.lenience, hint: Self.lenienceHint)
        }
    }

    /// Warns of what is allowed and rarely meant. Only a file without mistakes is worth it: a route
    /// that could not be read might be the one that makes sense of `[replay]`.
    func warnAboutReplay(_ reading: ReplayReading, _ routes: [Route]) {
        guard let table = reading.table, !log.hasErrors else { return }
        if !routes.contains(where: { $0.replay != .off }) {
            log.warning(
                "[replay] has no effect: no [[route]] has \"replay\"", at: table.region,
                hint: "write replay = \"enforce\" where a token may be used only once")
        }
        let enforced = routes.filter { $0.replay == .enforce }
        if reading.settings.store == .memory, let route = enforced.first {
            table.setting("store")?.warning(
                "forgets with the process which tokens were used, and route "
                    + "\(quoted(route.name)) is enforced",
                hint: "a restart, an upgrade or a second process accepts each token again; "
                    + "store = \"file\" does not")
        }
        if reading.settings.whenUnavailable == .allow,
            enforced.contains(where: { $0.whenUnavailable == nil })
        {
            table.setting("when_unavailable")?.warning(Self.lenience, hint: Self.lenienceHint)
        }
    }

    private static let lenience =
        "lets a token through as often as it comes while the store is away"

    private static let lenienceHint =
        "who can disturb the store can then use tokens again; \"reject\" answers 503"
}
