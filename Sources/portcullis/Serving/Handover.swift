internal import Configuration
internal import Operations
internal import Proxy
internal import Reactor

/// What a process tells the one that is to take its place (`SIGUSR2`): lines of words in the
/// environment, in as many variables as it takes. Nothing in it is secret.
///
/// Versions of the program differ, so a kind of line that is not known is passed over.
struct Handover: Equatable {
    /// The variable of the environment; those for the rest have a number behind it.
    static let variable = "PORTCULLIS_HANDOVER"
    /// The kernel takes 128 KiB in one variable (MAX_ARG_STRLEN).
    private static let variableLimit = 100 << 10

    /// The process that hands over.
    var process: Int32
    /// The descriptor on which both talk.
    var channel: Int32
    /// When it is given up. Both processes have the same monotonic clock.
    var deadline: MonotonicInstant
    /// Listening sockets.
    var sockets: [PassedSocket] = []
    /// Which store claims are made in; nil when there is none.
    var claimStore: String?
    /// Projects whose tokens can be verified.
    var usableProjects: [String] = []
    /// Servers that fail their health checks.
    var unhealthy: Set<HealthSnapshot.Server> = []
    /// What the names of servers mean.
    var names: [ListenAddress: [ListenAddress]] = [:]
    /// Servers that operators took out of service.
    var drains: [Drain] = []
    /// Attempts so far.
    var upgrades = UpgradeStatus.Counts()

    /// A server that gets no new requests.
    struct Drain: Equatable {
        /// The upstream's name in the configuration.
        var upstream: String
        /// The server as the configuration writes it, or one of its addresses.
        var server: String
        /// Who asked for it.
        var by: String
        /// Seconds since 1970.
        var since: Int64
    }

    /// What was handed over to this process; nil in an ordinary start.
    ///
    /// - Throws: why it cannot be what it says.
    static func find() throws(HandoverError) -> Handover? {
        guard var text = Syscalls.environmentVariable(variable) else { return nil }
        var number = 1
        while let rest = Syscalls.environmentVariable("\(variable)_\(number)") {
            text += rest
            number += 1
        }
        guard let handover = Handover(text) else { throw .unreadable }
        // As with LISTEN_PID: a variable can be left over from somebody else.
        if handover.process != Syscalls.parentProcessIdentifier() { throw .foreign }
        return handover
    }

    /// "NAME=value" of each variable.
    var variables: [String] {
        // Its words are escaped: every byte is a character.
        var rest = Array(text.utf8)[...]
        var variables: [String] = []
        repeat {
            let piece = String(decoding: rest.prefix(Self.variableLimit), as: UTF8.self)
            let number = variables.isEmpty ? "" : "_\(variables.count)"
            variables.append("\(Self.variable)\(number)=\(piece)")
            rest = rest.dropFirst(Self.variableLimit)
        } while !rest.isEmpty
        return variables
    }

    /// All of it.
    var text: String {
        var lines = [
            ["process", "\(process)"], ["channel", "\(channel)"],
            ["deadline", "\(deadline.nanoseconds)"],
            ["upgrades", "\(upgrades.succeeded)", "\(upgrades.failed)"],
        ]
        for origin in Set(sockets.map(\.origin)) {
            // A variable has 128 KiB at most, and a listener a socket for each event loop.
            let numbers = sockets.filter { $0.origin == origin }.map { "\($0.number)" }
            switch origin {
            case .opened(let address): lines.append(["opened", "\(address)"] + numbers)
            case .manager(let name): lines.append(["manager", name] + numbers)
            }
        }
        if let claimStore { lines.append(["claims", claimStore]) }
        lines += usableProjects.map { ["keys", $0] }
        lines += unhealthy.map { ["unhealthy", $0.upstream, $0.label] }
        lines += names.map { ["name", "\($0)"] + $1.map(\.description) }
        lines += drains.map { ["drained", $0.upstream, $0.server, $0.by, "\($0.since)"] }
        return lines.map { $0.map(Self.escaped).joined(separator: " ") }.joined(separator: "\n")
    }

    /// Reads all of it; nil when something in it cannot be.
    init?(_ text: String) {
        self.init(process: 0, channel: -1, deadline: MonotonicInstant(nanoseconds: 0))
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
                .map(Self.unescaped)
            guard read(words[0], Array(words.dropFirst())) else { return nil }
        }
        if process <= 0 || channel < 0 { return nil }
    }

    init(process: Int32, channel: Int32, deadline: MonotonicInstant) {
        self.process = process
        self.channel = channel
        self.deadline = deadline
    }

    private mutating func read(_ kind: String, _ words: [String]) -> Bool {
        switch (kind, words.count) {
        case ("process", 1...): process = Int32(words[0]) ?? 0
        case ("channel", 1...): channel = Int32(words[0]) ?? -1
        case ("deadline", 1...):
            guard let nanoseconds = Int64(words[0]) else { return false }
            deadline = MonotonicInstant(nanoseconds: nanoseconds)
        case ("upgrades", 2...):
            upgrades.succeeded = UInt64(words[0]) ?? 0
            upgrades.failed = UInt64(words[1]) ?? 0
        case ("opened", 2...):
            guard let address = ListenAddress(words[0]) else { return false }
            return take(words.dropFirst(), .opened(address))
        case ("manager", 2...): return take(words.dropFirst(), .manager(name: words[0]))
        case ("claims", 1...): claimStore = words[0]
        case ("keys", 1...): usableProjects.append(words[0])
        case ("unhealthy", 2...): unhealthy.insert(.init(upstream: words[0], label: words[1]))
        case ("name", 1...):
            guard let server = Self.server(words[0]) else { return false }
            names[server] = words.dropFirst().compactMap { ListenAddress($0) }
        case ("drained", 4...):
            drains.append(
                Drain(
                    upstream: words[0], server: words[1], by: words[2],
                    since: Int64(words[3]) ?? 0))
        default: break
        }
        return true
    }

    private mutating func take(_ numbers: ArraySlice<String>, _ origin: PassedSocket.Origin)
        -> Bool
    {
        for text in numbers {
            guard let number = Int32(text), number > 2 else { return false }
            sockets.append(PassedSocket(number: number, origin: origin))
        }
        return true
    }

    /// "name:port": what is connected to has a name where what is listened on has an address.
    private static func server(_ text: String) -> ListenAddress? {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        guard let port = UInt16(text[text.index(after: colon)...]) else { return nil }
        return .tcp(host: String(text[..<colon]), port: port)
    }

    /// Names and paths of the configuration may hold what separates words and lines.
    private static func escaped(_ word: String) -> String {
        var text = ""
        for byte in word.utf8 {
            if byte <= 0x20 || byte == UInt8(ascii: "%") || byte >= 0x7F {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            } else {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return text
    }

    private static func unescaped(_ word: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(word.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            if byte == UInt8(ascii: "%"), rest.count >= 2, let value = UInt8(digits, radix: 16) {
                bytes.append(value)
                rest.removeFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Why this process cannot take another one's place.
enum HandoverError: Error, CustomStringConvertible {
    case unreadable
    case foreign

    var description: String {
        switch self {
        case .unreadable: "\(Handover.variable) is not what a running portcullis passes on"
        case .foreign:
            "\(Handover.variable) comes from a process that did not start this one, or is gone; "
                + "an ordinary start needs it unset"
        }
    }
}
