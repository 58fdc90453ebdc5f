internal import Configuration
internal import FoundationEssentials
internal import HTTP
internal import Operations

/// `portcullis drain` and `undrain`: takes one server of an upstream out of service, or gives it
/// requests again.
struct DrainCommand: Equatable {
    static let tokenFile = Option(names: ["--token-file"])

    private let target: AdminTarget
    private let tokenFile: String?
    private let upstream: String
    private let server: String
    private let isDraining: Bool

    /// Reads `UPSTREAM SERVER` and the options.
    init(_ options: ParsedOptions, isDraining: Bool) throws(UsageError) {
        let verb = isDraining ? "drain" : "undrain"
        if options.operands.count != 2 {
            throw UsageError(
                "\(verb) needs UPSTREAM and SERVER, as \"portcullis status\" names them")
        }
        target = try AdminTarget(options)
        tokenFile = try options.one(Self.tokenFile)
        (upstream, server) = (options.operands[0], options.operands[1])
        // Names of upstreams are labels; anything else would be another path.
        let isLabel = upstream.utf8.allSatisfy { byte in
            byte.isLetterOrDigit || Array("-._".utf8).contains(byte)
        }
        if !isLabel || upstream.isEmpty {
            throw UsageError("\"\(upstream)\" cannot be the name of an upstream")
        }
        self.isDraining = isDraining
        if tokenFile == nil && target.configuration == nil {
            throw UsageError("\(verb) needs the admin token: -c FILE, or --token-file FILE")
        }
    }

    /// Asks for it, and prints what came of it.
    func perform(_ console: Console) -> ExitCode {
        do throws(AdminClientError) {
            let admin = try target.resolve(console)
            let token = try token(admin, console)
            let answer = try AdminClient(address: admin.listen).ask(.post, path, token: token)
            let change = try? JSONDecoder().decode(ServerChange.self, from: Data(answer.body))
            guard answer.status == 200, let change else {
                throw AdminClientError(
                    answer.problem
                        ?? "\(admin.listen) answered \(answer.status); is that the admin listener of "
                        + "this version of Portcullis?")
            }
            report(change, console)
            return .done
        } catch {
            console.complain("portcullis: \(error.message)")
            return .wrong
        }
    }

    private func report(_ change: ServerChange, _ console: Console) {
        let isNew = change.isChanged ? "" : "already "
        let addresses =
            change.addresses == [change.server] || change.addresses.isEmpty
            ? "" : " (\(change.addresses.joined(separator: ", ")))"
        let state =
            change.state == .draining
            ? "\(isNew)draining; \(counted(change.inFlight, "request")) under way"
            : "\(change.isChanged ? "getting requests again" : "already getting requests")"
        console.print(
            "\(change.upstream): \(change.server)\(addresses) is \(state); "
                + "\(counted(change.serversLeft, "server")) of \(change.upstream) in service")
        if let warning = change.warning { console.complain("portcullis: warning: \(warning)") }
        if change.silentLoops > 0 {
            console.complain(
                "portcullis: warning: \(counted(change.silentLoops, "event loop")) did not "
                    + "answer; there it takes effect later")
        }
    }

    private func token(_ admin: Admin, _ console: Console) throws(AdminClientError) -> String {
        guard let path = tokenFile ?? admin.tokenFile else {
            throw AdminClientError(
                "the configuration names no token_file in [admin], so nothing can be changed")
        }
        guard let bytes = console.surroundings.file(path) else {
            throw AdminClientError(
                "cannot read the admin token \(path); ask as a user that may, or give --token-file")
        }
        let text = String(decoding: bytes, as: UTF8.self)
        let token = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
        // What is no token cannot be one field of a request either.
        guard AdminToken(token) != nil else {
            throw AdminClientError("\(path) holds no admin token (16 characters or more, one line)")
        }
        return token
    }

    private var path: String {
        let server = server.utf8.map { byte in
            let isPlain = byte.isLetterOrDigit || Array("-._~:/".utf8).contains(byte)
            let digits = String(byte, radix: 16, uppercase: true)
            return isPlain
                ? String(UnicodeScalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
        }
        let verb = isDraining ? "drain" : "undrain"
        return "/upstreams/\(upstream)/servers/\(server.joined())/\(verb)"
    }
}

extension UInt8 {
    fileprivate var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
