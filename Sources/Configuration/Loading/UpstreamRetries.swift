internal import Policy

/// `retries` and `balance` of an upstream.
extension ConfigurationLoader {
    /// When a request is tried once more.
    func readRetries(_ table: TableReader, into upstream: inout Upstream) {
        guard let table = table.table("retries", schema: .retries) else { return }
        if let count = table.setting("attempts")?.integer(in: 0...10) {
            upstream.retries.attempts = count
        }
        if let share = table.setting("budget")?.percentage() { upstream.retries.budget = share }
        if let isTrusted = table.setting("idempotent")?.boolean() {
            upstream.retries.idempotent = isTrusted
        }
    }

    /// How a server is chosen.
    func readBalance(_ table: TableReader, into upstream: inout Upstream) {
        if let choice = table.setting("balance")?.choice(Upstream.Balance.self) {
            upstream.balance = choice
        }
        guard let setting = table.setting("hash_by") else { return }
        if upstream.balance != .hash {
            setting.hasNoEffect(
                because: "\"balance\" is \"\(upstream.balance.rawValue)\"",
                isSwitchedOff: table.setting("balance") != nil)
        }
        if let key = setting.string(checkHashKey) { upstream.hashBy = key }
    }
}

private func checkHashKey(_ text: String) throws(Misspelling) -> StickyKey {
    let choices = ["client_ip", "header:NAME"]
    if text == "client_ip" || text.hasPrefix("header:") { return try checkStickyKey(text) }
    throw Misspelling(
        "must be \(alternatives(choices)), not \(quoted(text))",
        suggestion: nearest(to: text, among: choices.prefix(1)))
}
