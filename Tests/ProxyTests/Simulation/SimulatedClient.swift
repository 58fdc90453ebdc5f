#if DEBUG
    import TestKit

    /// One connection of a client, from its first byte to its end: well-behaved, slow, impatient,
    /// pipelining, malformed or silent.
    final class SimulatedClient: FarEnd {
        enum Manner: CaseIterable {
            case good, pipelining, slowWriter, slowReader, leaving, resetting, halfClosing,
                malformed
            case silent, stalling
        }

        /// How long a client waits for an answer that it is owed: longer than every time limit of the
        /// proxy in a row.
        private static let patience: Int64 = 240_000_000_000
        private static let millisecond: Int64 = 1_000_000

        private let world: SimulatedWorld
        private let approach: Approach
        private let manner: Manner
        private var stream: SimulatedStream?
        private var reader = MessageReader(ofAnswers: true)
        /// Requests that were sent, or begun, and not answered.
        private var open: [Int] = []
        private var left: Int
        private var hasFinished = false
        var isOver = false
        /// What was no request has been answered.
        private var isRefused = false

        // The answer that is being read.
        private var head: MessageReader.Head?
        private var served: Int?
        private var length = 0

        init(world: SimulatedWorld, _ approach: Approach) {
            self.world = world
            self.approach = approach
            manner =
                world.kernel.happens(oneIn: 2)
                ? .good : Manner.allCases[world.kernel.random(0, Manner.allCases.count - 1)]
            left = world.kernel.random(1, 5)
        }

        /// Connects and begins.
        func begin() {
            let kernel = world.kernel
            guard let stream = kernel.connect(to: approach.port, from: approach.host, self) else {
                return end()
            }
            self.stream = stream
            if !approach.header.isEmpty { stream.send(approach.header) }
            if approach.client == nil {
                world.planRefusal(of: approach) { [self] in isOver }
                if approach.isUnfinished { return }
            }
            if manner == .slowReader {
                stream.readingTime = Int64(kernel.random(1, 400)) * Self.millisecond
            }
            if manner == .silent {
                kernel.plan(after: Int64(kernel.random(1, 40_000)) * Self.millisecond) { [self] in
                    leave()
                }
                return
            }
            send()
        }

        // MARK: Sending

        private func send() {
            guard !isOver, let stream else { return }
            var count = manner == .pipelining ? min(left, world.kernel.random(1, 5)) : 1
            while count > 0 && left > 0 {
                count -= 1
                left -= 1
                sendOne(on: stream)
            }
            switch manner {
            case .leaving, .resetting:
                let delay = Int64(world.kernel.random(0, 3000)) * 100_000
                world.kernel.plan(after: delay) { [self] in leave() }
            case .halfClosing:
                hasFinished = true
                stream.finish()
            default: break
            }
        }

        private func sendOne(on stream: SimulatedStream) {
            let kernel = world.kernel
            let isWrong = manner == .malformed && kernel.happens(oneIn: 2)
            let (id, first) = world.makeRequest(
                approach, isLast: left == 0, isMalformed: isWrong)
            var bytes = first
            if isWrong && (id.flatMap { world.ledger[$0]?.isBroken } ?? true) {
                // Whatever comes behind what is no HTTP is nothing at all.
                let next = world.makeRequest(
                    approach, isLast: true, isMalformed: false, isForbidden: true)
                bytes += next.1
                if let id = next.0 { world.ledger.end(id) }
                left = 0
            }
            if let id {
                open.append(id)
                world.kernel.plan(after: Self.patience) { [self] in
                    if open.contains(id) && !isOver {
                        world.kernel.report("request \(id) of a \(manner) client hangs")
                    }
                }
            }
            switch manner {
            case .slowWriter:
                var start = 0
                var delay: Int64 = 0
                while start < bytes.count {
                    let end = min(bytes.count, start + kernel.random(1, max(2, bytes.count / 6)))
                    stream.send(Array(bytes[start..<end]), after: delay)
                    delay = Int64(kernel.random(0, 900)) * Self.millisecond
                    start = end
                }
            case .stalling:
                // It never sends the rest.
                stream.send(Array(bytes.prefix(kernel.random(1, bytes.count))))
                if left > 0 { left = 0 }
            case .leaving, .resetting:
                stream.send(Array(bytes.prefix(kernel.random(1, bytes.count * 2))))
                left = 0
            default: stream.send(bytes)
            }
        }

        private func leave() {
            guard !isOver, let stream else { return }
            if manner == .resetting { stream.reset() } else { stream.finish() }
            end()
        }

        // MARK: Receiving

        func received(_ bytes: [UInt8], on stream: SimulatedStream) {
            if isOver { return }
            if approach.client == nil {
                return world.kernel.report("a client without a PROXY header gets an answer")
            }
            reader.feed(bytes)
            do throws(MessageReader.Malformed) {
                while !isOver {
                    if head == nil, let id = open.first {
                        reader.method = world.ledger[id]?.method ?? "GET"
                    }
                    guard let part = try reader.next() else { return }
                    take(part)
                }
            } catch {
                world.kernel.report("a client got what is no HTTP: \(error.reason)")
            }
        }

        private func take(_ part: MessageReader.Part) {
            switch part {
            case .head(let head):
                self.head = head
                length = 0
                served = head.value("x-served").flatMap { Int($0) }
            case .content(let bytes):
                if let served {
                    for (offset, byte) in bytes.enumerated()
                    where byte != Ledger.byte(served, length + offset, 1) {
                        world.kernel.report(
                            "byte \(length + offset) of the answer to \(served) is wrong")
                        break
                    }
                }
                length += bytes.count
            case .end: takeEnd()
            }
        }

        private func takeEnd() {
            guard let head else { return }
            self.head = nil
            if head.status < 200 { return }
            // A malformed request is answered, too; nothing behind it is.
            guard let id = open.first else {
                if isRefused { world.kernel.report("an answer came behind a malformed request's") }
                isRefused = true
                left = 0
                return
            }
            open.removeFirst()
            world.ledger.got(id, status: head.status, served: served, length: length)
            world.ledger.end(id)
            if head.value("connection") == "close" {
                left = 0
            } else if open.isEmpty {
                if left == 0 || hasFinished {
                    leaveSoon()
                } else {
                    let pause = Int64(world.kernel.random(0, 2000)) * Self.millisecond
                    world.kernel.plan(after: pause) { [self] in send() }
                }
            }
        }

        private func leaveSoon() {
            world.kernel.plan(after: Int64(world.kernel.random(0, 4000)) * Self.millisecond) {
                [self] in
                leave()
            }
        }

        func finished(_ stream: SimulatedStream) {
            if isOver { return }
            // An answer whose content ends with the connection is complete now.
            if head != nil && reader.endsWithConnection { takeEnd() }
            if !isOver {
                if !hasFinished { stream.finish() }
                end()
            }
        }

        func settle() {
            for id in open { world.ledger.end(id) }
            open.removeAll()
            world.ended(self)
        }
    }
#endif
