/// Which of several certificates is for a name: an exact name before a wildcard, which stands for
/// one label (RFC 6125, section 6.4.3); the first of the list for every other name.
public struct ServerNames: Sendable {
    private var exact: [String: Int] = [:]
    /// By the name behind "*.".
    private var wildcards: [String: Int] = [:]

    /// - Parameter names: Those of each certificate, lower case. Of two certificates for one name
    ///   the first is chosen.
    public init(_ names: [[String]]) {
        for (index, names) in names.enumerated() {
            for name in names {
                if name.hasPrefix("*.") {
                    let parent = String(name.dropFirst(2))
                    if wildcards[parent] == nil { wildcards[parent] = index }
                } else if exact[name] == nil {
                    exact[name] = index
                }
            }
        }
    }

    /// The place of the certificate for a name.
    ///
    /// - Parameter name: As a client sent it: any case, perhaps with a final dot.
    /// - Returns: nil when none is for it.
    public func find(_ name: some Collection<UInt8>) -> Int? {
        var text = String(decoding: name, as: UTF8.self).lowercased()
        if text.hasSuffix(".") { text.removeLast() }
        if let index = exact[text] { return index }
        guard let dot = text.firstIndex(of: ".") else { return nil }
        return wildcards[String(text[text.index(after: dot)...])]
    }
}
