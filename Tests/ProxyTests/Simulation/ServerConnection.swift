#if DEBUG
    import TestKit

    /// One connection of a server.
    final class ServerConnection: FarEnd {
        private enum Deed: CaseIterable {
            case resetFirst, finishFirst, cutByReset, cutByEnd, badStatusLine, twoLengths, badChunk
            case strayBytes, closing, silent, switching
        }

        private static let statuses = [200, 200, 200, 200, 200, 200, 404, 500, 204, 304]

        private let server: SimulatedServer
        private let stream: SimulatedStream
        private var reader = MessageReader(ofAnswers: false)
        private var id: Int?
        private var head: MessageReader.Head?
        private var received = 0
        private var isComplete = false
        private var isAnswering = false
        /// The answer was sent before the request was complete.
        private var isEarly = false
        /// Why no request may follow on this connection.
        private var ban: String?
        var isOver = false

        private var kernel: SimulatedKernel { server.world.kernel }
        private var ledger: Ledger { server.world.ledger }

        init(_ stream: SimulatedStream, server: SimulatedServer) {
            self.stream = stream
            self.server = server
        }

        // MARK: Requests

        func received(_ bytes: [UInt8], on stream: SimulatedStream) {
            if isOver { return }
            reader.feed(bytes)
            do throws(MessageReader.Malformed) {
                while !isOver, let part = try reader.next() { take(part) }
            } catch {
                kernel.report("a server got what is no HTTP: \(error.reason)")
            }
        }

        private func take(_ part: MessageReader.Part) {
            switch part {
            case .head(let head): begin(head)
            case .content(let bytes):
                if let id {
                    for (offset, byte) in bytes.enumerated()
                    where byte != Ledger.byte(id, received + offset, 0) {
                        kernel.report("byte \(received + offset) of the content of \(id) is wrong")
                        break
                    }
                }
                received += bytes.count
            case .end:
                if let id, let entry = ledger[id] {
                    if entry.isBroken {
                        kernel.report("the broken content of \(id) looks complete")
                    }
                    if received != entry.contentLength {
                        kernel.report(
                            "\(received) of \(entry.contentLength) bytes of the content of \(id)")
                    }
                }
                isComplete = true
                if isEarly {
                    id = nil
                    isEarly = false
                } else if !isAnswering {
                    answer()
                }
            }
        }

        private func begin(_ head: MessageReader.Head) {
            if let ban { return kernel.report("a request came on a connection \(ban)") }
            if id != nil {
                return kernel.report("a request came before the last answer was complete")
            }
            guard head.startLine.count == 3 else {
                return kernel.report("a server got \(head.startLine)")
            }
            let arrival = Ledger.Arrival(
                path: head.startLine[1], method: head.startLine[0],
                hasToken: head.value("x-firebase-appcheck") != nil,
                forwardedFor: head.value("x-forwarded-for"), isShared: false)
            guard let id = ledger.served(arrival) else { return }
            self.head = head
            self.id = id
            received = 0
            isComplete = false
            if head.value("expect") != nil && kernel.happens(oneIn: 2) {
                stream.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            }
            let hasContent = ledger[id].map { $0.contentLength > 0 } ?? false
            if hasContent && kernel.happens(oneIn: 5) { answer() }
        }

        // MARK: Answers

        private func answer() {
            guard let id, let head else { return }
            isAnswering = true
            let badTimes = server.mood == .flaky ? 2 : 25
            let deed =
                kernel.happens(oneIn: badTimes)
                ? Deed.allCases[kernel.random(0, Deed.allCases.count - 1)] : nil
            var delay = Int64(kernel.random(0, 30)) * 1_000_000
            if server.mood == .slow { delay = Int64(kernel.random(0, 7_000)) * 1_000_000 }
            let method = head.startLine[0]
            kernel.plan(after: delay) { [self] in
                if isOver { return }
                perform(deed, id, method)
            }
        }

        private func perform(_ deed: Deed?, _ id: Int, _ method: String) {
            var length =
                kernel.happens(oneIn: 20) ? kernel.random(0, 300_000) : kernel.random(0, 3_000)
            var status = Self.statuses[kernel.random(0, Self.statuses.count - 1)]
            if deed == .twoLengths || deed == .badChunk { status = 200 }
            if status == 204 || status == 304 { length = 0 }
            let content = Ledger.content(id, count: length, salt: 1)
            var text = "HTTP/1.1 \(status) Well\r\nX-Served: \(id)\r\n"
            ledger.willAnswer(id, status: status, length: length)
            switch deed {
            case .resetFirst:
                stream.reset()
                return end()
            case .finishFirst:
                finish(stream)
                return
            case .silent:
                ban = "whose last request was never answered"
                return
            case .badStatusLine: return breakProtocol("HTTP/1.1 xyz What\r\n\r\n")
            case .twoLengths:
                return breakProtocol(text + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
            case .badChunk:
                // Without content the answer is complete before anything is wrong.
                if method == "HEAD" { ledger.answered(id) }
                return breakProtocol(
                    text + "Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n")
            case .switching:
                return breakProtocol("HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n")
            case .closing:
                text += "Connection: close\r\n"
                ban = "that was to be closed"
            case .strayBytes:
                // In one piece with the answer, so that nobody can have missed them.
                ban = "with bytes that nobody asked for"
                stream.isReadWhole = true
            case .cutByEnd, .cutByReset, nil: break
            }
            if kernel.happens(oneIn: 10) {
                text = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + text
            }
            send(deed, id, method, text, content, hasNoContent: status == 204 || status == 304)
        }

        private func send(
            _ deed: Deed?, _ id: Int, _ method: String, _ start: String, _ content: [UInt8],
            hasNoContent: Bool
        ) {
            var text = start
            let isHead = method == "HEAD" || hasNoContent
            let isChunked = !hasNoContent && kernel.happens(oneIn: 3)
            let isUntilEnd = !isChunked && deed == .closing && kernel.happens(oneIn: 2)
            if isChunked {
                text += "Transfer-Encoding: chunked\r\n\r\n"
            } else if isUntilEnd || hasNoContent {
                text += "\r\n"
            } else {
                text += "Content-Length: \(content.count)\r\n\r\n"
            }
            var bytes = Array(text.utf8)
            if !isHead {
                if isChunked {
                    var start = 0
                    while start < content.count {
                        let end = min(content.count, start + kernel.random(1, 70_000))
                        bytes += Array("\(String(end - start, radix: 16))\r\n".utf8)
                        bytes += content[start..<end]
                        bytes += Array("\r\n".utf8)
                        start = end
                    }
                    bytes += Array("0\r\n\r\n".utf8)
                } else {
                    bytes += content
                }
            }
            switch deed {
            case .cutByEnd, .cutByReset:
                let isWhole = isHead || (content.isEmpty && !isChunked)
                if isWhole { break }
                ban = "whose last answer was cut off"
                bytes.removeLast(kernel.random(1, bytes.count - 1))
                stream.send(bytes)
                if deed == .cutByReset {
                    kernel.plan(after: 1_000_000) { [self] in
                        stream.reset()
                        end()
                    }
                } else {
                    finish(stream)
                }
                return
            case .strayBytes:
                bytes += Array(
                    "HTTP/1.1 200 OK\r\nX-Served: \(id)\r\nContent-Length: 0\r\n\r\n".utf8)
            default: break
            }
            ledger.answered(id)
            isAnswering = false
            if isComplete { self.id = nil } else { isEarly = true }
            if server.mood == .slow && bytes.count > 2 && deed != .strayBytes {
                let middle = kernel.random(1, bytes.count - 1)
                stream.send(Array(bytes[..<middle]))
                stream.send(
                    Array(bytes[middle...]), after: Int64(kernel.random(0, 4_000)) * 1_000_000)
            } else {
                stream.send(bytes, inOnePiece: deed == .strayBytes)
            }
            if deed == .closing { return finish(stream) }
            if kernel.happens(oneIn: 8) { leaveLater() }
        }

        /// Servers close what lies idle, and may do so at the very moment at which a request is sent.
        private func leaveLater() {
            kernel.plan(after: Int64(kernel.random(0, 3_000)) * 1_000_000) { [self] in
                if isOver || isAnswering || id != nil { return }
                finish(stream)
            }
        }

        private func breakProtocol(_ text: String) {
            ban = "that did not speak HTTP"
            stream.send(Array(text.utf8), inOnePiece: true)
        }

        func settle() {
            server.ended(self)
        }
    }
#endif
