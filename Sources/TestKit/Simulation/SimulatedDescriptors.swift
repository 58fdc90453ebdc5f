#if DEBUG
    internal import Reactor

    /// The descriptors of a simulated machine, and of which epoll_wait(2) has something to tell.
    struct SimulatedDescriptors {
        /// Descriptors of the simulation begin here; others are the machine's own.
        static let first: Int32 = 1_000_000

        /// One that is open.
        final class Entry {
            enum Kind {
                case epoll
                case flag
                case socket
                case listener(SocketAddress)
                case stream(SimulatedStream)
            }

            var kind: Kind
            /// Of a flag: it is up.
            var isUp = false
            /// Of a listener: who waits.
            var backlog: [(SimulatedStream, SocketAddress)] = []
            var watch: (events: UInt32, data: UInt64)?
            fileprivate var isQueued = false

            init(_ kind: Kind) {
                self.kind = kind
            }

            /// What it is ready for now.
            var readiness: UInt32 {
                switch kind {
                case .flag: isUp ? Readiness.input : 0
                case .listener: backlog.isEmpty ? 0 : Readiness.input
                case .stream(let stream): stream.readiness
                case .epoll, .socket: 0
                }
            }
        }

        /// How many are open.
        private(set) var count = 0
        private var entries: [Entry?] = []
        private var ready: [Int32] = []

        /// The open one with this number.
        subscript(_ descriptor: Int32) -> Entry? {
            let index = Int(descriptor - Self.first)
            return entries.indices.contains(index) ? entries[index] : nil
        }

        /// The lowest free number, as everywhere in Unix: one that was closed comes back soon.
        mutating func open(_ kind: Entry.Kind) -> Int32 {
            count += 1
            let entry = Entry(kind)
            if let free = entries.firstIndex(where: { $0 == nil }) {
                entries[free] = entry
                return Self.first + Int32(free)
            }
            entries.append(entry)
            return Self.first + Int32(entries.count - 1)
        }

        /// Frees a number.
        ///
        /// - Returns: what it stood for; nil when it was not open.
        mutating func close(_ descriptor: Int32) -> Entry? {
            guard let entry = self[descriptor] else { return nil }
            count -= 1
            entries[Int(descriptor - Self.first)] = nil
            ready.removeAll { $0 == descriptor }
            return entry
        }

        /// Something happened to a descriptor: an edge, if somebody watches.
        mutating func raise(_ descriptor: Int32) {
            guard let entry = self[descriptor], entry.watch != nil, !entry.isQueued else { return }
            entry.isQueued = true
            ready.append(descriptor)
        }

        /// There may be something to tell.
        var hasReady: Bool { !ready.isEmpty }

        /// What epoll_wait(2) tells.
        mutating func takeReady(capacity: Int) -> [(events: UInt32, data: UInt64)] {
            var result: [(events: UInt32, data: UInt64)] = []
            var again: [Int32] = []
            while result.count < capacity, !ready.isEmpty {
                let descriptor = ready.removeFirst()
                guard let entry = self[descriptor], let watch = entry.watch else { continue }
                entry.isQueued = false
                // Errors and ends are told unasked.
                let wanted = watch.events | Readiness.error | Readiness.end
                let events = entry.readiness & wanted
                if events == 0 { continue }
                result.append((events, watch.data))
                if watch.events & Readiness.edgeTriggered == 0 { again.append(descriptor) }
            }
            for descriptor in again { raise(descriptor) }
            return result
        }
    }
#endif
