#if DEBUG
    internal import Glibc

    /// What goes wrong with which calls into the kernel, and when.
    public struct FaultRule: Sendable, Equatable {
        /// What happens to a call.
        public enum Fault: Sendable, Equatable {
            /// It fails.
            case error(Errno)
            /// It moves so many bytes at most, at least one.
            case short(Int)
        }

        /// `SystemCall.name`.
        public var call: String
        /// Only for paths that have this in them, or for the descriptor of this number.
        public var place: String?
        public var fault: Fault
        /// Calls that go well first.
        public var skipped = 0
        /// Of the calls from then on, every so many goes wrong, beginning with the last of these.
        public var period = 1
        /// How many go wrong before all go well.
        public var times = Int.max

        public init(
            _ call: String, _ fault: Fault, place: String? = nil, skipped: Int = 0,
            period: Int = 1, times: Int = .max
        ) {
            self.call = call
            self.fault = fault
            self.place = place
            self.skipped = skipped
            self.period = max(1, period)
            self.times = times
        }

        /// A rule whose calls fail.
        public init(
            _ call: String, _ error: Errno, place: String? = nil, skipped: Int = 0,
            period: Int = 1, times: Int = .max
        ) {
            self.init(
                call, .error(error), place: place, skipped: skipped, period: period, times: times)
        }

        /// Whether the rule is about this call.
        func concerns(_ call: SystemCall) -> Bool {
            if call.name != self.call { return false }
            guard let place else { return true }
            if let path = call.path { return path.contains(place) }
            return call.descriptor.map(String.init) == place
        }
    }

    /// Text that is no list of rules, and why.
    public struct FaultTextError: Error, CustomStringConvertible {
        public let rule: String
        public var description: String {
            "\"\(rule)\" is no fault: write call[path or descriptor]:fault[:times or 1/period][@skipped], "
                + "such as accept:EMFILE:3, send:short=7, open[/state/]:ENOSPC or recv:EAGAIN:1/3@10"
        }
    }

    extension FaultRule {
        private static let errors: [String: Int32] = [
            "EACCES": EACCES, "EADDRNOTAVAIL": EADDRNOTAVAIL, "EAGAIN": EAGAIN,
            "ECONNABORTED": ECONNABORTED, "ECONNREFUSED": ECONNREFUSED, "ECONNRESET": ECONNRESET,
            "EDQUOT": EDQUOT, "EHOSTUNREACH": EHOSTUNREACH, "EINTR": EINTR, "EIO": EIO,
            "EMFILE": EMFILE, "ENETDOWN": ENETDOWN, "ENFILE": ENFILE, "ENOBUFS": ENOBUFS,
            "ENOENT": ENOENT, "ENOMEM": ENOMEM, "ENOSPC": ENOSPC, "EPERM": EPERM, "EPIPE": EPIPE,
            "EPROTO": EPROTO, "EROFS": EROFS, "ETIMEDOUT": ETIMEDOUT,
        ]

        /// Reads rules as `description` writes them, with commas between them.
        public static func parse(_ text: String) throws(FaultTextError) -> [FaultRule] {
            var rules: [FaultRule] = []
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                guard let rule = FaultRule(part) else { throw FaultTextError(rule: String(part)) }
                rules.append(rule)
            }
            return rules
        }

        private init?(_ text: Substring) {
            var text = text
            var skipped = 0
            if let at = text.lastIndex(of: "@") {
                guard let number = Int(text[text.index(after: at)...]), number >= 0 else {
                    return nil
                }
                skipped = number
                text = text[..<at]
            }
            // A path may hold colons, but no call does.
            var place: String?
            var call = text.prefix { $0 != "[" && $0 != ":" }
            var rest = text[call.endIndex...]
            if rest.first == "[" {
                guard let end = rest.firstIndex(of: "]") else { return nil }
                place = String(rest[rest.index(after: rest.startIndex)..<end])
                rest = rest[rest.index(after: end)...]
            }
            let words = rest.split(separator: ":", omittingEmptySubsequences: false)
            guard words.count == 2 || words.count == 3, words[0].isEmpty, !call.isEmpty else {
                return nil
            }
            call = call.first == " " ? call.dropFirst() : call
            guard let fault = Self.fault(words[1]) else { return nil }
            self.init(String(call), fault, place: place, skipped: skipped)
            if words.count == 3 {
                let isPeriod = words[2].hasPrefix("1/")
                guard let number = Int(isPeriod ? words[2].dropFirst(2) : words[2]), number > 0
                else { return nil }
                if isPeriod { period = number } else { times = number }
            }
        }

        private static func fault(_ word: Substring) -> Fault? {
            if word.hasPrefix("short=") {
                return Int(word.dropFirst(6)).flatMap { $0 > 0 ? .short($0) : nil }
            }
            return errors[String(word)].map { .error(Errno(rawValue: $0)) }
        }
    }
#endif
