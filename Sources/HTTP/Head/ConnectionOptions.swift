/// What the `Connection` lines of a head ask for (RFC 9110, section 7.6.1).
struct ConnectionOptions: Sendable {
    /// `close`.
    private(set) var hasClose = false
    /// `keep-alive`.
    private(set) var hasKeepAlive = false
    /// `upgrade`.
    private(set) var hasUpgrade = false

    /// More options than this are an attempt to make the proxy compare names all day.
    private static let optionsAllowed = 32

    /// Reads the options and marks the lines that they nominate as hop-by-hop.
    ///
    /// - Throws: `connection` when an option is no token, when there are too many, or when a
    ///   request nominates a field that routing or framing depends on (pitfall H4).
    init(
        _ bytes: Span<UInt8>, fields: inout FieldSection, of kind: MessageKind
    ) throws(MalformedMessage) {
        guard fields.contains(.connection) else { return }
        var count = 0
        for index in fields.lines.indices where fields.lines[index].known == .connection {
            var list = TokenList(fields.lines[index].value)
            while let option = try list.next(in: bytes, orThrow: .connection) {
                count += 1
                if count > Self.optionsAllowed { throw MalformedMessage(.connection) }
                let name = bytes.slice(option)
                if name.equals("keep-alive") {
                    hasKeepAlive = true
                } else if name.equals("close") {
                    hasClose = true
                } else if name.equals("upgrade") {
                    hasUpgrade = true
                } else {
                    try Self.nominate(option, in: bytes, fields: &fields, of: kind)
                }
            }
        }
    }

    /// Whether the connection may carry another message (RFC 9112, section 9.3).
    func isPersistent(_ version: Version) -> Bool {
        if hasClose { return false }
        return version == .http11 || hasKeepAlive
    }

    private static func nominate(
        _ option: ByteRange, in bytes: Span<UInt8>, fields: inout FieldSection, of kind: MessageKind
    ) throws(MalformedMessage) {
        switch KnownField(plainName: bytes.slice(option)) {
        case .host, .contentLength, .transferEncoding:
            if kind == .request { throw MalformedMessage(.connection) }
        case let field where field.mayBeNominated:
            let name = bytes.slice(option)
            for index in fields.lines.indices where fields.lines[index].known.mayBeNominated {
                if bytes.slice(fields.lines[index].name).equalsIgnoringCase(name) {
                    fields.lines[index].isHopByHop = true
                }
            }
        default: return
        }
    }
}
