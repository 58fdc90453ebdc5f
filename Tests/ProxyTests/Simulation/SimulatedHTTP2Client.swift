#if DEBUG
    import TestKit

    /// One HTTP/2 connection of a client, with prior knowledge: several requests at once, some of which
    /// it cancels, and now and then it leaves in the middle of everything.
    ///
    /// It does not read header blocks: whose answer it is shows in the content.
    final class SimulatedHTTP2Client: SimulatedPeer {
        private static let patience: Int64 = 240_000_000_000
        private static let millisecond: Int64 = 1_000_000
        private static let largestFrame = 16_384

        private enum Kind {
            static let data: UInt8 = 0
            static let headers: UInt8 = 1
            static let reset: UInt8 = 3
            static let settings: UInt8 = 4
            static let ping: UInt8 = 6
            static let goAway: UInt8 = 7
            static let windowUpdate: UInt8 = 8
        }

        private struct Answer {
            let id: Int
            var length = 0
            var isOurs = false
        }

        private let world: SimulatedWorld
        private var stream: SimulatedStream?
        private var bytes: [UInt8] = []
        private var answers: [UInt32: Answer] = [:]
        private var nextStream: UInt32 = 1
        private var left: Int
        private var isGoingAway = false
        private var isOver = false

        init(world: SimulatedWorld) {
            self.world = world
            left = world.kernel.random(1, 12)
        }

        /// Connects and begins.
        func begin() {
            let kernel = world.kernel
            let host = "10.0.\(kernel.random(0, 3)).\(kernel.random(1, 20))"
            guard let stream = kernel.connect(to: SimulatedWorld.port, from: host, self) else {
                return end()
            }
            self.stream = stream
            if kernel.happens(oneIn: 8) {
                stream.readingTime = Int64(kernel.random(1, 50)) * Self.millisecond
            }
            stream.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
            send(Kind.settings, 0, 0, [])
            if kernel.happens(oneIn: 6) {
                let delay = Int64(kernel.random(0, 6000)) * Self.millisecond
                kernel.plan(after: delay) { [self] in leave() }
            }
            sendRequests()
        }

        // MARK: Sending

        private func send(_ kind: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8]) {
            let count = payload.count
            let head: [UInt8] = [
                UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), kind,
                flags,
            ]
            stream?.send(head + Self.word(id) + payload)
        }

        private static func word(_ value: UInt32) -> [UInt8] {
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
        }

        private func sendRequests() {
            if isOver || isGoingAway { return }
            for _ in 0..<min(left, world.kernel.random(1, 4)) {
                left -= 1
                sendOne()
            }
            if left > 0 {
                let pause = Int64(world.kernel.random(0, 1500)) * Self.millisecond
                world.kernel.plan(after: pause) { [self] in sendRequests() }
            }
        }

        private func sendOne() {
            let kernel = world.kernel
            let request = world.beginRequest(isBroken: false, longest: 3_000)
            let id = nextStream
            nextStream += 2
            answers[id] = Answer(id: request.id)
            var block: [UInt8] = []
            append(":method", request.method, to: &block)
            append(":scheme", "http", to: &block)
            append(":path", request.path, to: &block)
            append(":authority", "api.example.test", to: &block)
            if let token = request.token { append("x-firebase-appcheck", token, to: &block) }
            let hasContent = request.length > 0
            if hasContent && kernel.happens(oneIn: 2) {
                append("content-length", String(request.length), to: &block)
            }
            send(Kind.headers, hasContent ? 4 : 5, id, block)
            if hasContent {
                let content = Ledger.content(request.id, count: request.length, salt: 0)
                let middle = kernel.random(0, content.count)
                send(Kind.data, 0, id, Array(content[..<middle]))
                send(Kind.data, 1, id, Array(content[middle...]))
            }
            if kernel.happens(oneIn: 10) {
                let delay = Int64(kernel.random(0, 500)) * Self.millisecond
                kernel.plan(after: delay) { [self] in cancel(id) }
            }
            kernel.plan(after: Self.patience) { [self] in
                if answers[id] != nil && !isOver {
                    kernel.report("request \(request.id) hangs on HTTP/2")
                }
            }
        }

        private func cancel(_ id: UInt32) {
            guard !isOver, let answer = answers.removeValue(forKey: id) else { return }
            world.ledger.end(answer.id)
            send(Kind.reset, 0, id, Self.word(8))
        }

        /// A literal field that is not indexed, with a new name (RFC 7541, section 6.2.2).
        private func append(_ name: String, _ value: String, to block: inout [UInt8]) {
            block.append(0)
            for text in [name, value] {
                var count = text.utf8.count
                if count < 127 {
                    block.append(UInt8(count))
                } else {
                    block.append(127)
                    count -= 127
                    while count >= 128 {
                        block.append(UInt8(count & 127) | 128)
                        count >>= 7
                    }
                    block.append(UInt8(count))
                }
                block += Array(text.utf8)
            }
        }

        // MARK: Receiving

        func received(_ bytes: [UInt8], on stream: SimulatedStream) {
            if isOver { return }
            self.bytes += bytes
            var start = 0
            while !isOver, self.bytes.count - start >= 9 {
                let head = self.bytes[start..<(start + 9)].map(\.self)
                let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
                if count > Self.largestFrame {
                    return world.kernel.report("a frame of \(count) bytes")
                }
                if self.bytes.count - start < 9 + count { break }
                let payload = Array(self.bytes[(start + 9)..<(start + 9 + count)])
                start += 9 + count
                let id = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
                take(head[3], head[4], id, payload)
            }
            self.bytes.removeFirst(start)
        }

        private func take(_ kind: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8]) {
            switch kind {
            case Kind.settings where flags & 1 == 0: send(Kind.settings, 1, 0, [])
            case Kind.ping where flags & 1 == 0: send(Kind.ping, 1, 0, payload)
            case Kind.goAway:
                isGoingAway = true
                let last =
                    payload.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
                // These were not looked at: another connection may carry them.
                for id in answers.keys.sorted() where id > last { giveUp(id) }
                leaveWhenDone()
            case Kind.reset:
                giveUp(id)
                leaveWhenDone()
            case Kind.headers: if flags & 1 != 0 { takeEnd(id) }
            case Kind.data:
                takeContent(id, payload)
                if flags & 1 != 0 {
                    takeEnd(id)
                } else if !payload.isEmpty {
                    send(Kind.windowUpdate, 0, id, Self.word(UInt32(payload.count)))
                }
                if !payload.isEmpty {
                    send(Kind.windowUpdate, 0, 0, Self.word(UInt32(payload.count)))
                }
            default: break
            }
        }

        private func giveUp(_ id: UInt32) {
            if let answer = answers.removeValue(forKey: id) { world.ledger.end(answer.id) }
        }

        private func takeContent(_ id: UInt32, _ payload: [UInt8]) {
            guard var answer = answers[id], let first = payload.first else { return }
            if answer.length == 0 { answer.isOurs = first == UInt8(ascii: "{") }
            if !answer.isOurs {
                for (offset, byte) in payload.enumerated()
                where byte != Ledger.byte(answer.id, answer.length + offset, 1) {
                    world.kernel.report("a byte of the answer to \(answer.id) is wrong on HTTP/2")
                    break
                }
            }
            answer.length += payload.count
            answers[id] = answer
        }

        private func takeEnd(_ id: UInt32) {
            guard let answer = answers.removeValue(forKey: id) else { return }
            if answer.length > 0 && !answer.isOurs {
                world.ledger.gotContent(answer.id, length: answer.length)
            }
            world.ledger.end(answer.id)
            leaveWhenDone()
        }

        private func leaveWhenDone() {
            if answers.isEmpty && (left == 0 || isGoingAway) {
                let delay = Int64(world.kernel.random(0, 2000)) * Self.millisecond
                world.kernel.plan(after: delay) { [self] in leave() }
            }
        }

        private func leave() {
            guard !isOver, let stream else { return }
            if world.kernel.happens(oneIn: 3) { stream.reset() } else { stream.finish() }
            end()
        }

        func finished(_ stream: SimulatedStream) {
            if isOver { return }
            stream.finish()
            end()
        }

        func reset(_ stream: SimulatedStream) {
            end()
        }

        private func end() {
            if isOver { return }
            isOver = true
            // Dictionaries have an order of their own in each run.
            for answer in answers.sorted(by: { $0.key < $1.key }) {
                world.ledger.end(answer.value.id)
            }
            answers.removeAll()
            world.ended(self)
        }
    }
#endif
