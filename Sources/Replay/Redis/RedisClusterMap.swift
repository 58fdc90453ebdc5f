/// Which master of a cluster has which slots, as one of its nodes sees it.
struct RedisClusterMap: Equatable {
    struct Span: Equatable {
        var first: UInt16
        var last: UInt16
        var master: RedisAddress
    }

    /// In the order of their slots; none overlaps another.
    private(set) var spans: [Span] = []

    /// Reads the answer to CLUSTER SLOTS.
    ///
    /// - Parameter asked: Who answered: a node that does not know its own host leaves it empty.
    /// - Returns: nil when it makes no sense, or tells of no slot.
    init?(_ reply: RedisReply, from asked: RedisAddress) {
        guard reply.kind == .array else { return nil }
        for entry in reply.elements {
            guard entry.elements.count >= 3, let first = Self.slot(entry.elements[0]),
                let last = Self.slot(entry.elements[1]), first <= last,
                let master = Self.address(entry.elements[2], asked)
            else { return nil }
            spans.append(Span(first: first, last: last, master: master))
        }
        spans.sort { $0.first < $1.first }
        for (one, next) in zip(spans, spans.dropFirst()) where one.last >= next.first {
            return nil
        }
        if spans.isEmpty { return nil }
    }

    /// The masters, each once.
    var masters: Set<RedisAddress> { Set(spans.map(\.master)) }

    /// Who has a slot.
    func master(of slot: UInt16) -> RedisAddress? {
        var range = spans[...]
        while let middle = range.isEmpty ? nil : range.startIndex + range.count / 2 {
            let span = range[middle]
            if slot < span.first {
                range = range[..<middle]
            } else if slot > span.last {
                range = range[(middle + 1)...]
            } else {
                return span.master
            }
        }
        return nil
    }

    /// The first, the middle and the last slot of a master: the middle one stays longest when slots
    /// are moved away from either end, so it comes first.
    func landmarks(of master: RedisAddress) -> [UInt16] {
        let own = spans.filter { $0.master == master }
        guard let first = own.first?.first, let last = own.last?.last else { return [] }
        var left = own.reduce(0) { $0 + Int($1.last - $1.first) + 1 } / 2
        var middle = first
        for span in own {
            let count = Int(span.last - span.first) + 1
            if left < count {
                middle = span.first + UInt16(left)
                break
            }
            left -= count
        }
        var slots = [middle]
        for slot in [first, last] where !slots.contains(slot) { slots.append(slot) }
        return slots
    }

    private static func slot(_ reply: RedisReply) -> UInt16? {
        guard let number = reply.number, 0..<Int64(RedisSlot.count) ~= number else { return nil }
        return UInt16(number)
    }

    private static func address(_ reply: RedisReply, _ asked: RedisAddress) -> RedisAddress? {
        guard reply.elements.count >= 2, let port = reply.elements[1].number else { return nil }
        return RedisAddress(announced: reply.elements[0].text, port: port, by: asked)
    }
}

extension RedisAddress {
    /// An address that a node of a cluster tells; where it leaves the host empty, its own is meant.
    init?(announced host: String, port: Int64, by asked: RedisAddress) {
        if !host.isEmpty && host != "?" {
            self.init(announced: host, port: port)
        } else if case .tcp(let own, _) = asked {
            self.init(announced: own, port: port)
        } else {
            return nil
        }
    }
}
