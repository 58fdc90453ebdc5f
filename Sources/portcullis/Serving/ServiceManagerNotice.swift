internal import Reactor

/// What the process tells the service manager that started it (pitfall O10): sd_notify(3), one
/// datagram a message, without its library. Where nobody asked, nothing is sent.
struct ServiceManagerNotice: Sendable {
    /// What one message says.
    enum Message: Sendable {
        /// Requests are served; the start, or a reload, is over.
        case ready(status: String)
        /// A reload has begun, at this instant.
        case reloading(at: MonotonicInstant)
        /// The end has begun, and may take this much longer before it is to be forced.
        case stopping(status: String, extension: Duration)
        /// Another process is the service from now on, and will say what is to be said.
        case succeeded(by: Int32)
        /// How things are, for `systemctl status`.
        case status(String)
        /// The process is not stuck.
        case alive
    }

    /// Longer words are cut; nobody reads more in one line.
    private static let statusLimit = 400
    /// How long a message waits for a manager that is busy, milliseconds.
    private static let patience: Int32 = 1000

    private let socket: SocketAddress?
    /// How often the manager wants to hear `alive`: half of the time after which it gives up; nil
    /// when it does not want to.
    let watchdogInterval: Duration?

    /// - Parameters:
    ///   - process: Whose messages these are; a watchdog can be meant for another one.
    ///   - environment: A variable of the environment.
    init(process: Int32, environment: (String) -> String?) {
        socket = environment("NOTIFY_SOCKET").flatMap(Self.address)
        watchdogInterval = Self.watchdogInterval(process, environment)
    }

    /// The notices of this process.
    static var current: ServiceManagerNotice {
        ServiceManagerNotice(
            process: Syscalls.processIdentifier(), environment: Syscalls.environmentVariable)
    }

    /// Sends a message; returns at once where nobody listens.
    ///
    /// - Throws: what kept it from arriving.
    func send(_ message: Message) throws(Errno) {
        guard let socket else { return }
        let bytes = Array(Self.text(message).utf8)
        try bytes.span.withUnsafeBytes { bytes throws(Errno) in
            try Syscalls.sendDatagram(bytes, to: socket, patience: Self.patience)
        }
    }

    /// The lines of a message, as sd_notify(3) wants them.
    static func text(_ message: Message) -> String {
        switch message {
        case .ready(let status): "READY=1\nSTATUS=\(line(status))"
        case .reloading(let instant):
            "RELOADING=1\nMONOTONIC_USEC=\(instant.nanoseconds / 1000)\n"
                + "STATUS=reading the configuration again"
        case .stopping(let status, let more):
            "STOPPING=1\nEXTEND_TIMEOUT_USEC=\(more.nanoseconds / 1000)\nSTATUS=\(line(status))"
        case .succeeded(let process): "MAINPID=\(process)"
        case .status(let status): "STATUS=\(line(status))"
        case .alive: "WATCHDOG=1"
        }
    }

    /// A line end in a status would begin another field.
    private static func line(_ status: String) -> String {
        let scalars = status.unicodeScalars.prefix(statusLimit).map {
            $0.properties.generalCategory == .control ? " " : $0
        }
        return String(String.UnicodeScalarView(scalars))
    }

    private static func address(_ text: String) -> SocketAddress? {
        text.hasPrefix("@")
            ? SocketAddress(abstractName: String(text.dropFirst())) : SocketAddress(unixPath: text)
    }

    private static func watchdogInterval(_ process: Int32, _ environment: (String) -> String?)
        -> Duration?
    {
        if let owner = environment("WATCHDOG_PID"), Int32(owner) != process { return nil }
        guard let text = environment("WATCHDOG_USEC"), let limit = Int64(text), limit > 1 else {
            return nil
        }
        return .microseconds(limit / 2)
    }
}
