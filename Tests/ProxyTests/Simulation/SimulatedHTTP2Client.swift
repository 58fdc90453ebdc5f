#if DEBUG
    import TestKit

    /// One HTTP/2 connection of a client, with prior knowledge: several requests at once, some of which
    /// it cancels; now and then it leaves in the middle of everything, or breaks the framing.
    final class SimulatedHTTP2Client: FarEnd {
        private typealias Kind = HTTP2Wire.Kind
        private typealias Flag = HTTP2Wire.Flag

        private static let patience: Int64 = 240_000_000_000
        private static let millisecond: Int64 = 1_000_000

        /// What has come of an answer.
        private struct Answer {
            let id: Int
            let method: String
            /// What the proxy may still send of it.
            var window: Int
            var length = 0
            /// Of the final head; 0 while it has not come.
            var status = 0
            /// Whose it says that it is; nil for the proxy's own.
            var served: Int?
        }

        private let world: SimulatedWorld
        private let approach: Approach
        private let wire = HTTP2Wire(expectsPreface: false)
        /// What the proxy may send of each answer before it is told to go on.
        private let initialWindow: Int
        private var window = HTTP2Wire.initialWindow
        private var stream: SimulatedStream?
        private var answers: [UInt32: Answer] = [:]
        private var nextStream: UInt32 = 1
        private var left: Int
        private var isGoingAway = false
        /// It broke the framing: the proxy may say goodbye, and no more.
        private var isBroken = false
        var isOver = false

        init(world: SimulatedWorld, _ approach: Approach) {
            self.world = world
            self.approach = approach
            let kernel = world.kernel
            left = kernel.random(1, 12)
            initialWindow =
                kernel.happens(oneIn: 3) ? kernel.random(500, 20_000) : HTTP2Wire.initialWindow
        }

        /// Connects and begins.
        func begin() {
            let kernel = world.kernel
            guard let stream = kernel.connect(to: approach.port, from: approach.host, self) else {
                return end()
            }
            self.stream = stream
            if kernel.happens(oneIn: 8) {
                stream.readingTime = Int64(kernel.random(1, 50)) * Self.millisecond
            }
            stream.send(approach.header)
            if approach.client == nil {
                world.planRefusal(of: approach) { [self] in isOver }
                if approach.isUnfinished { return }
            }
            stream.send(HTTP2Wire.preface)
            stream.send(HTTP2Wire.settings([(id: 4, value: initialWindow)]))
            if kernel.happens(oneIn: 6) {
                let delay = Int64(kernel.random(0, 6000)) * Self.millisecond
                kernel.plan(after: delay) { [self] in leave() }
            } else if kernel.happens(oneIn: 8) {
                let delay = Int64(kernel.random(0, 3000)) * Self.millisecond
                kernel.plan(after: delay) { [self] in breakFraming() }
            }
            sendRequests()
        }

        // MARK: Sending

        private func send(_ kind: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8]) {
            stream?.send(HTTP2Wire.frame(kind, flags, id, payload))
        }

        private func sendRequests() {
            if isOver || isGoingAway || isBroken { return }
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
            let isBroken = kernel.happens(oneIn: 20)
            let request = world.beginRequest(approach, isBroken: isBroken, longest: 3_000)
            let id = takeStream()
            answers[id] = Answer(id: request.id, method: request.method, window: initialWindow)
            let hasContent = request.length > 0
            let breaksOff = request.isBroken && kernel.happens(oneIn: 2)
            var length: Int?
            if hasContent && !breaksOff && (request.isBroken || kernel.happens(oneIn: 2)) {
                length = request.length + (request.isBroken ? kernel.random(1, 9) : 0)
            }
            sendHead(request, on: id, length: length)
            if hasContent {
                let content = Ledger.content(request.id, count: request.length, salt: 0)
                let middle = kernel.random(0, content.count)
                send(Kind.data, 0, id, Array(content[..<middle]))
                if breaksOff { return cancel(id) }
                send(Kind.data, Flag.endStream, id, Array(content[middle...]))
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

        private func takeStream() -> UInt32 {
            defer { nextStream += 2 }
            return nextStream
        }

        private func sendHead(_ request: SimulatedWorld.Request, on id: UInt32, length: Int?) {
            var fields = [
                (name: ":method", value: request.method), (name: ":scheme", value: "http"),
                (name: ":path", value: request.path), (name: ":authority", value: request.host),
            ]
            if let token = request.token {
                fields.append((name: "x-firebase-appcheck", value: token))
            }
            if let field = request.forwardedFor {
                fields.append((name: "x-forwarded-for", value: field))
            }
            if let length { fields.append((name: "content-length", value: String(length))) }
            let flags = Flag.endHeaders | (request.length > 0 ? 0 : Flag.endStream)
            send(Kind.headers, flags, id, HTTP2Wire.block(fields))
        }

        private func cancel(_ id: UInt32) {
            guard !isOver, !isBroken, let answer = answers.removeValue(forKey: id) else { return }
            world.ledger.end(answer.id)
            send(Kind.reset, 0, id, HTTP2Wire.bytes(of: HTTP2Wire.Code.cancel))
        }

        /// Sends a frame that ends the connection, and behind it a request that nobody may read.
        private func breakFraming() {
            guard !isOver, !isBroken, let stream else { return }
            isBroken = true
            world.kernel.note("a client breaks the framing")
            let id = takeStream()
            stream.send(HTTP2Wire.brokenFrame(world.kernel, on: id))
            let request = world.beginRequest(
                approach, isBroken: false, longest: 0, isForbidden: true)
            world.ledger.end(request.id)
            sendHead(request, on: takeStream(), length: nil)
            world.kernel.plan(after: Self.patience / 2) { [self] in
                if !isOver { world.kernel.report("a connection of broken framing stays") }
            }
        }

        // MARK: Receiving

        func received(_ bytes: [UInt8], on stream: SimulatedStream) {
            if isOver { return }
            if approach.client == nil {
                return world.kernel.report("a client without a PROXY header gets an answer")
            }
            wire.feed(bytes)
            do throws(HTTP2Wire.Malformed) {
                while !isOver, let frame = try wire.next() { try take(frame) }
            } catch {
                world.kernel.report("a client got what is no HTTP/2: \(error.reason)")
            }
        }

        private func take(_ frame: HTTP2Wire.Frame) throws(HTTP2Wire.Malformed) {
            switch frame.kind {
            case Kind.settings where !frame.has(Flag.ack): send(Kind.settings, Flag.ack, 0, [])
            case Kind.ping where frame.has(Flag.ack):
                if isBroken && frame.payload == HTTP2Wire.probePayload {
                    world.kernel.report("a connection went on after its framing broke")
                }
            case Kind.ping: send(Kind.ping, Flag.ack, 0, frame.payload)
            case Kind.goAway:
                isGoingAway = true
                // These were not looked at: another connection may carry them.
                for id in answers.keys.sorted() where id > frame.word { giveUp(id) }
                leaveWhenDone()
            case Kind.reset:
                giveUp(frame.id)
                leaveWhenDone()
            case Kind.headers, Kind.continuation:
                if let fields = try wire.fields(frame) { takeHead(fields, frame.id) }
                if frame.has(Flag.endStream) { takeEnd(frame.id) }
            case Kind.data: takeData(frame)
            default: break
            }
        }

        private func giveUp(_ id: UInt32) {
            if let answer = answers.removeValue(forKey: id) { world.ledger.end(answer.id) }
        }

        private func takeHead(_ fields: [(name: String, value: String)], _ id: UInt32) {
            // Trailer fields have no status.
            let text = fields.first { $0.name == ":status" }?.value
            guard var answer = answers[id], let text else { return }
            if answer.status != 0 { world.kernel.report("two heads answer \(answer.id)") }
            guard let status = Int(text), status >= 200 else { return }
            answer.status = status
            answer.served = fields.first { $0.name == "x-served" }.flatMap { Int($0.value) }
            answers[id] = answer
        }

        private func takeData(_ frame: HTTP2Wire.Frame) {
            let count = frame.payload.count
            takeContent(frame.id, frame.payload)
            window -= count
            if window < 0 { world.kernel.report("a window of a client was not kept") }
            if frame.has(Flag.endStream) { takeEnd(frame.id) }
            if count == 0 { return }
            open(count, 0)
            if answers[frame.id] != nil {
                let delay = Int64(world.kernel.random(0, 40)) * Self.millisecond
                if world.kernel.happens(oneIn: 3) {
                    world.kernel.plan(after: delay) { [self] in open(count, frame.id) }
                } else {
                    open(count, frame.id)
                }
            }
        }

        /// Lets the proxy send more.
        private func open(_ count: Int, _ id: UInt32) {
            if isOver { return }
            if id == 0 {
                window += count
            } else if answers[id] != nil {
                answers[id]?.window += count
            } else {
                return
            }
            if isBroken { return }
            send(Kind.windowUpdate, 0, id, HTTP2Wire.bytes(of: UInt32(count)))
        }

        private func takeContent(_ id: UInt32, _ payload: [UInt8]) {
            guard var answer = answers[id] else { return }
            if answer.served != nil {
                for (offset, byte) in payload.enumerated()
                where byte != Ledger.byte(answer.id, answer.length + offset, 1) {
                    world.kernel.report("a byte of the answer to \(answer.id) is wrong on HTTP/2")
                    break
                }
            }
            answer.length += payload.count
            answer.window -= payload.count
            if answer.window < 0 { world.kernel.report("the window of \(answer.id) was not kept") }
            answers[id] = answer
        }

        private func takeEnd(_ id: UInt32) {
            guard let answer = answers.removeValue(forKey: id) else { return }
            if answer.status == 0 { world.kernel.report("an answer to \(answer.id) has no head") }
            world.ledger.got(
                answer.id, status: answer.status, served: answer.served, length: answer.length)
            world.ledger.end(answer.id)
            leaveWhenDone()
        }

        // MARK: Leaving

        private func leaveWhenDone() {
            if answers.isEmpty && (left == 0 || isGoingAway) && !isBroken {
                let delay = Int64(world.kernel.random(0, 2000)) * Self.millisecond
                world.kernel.plan(after: delay) { [self] in leave() }
            }
        }

        private func leave() {
            guard !isOver, !isBroken, let stream else { return }
            if world.kernel.happens(oneIn: 3) { stream.reset() } else { stream.finish() }
            end()
        }

        func settle() {
            // Dictionaries have an order of their own in each run.
            for id in answers.keys.sorted() { giveUp(id) }
            world.ended(self)
        }
    }
#endif
