internal import Policy

/// The request that `explain` is asked about, as the command line has it.
struct ExplainRequest: Equatable {
    /// A field line of the request.
    struct Field: Equatable {
        var name: String
        var value: String
    }

    /// Where the token comes from.
    enum TokenSource: Equatable {
        case text(String)
        case standardInput
    }

    var configuration: String
    var method: String
    var url: RequestURL
    var fields: [Field] = []
    var token: TokenSource?
    /// Who asks, for the enforced share.
    var clientIP = "127.0.0.1"
    /// Whether key sets may be fetched; nothing else is ever sent.
    var fetchesKeys = false

    /// A field says whom the request is forwarded for; of whom that is believed, a listener knows.
    var hasForwardingField: Bool {
        fields.contains { ["x-forwarded-for", "forwarded"].contains($0.name.lowercased()) }
    }

    private static let header = Option(names: ["-H", "--header"])
    private static let token = Option(names: ["--token"])
    private static let clientIP = Option(names: ["--client-ip"])
    private static let fetchKeys = Option(names: ["--fetch-keys"], takesValue: false)

    /// What `explain` knows besides the options of every command.
    static let options = [header, token, clientIP, fetchKeys]

    init(_ options: ParsedOptions) throws(UsageError) {
        guard let configuration = try options.one(.config) else {
            throw UsageError("explain needs -c FILE")
        }
        self.configuration = configuration
        guard options.operands.count == 2 else {
            throw UsageError("explain needs METHOD and URL")
        }
        method = options.operands[0]
        url = try RequestURL(options.operands[1])
        for text in options.all(Self.header) { fields.append(try Self.field(text)) }
        if let token = try options.one(Self.token) {
            self.token = token == "-" ? .standardInput : .text(token)
        }
        let isTokenField = { (field: Field) in field.name.lowercased() == appCheckTokenField }
        if token != nil, fields.contains(where: isTokenField) {
            throw UsageError("--token and -H \(appCheckTokenField) are two ways to say the same")
        }
        if let address = try options.one(Self.clientIP) {
            guard IPAddress(address) != nil else {
                throw UsageError("--client-ip needs an IP address, not \"\(address)\"")
            }
            clientIP = address
        }
        fetchesKeys = options.has(Self.fetchKeys)
    }

    private static func field(_ text: String) throws(UsageError) -> Field {
        guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
            throw UsageError("-H needs \"Name: value\", not \"\(text)\"")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " }
        return Field(name: String(text[..<colon]), value: String(value))
    }
}

/// The field that carries tokens, lower case.
let appCheckTokenField = "x-firebase-appcheck"

/// A URL, split as a client splits it before it sends anything.
struct RequestURL: Equatable {
    /// The scheme is https.
    var isEncrypted: Bool
    /// Host and port as written.
    var authority: String
    /// What goes onto the request line: path and query.
    var target: String
    /// A client keeps the fragment to itself.
    var hadFragment: Bool

    init(_ text: String) throws(UsageError) {
        let lower = text.lowercased()
        guard let scheme = ["https://", "http://"].first(where: lower.hasPrefix) else {
            throw UsageError("the URL must start with https:// or http://, not \"\(text)\"")
        }
        isEncrypted = scheme == "https://"
        let rest = text.dropFirst(scheme.count)
        let withoutFragment = rest.prefix { $0 != "#" }
        hadFragment = withoutFragment.endIndex != rest.endIndex
        authority = String(withoutFragment.prefix { $0 != "/" && $0 != "?" })
        let target = withoutFragment.dropFirst(authority.count)
        self.target = target.hasPrefix("/") ? String(target) : "/" + target
        if authority.isEmpty { throw UsageError("the URL has no host: \"\(text)\"") }
    }
}
