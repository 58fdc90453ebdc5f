#if DEBUG
    import TestKit

    /// One HTTP/2 connection of a server, which many requests share: mostly it works; in bad times it
    /// refuses, resets, stalls, goes away, falls silent, breaks off or breaks the framing.
    final class HTTP2ServerConnection: FarEnd {
        private typealias Kind = HTTP2Wire.Kind
        private typealias Flag = HTTP2Wire.Flag
        private typealias Code = HTTP2Wire.Code

        private enum Deed: CaseIterable {
            // About one stream.
            case refuse, resetFirst, resetInside, tooShort, badHead, silent, stall
            // About all of them.
            case goAway, goAwayBefore, cutByReset, cutByEnd, breakFraming, mute
        }

        /// What follows the content of an answer.
        private enum Ending {
            case end, trailers, tooShort, reset, stall, cutByReset, cutByEnd
        }

        /// One request and its answer.
        private final class Exchange {
            /// Of the ledger.
            let id: Int
            let method: String
            var received = 0
            var isComplete = false
            var isAnswering = false
            var hasHeadLeft = false
            /// What the proxy may still send.
            var intake: Int
            /// What we may still send.
            var window: Int
            var pending: ArraySlice<UInt8> = []
            var ending: Ending?

            init(_ id: Int, _ method: String, intake: Int, window: Int) {
                self.id = id
                self.method = method
                self.intake = intake
                self.window = window
            }
        }

        private static let patience: Int64 = 240_000_000_000
        private static let millisecond: Int64 = 1_000_000
        private static let statuses = [200, 200, 200, 200, 200, 200, 404, 500, 204, 304]

        private let server: SimulatedServer
        private let stream: SimulatedStream
        private let wire = HTTP2Wire(expectsPreface: true)
        private var exchanges: [UInt32: Exchange] = [:]
        private var lastStream: UInt32 = 0
        // What the proxy may do, from its word that it heard of it.
        private let streamLimit: Int
        private let initialIntake: Int
        private var isHeeded = false
        private var hasGreeted = false
        private var intake = HTTP2Wire.initialWindow
        // What we may do.
        private var initialWindow = HTTP2Wire.initialWindow
        private var window = HTTP2Wire.initialWindow
        /// Later streams are not looked at.
        private var lastOfAll = UInt32.max
        /// Why no request may follow on this connection.
        private var ban: String?
        private var isBroken = false
        /// It reads and does nothing.
        private var isMute = false
        var isOver = false

        private var kernel: SimulatedKernel { server.world.kernel }
        private var ledger: Ledger { server.world.ledger }

        init(_ stream: SimulatedStream, server: SimulatedServer) {
            self.stream = stream
            self.server = server
            let kernel = server.world.kernel
            streamLimit = [1, 2, 5, 100][kernel.random(0, 3)]
            initialIntake =
                kernel.happens(oneIn: 3) ? kernel.random(2_000, 20_000) : HTTP2Wire.initialWindow
            let delay = kernel.random(0, kernel.happens(oneIn: 20) ? 3_000 : 5)
            kernel.plan(after: Int64(delay) * Self.millisecond) { [self] in greet() }
        }

        /// SETTINGS come first.
        private func greet() {
            if isOver { return }
            hasGreeted = true
            stream.send(
                HTTP2Wire.settings([(id: 3, value: streamLimit), (id: 4, value: initialIntake)]))
            received([], on: stream)
        }

        private func send(_ kind: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8]) {
            stream.send(HTTP2Wire.frame(kind, flags, id, payload))
        }

        private func reset(_ id: UInt32, _ code: UInt32) {
            exchanges[id] = nil
            send(Kind.reset, 0, id, HTTP2Wire.bytes(of: code))
        }

        // MARK: Requests

        func received(_ bytes: [UInt8], on stream: SimulatedStream) {
            if isOver { return }
            wire.feed(bytes)
            if !hasGreeted { return }
            do throws(HTTP2Wire.Malformed) {
                while !isOver, let frame = try wire.next() { try take(frame) }
            } catch {
                kernel.report("a server got what is no HTTP/2: \(error.reason)")
            }
        }

        private func take(_ frame: HTTP2Wire.Frame) throws(HTTP2Wire.Malformed) {
            if isMute && frame.kind != Kind.headers && frame.kind != Kind.continuation { return }
            switch frame.kind {
            case Kind.settings where frame.has(Flag.ack): heed()
            case Kind.settings: takeSettings(frame)
            case Kind.ping where frame.has(Flag.ack):
                if frame.payload == HTTP2Wire.probePayload { answeredProbe() }
            case Kind.ping: send(Kind.ping, Flag.ack, 0, frame.payload)
            case Kind.windowUpdate:
                if frame.id == 0 {
                    window += Int(frame.word)
                } else {
                    exchanges[frame.id]?.window += Int(frame.word)
                }
                pump()
            case Kind.headers, Kind.continuation:
                if let fields = try wire.fields(frame) { begin(frame, fields) }
            case Kind.data: takeData(frame)
            case Kind.reset: exchanges[frame.id] = nil
            case Kind.goAway: ban = ban ?? "that the proxy took leave of"
            default: break
            }
        }

        private func heed() {
            if isHeeded { return }
            isHeeded = true
            for exchange in exchanges.values {
                exchange.intake += initialIntake - HTTP2Wire.initialWindow
            }
        }

        private func takeSettings(_ frame: HTTP2Wire.Frame) {
            var values = frame.payload[...]
            while values.count >= 6 {
                let id = values[values.startIndex + 1]
                let value = values.dropFirst(2).prefix(4).reduce(0) { $0 << 8 | Int($1) }
                values = values.dropFirst(6)
                if id != 4 { continue }
                for exchange in exchanges.values { exchange.window += value - initialWindow }
                initialWindow = value
            }
            send(Kind.settings, Flag.ack, 0, [])
            pump()
        }

        private func answeredProbe() {
            if isBroken { return kernel.report("a server's connection went on, broken") }
            // It has read all that came before: it knows that the server goes away.
            ban = ban ?? "that was going away"
        }

        private func begin(_ frame: HTTP2Wire.Frame, _ fields: [(name: String, value: String)]) {
            let id = frame.id
            if exchanges[id] != nil || id <= lastStream {
                // Trailer fields, or a request that was reset meanwhile.
                if frame.has(Flag.endStream) { takeEnd(id) }
                return
            }
            lastStream = id
            func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
            if let ban { return kernel.report("a request came on a connection \(ban)") }
            let method = value(":method") ?? ""
            let arrival = Ledger.Arrival(
                path: value(":path") ?? "", method: method,
                hasToken: value("x-firebase-appcheck") != nil,
                forwardedFor: value("x-forwarded-for"), isShared: true)
            let isActedUpon = id <= lastOfAll
            guard let number = ledger.served(arrival, isActedUpon: isActedUpon) else { return }
            // Of a connection that broke, or fell silent, nobody said that nothing was done.
            if !isActedUpon || isBroken || isMute { return }
            let exchange = Exchange(
                number, method, intake: isHeeded ? initialIntake : HTTP2Wire.initialWindow,
                window: initialWindow)
            exchanges[id] = exchange
            if isHeeded && exchanges.count > streamLimit {
                kernel.report("\(exchanges.count) streams at once, \(streamLimit) may be")
            }
            kernel.plan(after: Self.patience) { [self] in
                if !isOver && exchanges[id] === exchange {
                    kernel.report("the stream of request \(number) stays for ever")
                }
            }
            if frame.has(Flag.endStream) {
                takeEnd(id)
            } else if kernel.happens(oneIn: 5) {
                answer(id, exchange)
            }
        }

        private func takeData(_ frame: HTTP2Wire.Frame) {
            let count = frame.payload.count
            intake -= count
            if intake < 0 { kernel.report("the window of a server's connection was not kept") }
            if let exchange = exchanges[frame.id] {
                exchange.intake -= count
                if exchange.intake < 0 {
                    kernel.report("the window of request \(exchange.id) was not kept")
                }
                for (offset, byte) in frame.payload.enumerated()
                where byte != Ledger.byte(exchange.id, exchange.received + offset, 0) {
                    kernel.report("a byte of the content of \(exchange.id) is wrong on HTTP/2")
                    break
                }
                exchange.received += count
            }
            if frame.has(Flag.endStream) { takeEnd(frame.id) }
            if count == 0 || isBroken { return }
            open(count, 0)
            let isSlow = server.mood == .slow || kernel.happens(oneIn: 10)
            let delay = isSlow ? Int64(kernel.random(0, 900)) * Self.millisecond : 0
            if exchanges[frame.id]?.isComplete != false { return }
            kernel.plan(after: delay) { [self] in
                if !isOver && !isMute && !isBroken { open(count, frame.id) }
            }
        }

        /// Lets the proxy send more.
        private func open(_ count: Int, _ id: UInt32) {
            if id == 0 {
                intake += count
            } else if let exchange = exchanges[id] {
                exchange.intake += count
            } else {
                return
            }
            send(Kind.windowUpdate, 0, id, HTTP2Wire.bytes(of: UInt32(count)))
        }

        private func takeEnd(_ id: UInt32) {
            guard let exchange = exchanges[id], !exchange.isComplete, !isMute else { return }
            exchange.isComplete = true
            if let entry = ledger[exchange.id] {
                if entry.isBroken {
                    kernel.report("the broken content of \(exchange.id) looks complete")
                }
                if exchange.received != entry.contentLength {
                    kernel.report(
                        "\(exchange.received) of \(entry.contentLength) bytes of the content of "
                            + "\(exchange.id)")
                }
            }
            if !exchange.isAnswering { answer(id, exchange) }
        }

        // MARK: Answers

        private func answer(_ id: UInt32, _ exchange: Exchange) {
            exchange.isAnswering = true
            let badTimes = server.mood == .flaky ? 2 : 30
            let deed =
                kernel.happens(oneIn: badTimes)
                ? Deed.allCases[kernel.random(0, Deed.allCases.count - 1)] : nil
            var delay = Int64(kernel.random(0, 30)) * Self.millisecond
            if server.mood == .slow { delay = Int64(kernel.random(0, 7_000)) * Self.millisecond }
            kernel.plan(after: delay) { [self] in
                if isOver || isMute || isBroken || exchanges[id] !== exchange { return }
                perform(deed, id, exchange)
            }
        }

        private func perform(_ deed: Deed?, _ id: UInt32, _ exchange: Exchange) {
            if let deed { kernel.note("\(deed) for request \(exchange.id)") }
            switch deed {
            case .refuse:
                ledger.refused(exchange.id)
                reset(id, Code.refusedStream)
            case .resetFirst: reset(id, Code.internalError)
            case .silent: break
            case .badHead: sendBadHead(id)
            case .goAway:
                goAway(last: lastStream)
                sendAnswer(nil, id, exchange)
            case .goAwayBefore: goAwayBefore(id, exchange)
            case .breakFraming:
                isBroken = true
                stream.send(HTTP2Wire.brokenFrame(kernel, on: id))
                expectEnd()
            case .mute:
                isMute = true
                expectEnd()
            default: sendAnswer(deed, id, exchange)
            }
        }

        private func goAway(last: UInt32) {
            lastOfAll = min(lastOfAll, last)
            let code = kernel.happens(oneIn: 2) ? Code.none : Code.internalError
            send(Kind.goAway, 0, 0, HTTP2Wire.bytes(of: lastOfAll) + HTTP2Wire.bytes(of: code))
            stream.send(HTTP2Wire.probe)
            endIfDone()
        }

        /// Takes leave, and says that it did nothing with the latest requests.
        private func goAwayBefore(_ id: UInt32, _ exchange: Exchange) {
            let later = exchanges.keys.filter { $0 >= id }.sorted()
            if later.contains(where: { exchanges[$0]?.hasHeadLeft == true }) {
                return goAway(last: lastStream)
            }
            for id in later {
                if let exchange = exchanges.removeValue(forKey: id) { ledger.refused(exchange.id) }
            }
            goAway(last: id >= 2 ? id - 2 : 0)
        }

        /// The proxy may not keep such a connection.
        private func expectEnd() {
            kernel.plan(after: Self.patience) { [self] in
                if isOver { return }
                let word = isMute ? "mute" : "broken"
                kernel.report("a connection to a server that is \(word) stays")
            }
        }

        private func sendBadHead(_ id: UInt32) {
            let fields: [(name: String, value: String)] =
                switch kernel.random(0, 3) {
                case 0: [(name: "x-served", value: "0")]
                case 1: [(name: ":status", value: "200"), (name: "X-Served", value: "0")]
                case 2: [(name: ":status", value: "200"), (name: "connection", value: "close")]
                default: [(name: ":status", value: "101")]
                }
            send(Kind.headers, Flag.endHeaders | Flag.endStream, id, HTTP2Wire.block(fields))
        }

        private func sendAnswer(_ deed: Deed?, _ id: UInt32, _ exchange: Exchange) {
            let isLong = kernel.happens(oneIn: 20)
            var length = isLong ? kernel.random(0, 300_000) : kernel.random(0, 3_000)
            let status = Self.statuses[kernel.random(0, Self.statuses.count - 1)]
            if status == 204 || status == 304 { length = 0 }
            ledger.willAnswer(exchange.id, status: status, length: length)
            if kernel.happens(oneIn: 10) {
                let early = [(name: ":status", value: "103"), (name: "link", value: "</x>")]
                send(Kind.headers, Flag.endHeaders, id, HTTP2Wire.block(early))
            }
            let hasContent = exchange.method != "HEAD" && status != 204 && status != 304
            var fields = [
                (name: ":status", value: String(status)),
                (name: "x-served", value: String(exchange.id)),
            ]
            exchange.ending = hasContent ? ending(deed, length) : .end
            if exchange.ending == .tooShort {
                fields.append((name: "content-length", value: String(length + kernel.random(1, 9))))
            } else if hasContent && kernel.happens(oneIn: 2) {
                fields.append((name: "content-length", value: String(length)))
            }
            exchange.hasHeadLeft = true
            let isAlone = !hasContent || (length == 0 && exchange.ending == .end)
            send(
                Kind.headers, Flag.endHeaders | (isAlone ? Flag.endStream : 0), id,
                HTTP2Wire.block(fields))
            if isAlone { return finishAnswer(id, exchange) }
            exchange.pending = Ledger.content(exchange.id, count: length, salt: 1)[...]
            if exchange.ending == .stall || exchange.ending == .reset
                || exchange.ending == .cutByReset || exchange.ending == .cutByEnd
            {
                exchange.pending = exchange.pending.prefix(kernel.random(0, max(0, length - 1)))
            }
            pump()
        }

        private func ending(_ deed: Deed?, _ length: Int) -> Ending {
            switch deed {
            case .tooShort: .tooShort
            case .resetInside: .reset
            case .stall: .stall
            case .cutByReset: .cutByReset
            case .cutByEnd: .cutByEnd
            default: kernel.happens(oneIn: 6) ? .trailers : .end
            }
        }

        /// Sends what the windows allow.
        private func pump() {
            for id in exchanges.keys.sorted() {
                guard !isOver, let exchange = exchanges[id], let ending = exchange.ending else {
                    continue
                }
                while !exchange.pending.isEmpty && exchange.window > 0 && window > 0 {
                    let largest = min(HTTP2Wire.largestFrame, exchange.window, window)
                    let part = exchange.pending.prefix(kernel.random(1, largest))
                    exchange.pending = exchange.pending.dropFirst(part.count)
                    exchange.window -= part.count
                    window -= part.count
                    let isLast = exchange.pending.isEmpty && ending == .end
                    send(Kind.data, isLast ? Flag.endStream : 0, id, Array(part))
                    if isLast { finishAnswer(id, exchange) }
                }
                if exchange.pending.isEmpty && exchange.ending != nil {
                    end(id, exchange, by: ending)
                }
            }
        }

        /// Nothing is left of the content.
        private func end(_ id: UInt32, _ exchange: Exchange, by ending: Ending) {
            exchange.ending = nil
            switch ending {
            case .end:
                send(Kind.data, Flag.endStream, id, [])
                finishAnswer(id, exchange)
            case .trailers:
                let block = HTTP2Wire.block([(name: "x-checked", value: "yes")])
                send(Kind.headers, Flag.endHeaders | Flag.endStream, id, block)
                finishAnswer(id, exchange)
            case .tooShort: send(Kind.data, Flag.endStream, id, [])
            case .reset: reset(id, Code.internalError)
            case .stall: break
            case .cutByReset:
                kernel.plan(after: Self.millisecond) { [self] in
                    stream.reset()
                    end()
                }
            case .cutByEnd: finish(stream)
            }
        }

        private func finishAnswer(_ id: UInt32, _ exchange: Exchange) {
            exchange.ending = nil
            ledger.answered(exchange.id)
            if !exchange.isComplete {
                // The rest of the request is of no use any more (RFC 9113, section 8.1).
                return reset(id, Code.none)
            }
            exchanges[id] = nil
            endIfDone()
            if kernel.happens(oneIn: 15) { leaveLater() }
        }

        // MARK: Leaving

        private func leaveLater() {
            kernel.plan(after: Int64(kernel.random(0, 3_000)) * Self.millisecond) { [self] in
                if isOver || isMute || isBroken || !exchanges.isEmpty { return }
                if kernel.happens(oneIn: 2) { goAway(last: lastStream) } else { finish(stream) }
            }
        }

        /// It said that it goes away, and nothing is under way.
        private func endIfDone() {
            if lastOfAll == .max || !exchanges.isEmpty { return }
            kernel.plan(after: Int64(kernel.random(100, 2_000)) * Self.millisecond) { [self] in
                if !isOver && !isMute && exchanges.isEmpty { finish(stream) }
            }
        }

        func settle() {
            exchanges.removeAll()
            server.ended(self)
        }
    }
#endif
