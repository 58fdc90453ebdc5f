internal import Policy

/// `google` in `[replay]`: how `verifyAppCheckToken` is called.
extension ConfigurationLoader {
    /// The account, or nil after what is wrong with it was reported.
    func readGoogle(_ replay: TableReader) -> GoogleAccount? {
        let hint = "such as google = { credentials = \"service-account.json\" }"
        guard replay.required("google", hint: hint) != nil,
            let table = replay.table("google", schema: .google)
        else { return nil }
        let url = table.setting("url")?.string(checkGoogleURL)
        let authority = readAuthority("ca", table)
        let proxy = table.setting("egress_proxy")?.string(readEgressProxy)
        let credentials = table.required(
            "credentials", hint: "the JSON key file of a service account: " + hint)
        guard let credentials, let path = credentials.string().map(resolved) else { return nil }
        warnIfUnreadable(path, credentials)
        var account = GoogleAccount(credentialsFile: path)
        if let url { account.url = url }
        account.authorityFile = authority
        account.egressProxy = proxy
        return account
    }
}

/// A service's URL up to its version. A slash at the end is taken off.
private func checkGoogleURL(_ text: String) throws(Misspelling) -> String {
    let url = try URLText(text)
    if url.rest.contains("?") {
        throw Misspelling("must not have a query: \(quoted(redacted(text)))")
    }
    let isSafe = url.scheme == "https" || AddressText.isLoopback(host: url.host)
    guard isSafe, url.scheme == "https" || url.scheme == "http" else {
        throw Misspelling(
            "must be https: \(quoted(redacted(text)))",
            hint: url.scheme == "http"
                ? "tokens over plain http could be read by anybody; only loopback is excepted"
                : nil)
    }
    return text.hasSuffix("/") ? String(text.dropLast()) : text
}
