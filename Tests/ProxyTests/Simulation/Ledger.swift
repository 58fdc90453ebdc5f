#if DEBUG
    import Proxy
    import TestKit

    /// What is true of every request of a simulation, whatever happens: who sent it, who may see it, who
    /// saw it, what was answered, and what was recorded.
    final class Ledger {
        enum Route: String, CaseIterable {
            case open, monitored, enforced, once
        }

        /// One request.
        struct Entry {
            let route: Route
            let method: String
            let token: TokenKind
            /// The token itself, where it is for one request.
            let limitedUseToken: String?
            /// Bytes of its content.
            let contentLength: Int
            /// Its content does not follow HTTP.
            let isBroken: Bool
            /// It is for the servers that speak HTTP/2.
            let isShared: Bool
            /// Who sent it, as far as anybody can know.
            let client: String
            /// It comes where nothing more may be read: behind what ended the connection.
            let isForbidden: Bool
            /// How often a server got its head.
            var servings = 0
            /// What the server that got it last answers.
            var answerLength = 0
            var answerStatus = 0
            /// The server has sent all of its answer.
            var isAnswered = false
            /// Records that were written.
            var records = 0
            var recordedStatus = 0
            /// The client has got a complete answer.
            var answeredStatus: Int?
            var isOver = false
        }

        private let kernel: SimulatedKernel
        private var entries: [Entry] = []
        /// Which request a limited-use token was good for.
        private var spent: [String: Int] = [:]
        /// Limited-use tokens that somebody else sent as well, maybe sooner than who had them first.
        private var shared: Set<String> = []
        /// Records of requests that no head was read of.
        private(set) var anonymousRecords = 0
        private(set) var answers: [Int: Int] = [:]

        init(kernel: SimulatedKernel) {
            self.kernel = kernel
        }

        var count: Int { entries.count }
        /// Requests that a server saw.
        var servedCount: Int { entries.count { $0.servings > 0 } }

        subscript(id: Int) -> Entry? { entries.indices.contains(id) ? entries[id] : nil }

        /// A client is about to send a request.
        func begin(_ entry: Entry) -> Int {
            if entry.token == .replayed, let token = entry.limitedUseToken { shared.insert(token) }
            entries.append(entry)
            return entries.count - 1
        }

        // MARK: Servers

        /// What a server got as the head of a request.
        struct Arrival {
            let path: String
            let method: String
            let hasToken: Bool
            let forwardedFor: String?
            /// By HTTP/2.
            let isShared: Bool
        }

        /// A server got the head of a request.
        ///
        /// - Parameter isActedUpon: It does something with it. Where it said before that it would not,
        ///   the request may be with another one by now.
        /// - Returns: the request's number; nil when it is none that a client sent.
        func served(_ arrival: Arrival, isActedUpon: Bool = true) -> Int? {
            let parts = arrival.path.split(separator: "/")
            guard parts.count == 2, let id = Int(parts[1]), entries.indices.contains(id) else {
                kernel.report("\(arrival.path) was never asked for")
                return nil
            }
            if isActedUpon { entries[id].servings += 1 }
            let entry = entries[id]
            if parts[0] != entry.route.rawValue || arrival.method != entry.method {
                kernel.report("request \(id) became \(arrival.method) \(arrival.path)")
            }
            if arrival.isShared != entry.isShared {
                kernel.report("request \(id) went to another upstream")
            }
            if arrival.hasToken { kernel.report("the token of request \(id) went to a server") }
            if entry.isForbidden {
                kernel.report("request \(id) passed behind what ended its connection")
            }
            if arrival.forwardedFor != entry.client {
                kernel.report(
                    "request \(id) of \(entry.client) became one of "
                        + "\(arrival.forwardedFor ?? "nobody")")
            }
            judge(id, entry, isActedUpon)
            return id
        }

        /// The server says that it did nothing with it: it may come once more, and so may its token.
        func refused(_ id: Int) {
            entries[id].servings -= 1
            if entries[id].servings > 0 { return }
            if let token = entries[id].limitedUseToken, spent[token] == id { spent[token] = nil }
        }

        /// Whether a request may pass at all, by what came in place of its token.
        private func judge(_ id: Int, _ entry: Entry, _ isActedUpon: Bool) {
            if entry.servings > 1 { kernel.report("request \(id) was sent to a server twice") }
            switch (entry.route, entry.token) {
            case (.open, _), (.monitored, _): break
            case (.enforced, .session), (.enforced, .limitedUse), (.enforced, .replayed): break
            case (.once, .limitedUse), (.once, .replayed):
                guard let token = entry.limitedUseToken, isActedUpon else { break }
                if let first = spent[token], first != id {
                    kernel.report("one token was good for the requests \(first) and \(id)")
                }
                spent[token] = id
            default:
                kernel.report(
                    "request \(id), \(entry.route), passed with a token of kind \(entry.token)")
            }
        }

        /// A server will answer so.
        func willAnswer(_ id: Int, status: Int, length: Int) {
            entries[id].answerStatus = status
            entries[id].answerLength = length
        }

        /// A server has sent all of its answer.
        func answered(_ id: Int) {
            entries[id].isAnswered = true
        }

        // MARK: Clients

        /// A client got the whole of an answer.
        ///
        /// - Parameters:
        ///   - served: Whose answer it says that it is; nil for the proxy's own.
        func got(_ id: Int, status: Int, served: Int?, length: Int) {
            let entry = entries[id]
            entries[id].answeredStatus = status
            answers[status, default: 0] += 1
            if entry.answeredStatus != nil { kernel.report("request \(id) was answered twice") }
            if let served {
                if served != id { kernel.report("request \(id) got the answer to \(served)") }
                if !entry.isAnswered { kernel.report("the cut-off answer to \(id) looks complete") }
                if status != entry.answerStatus {
                    kernel.report("the answer \(entry.answerStatus) to \(id) became \(status)")
                }
                if length != entry.answerLength && entry.method != "HEAD" {
                    kernel.report("\(length) of \(entry.answerLength) bytes of the answer to \(id)")
                }
                return
            }
            // Our own answers.
            let isRejection = status == 401 || status == 403
            switch (entry.route, entry.token) {
            case (.once, .limitedUse) where entry.limitedUseToken.map(shared.contains) ?? true:
                break
            case (.open, _), (.monitored, _), (.enforced, .session), (.enforced, .limitedUse),
                (.once, .limitedUse):
                if isRejection { kernel.report("request \(id) was rejected with \(status)") }
            default: break
            }
        }

        /// The client waits for nothing any more.
        func end(_ id: Int) {
            entries[id].isOver = true
        }

        // MARK: Records

        /// A record was written.
        func recorded(_ target: String, status: Int, client: String) {
            guard let id = Self.id(in: target), entries.indices.contains(id) else {
                anonymousRecords += 1
                return
            }
            entries[id].records += 1
            entries[id].recordedStatus = status
            if entries[id].records > 1 { kernel.report("request \(id) has two records") }
            if entries[id].isForbidden {
                kernel.report("request \(id) was served behind what ended its connection")
            }
            if client != entries[id].client {
                kernel.report("request \(id) of \(entries[id].client) is recorded as \(client)'s")
            }
        }

        /// The number in a path such as /open/17.
        static func id(in target: String) -> Int? {
            target.split(separator: "/").dropFirst().first.flatMap { Int($0) }
        }

        /// Everything has come to its end.
        func close() {
            var headless = 0
            for (id, entry) in entries.enumerated() {
                if !entry.isOver { kernel.report("request \(id) never ended") }
                if let status = entry.answeredStatus {
                    if status == 408 && entry.records == 0 {
                        // Its head was never complete: the record does not know its target.
                        headless += 1
                    } else if entry.records != 1 {
                        kernel.report("request \(id) was answered and has \(entry.records) records")
                    } else if status != entry.recordedStatus {
                        kernel.report(
                            "request \(id) was answered with \(status), and recorded with "
                                + "\(entry.recordedStatus)")
                    }
                }
                if entry.servings > 0 && entry.records != 1 {
                    kernel.report("request \(id) was forwarded and has \(entry.records) records")
                }
            }
            if anonymousRecords < headless {
                kernel.report("\(headless) requests without a head, \(anonymousRecords) records")
            }
        }

        /// Content that nobody mistakes for another request's.
        static func content(_ id: Int, count: Int, salt: Int) -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: count) { memory, initialized in
                for index in 0..<count { memory[index] = byte(id, index, salt) }
                initialized = count
            }
        }

        static func byte(_ id: Int, _ index: Int, _ salt: Int) -> UInt8 {
            UInt8(truncatingIfNeeded: 97 &+ (id &* 31 &+ index &* 7 &+ salt &* 13) % 26)
        }
    }
#endif
