#if DEBUG
    /// Reads the messages of one connection as strictly as a test can: whoever is at the far end of the
    /// proxy must understand every byte of it.
    struct MessageReader {
        /// What does not follow HTTP.
        struct Malformed: Error {
            let reason: String
        }

        enum Part {
            case head(Head)
            case content([UInt8])
            case end
        }

        struct Head {
            let startLine: [String]
            let fields: [(name: String, value: String)]

            func value(_ name: String) -> String? {
                fields.first { $0.name == name }?.value
            }

            var status: Int { startLine.count > 1 ? Int(startLine[1]) ?? 0 : 0 }
        }

        private enum State {
            case head
            case length(Int)
            case chunkSize
            case chunk(Int)
            case trailers
            case untilEnd
            case ended
        }

        private var bytes: [UInt8] = []
        private var start = 0
        private var state = State.head
        private let isOfAnswers: Bool
        /// Of the request that the next answer belongs to.
        var method = "GET"
        /// Part of a message has come, and not all of it.
        var isInside: Bool {
            if case .head = state { return start < bytes.count }
            if case .ended = state { return false }
            return true
        }

        /// The content ends with the connection.
        var endsWithConnection: Bool {
            if case .untilEnd = state { return true }
            return false
        }

        init(ofAnswers: Bool) {
            isOfAnswers = ofAnswers
        }

        mutating func feed(_ more: [UInt8]) {
            if start > 0 {
                bytes.removeFirst(start)
                start = 0
            }
            bytes += more
        }

        /// The next part; nil when more has to come.
        mutating func next() throws(Malformed) -> Part? {
            while true {
                switch state {
                case .ended:
                    state = .head
                    return .end
                case .head:
                    guard let head = try takeHead() else { return nil }
                    return .head(head)
                case .length(let left):
                    if left == 0 {
                        state = .ended
                        continue
                    }
                    guard let content = take(atMost: left) else { return nil }
                    state = .length(left - content.count)
                    return .content(content)
                case .untilEnd:
                    guard let content = take(atMost: .max) else { return nil }
                    return .content(content)
                case .chunkSize:
                    guard let line = takeLine() else { return nil }
                    guard let size = Int(line, radix: 16), !line.isEmpty else {
                        throw Malformed(reason: "chunk size \"\(line)\"")
                    }
                    state = size == 0 ? .trailers : .chunk(size)
                case .chunk(let left):
                    if left == 0 {
                        guard let line = takeLine() else { return nil }
                        if !line.isEmpty { throw Malformed(reason: "no line end behind a chunk") }
                        state = .chunkSize
                        continue
                    }
                    guard let content = take(atMost: left) else { return nil }
                    state = .chunk(left - content.count)
                    return .content(content)
                case .trailers:
                    guard let line = takeLine() else { return nil }
                    if line.isEmpty { state = .ended }
                }
            }
        }

        private mutating func take(atMost count: Int) -> [UInt8]? {
            let available = min(count, bytes.count - start)
            if available <= 0 { return nil }
            defer { start += available }
            return Array(bytes[start..<(start + available)])
        }

        private mutating func takeLine() -> String? {
            var end = start
            while end + 1 < bytes.count {
                if bytes[end] == 13 && bytes[end + 1] == 10 {
                    let line = String(decoding: bytes[start..<end], as: UTF8.self)
                    start = end + 2
                    return line
                }
                end += 1
            }
            return nil
        }

        private mutating func takeHead() throws(Malformed) -> Head? {
            var end = start
            while end + 3 < bytes.count {
                if bytes[end] == 13 && bytes[end + 1] == 10 && bytes[end + 2] == 13
                    && bytes[end + 3] == 10
                {
                    break
                }
                end += 1
            }
            if end + 3 >= bytes.count { return nil }
            var lines: [String] = []
            while start < end + 2, let line = takeLine() { lines.append(line) }
            start = end + 4
            let startLine = lines.removeFirst().split(separator: " ", maxSplits: 2).map(String.init)
            var fields: [(name: String, value: String)] = []
            for line in lines {
                guard let colon = line.firstIndex(of: ":") else {
                    throw Malformed(reason: "field line \"\(line)\"")
                }
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                fields.append((line[..<colon].lowercased(), String(value)))
            }
            let head = Head(startLine: startLine, fields: fields)
            state = try framing(head)
            return head
        }

        private func framing(_ head: Head) throws(Malformed) -> State {
            let lengths = head.fields.filter { $0.name == "content-length" }
            let codings = head.fields.filter { $0.name == "transfer-encoding" }
            if lengths.count + codings.count > 1 { throw Malformed(reason: "two framings") }
            if isOfAnswers {
                let isContentless =
                    method == "HEAD" || head.status < 200 || head.status == 204
                    || head.status == 304
                if isContentless { return .ended }
                guard head.startLine.first?.hasPrefix("HTTP/1.") == true, head.status <= 599 else {
                    throw Malformed(reason: "status line \(head.startLine)")
                }
            }
            if let coding = codings.first {
                if coding.value != "chunked" { throw Malformed(reason: "coding \(coding.value)") }
                return .chunkSize
            }
            if let length = lengths.first {
                guard let count = Int(length.value), count >= 0 else {
                    throw Malformed(reason: "length \(length.value)")
                }
                return .length(count)
            }
            return isOfAnswers ? .untilEnd : .ended
        }
    }
#endif
