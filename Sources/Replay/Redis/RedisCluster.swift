internal import Reactor

/// One loop's view of a cluster: its masters, and which has which slots. A task of the loop keeps it
/// up to date.
///
/// Safe to be Sendable: everything is touched by the loop's thread alone, which its task prefers
/// as executor and whose sessions call the methods.
final class RedisCluster: @unchecked Sendable {
    /// The shortest time between two looks at the cluster.
    private static let coolDown = Duration.milliseconds(500)

    private let loop: EventLoop
    private let context: RedisContext
    private let seeds: [RedisAddress]
    private let waiter: Waiter
    private var map: RedisClusterMap?
    private var nodes: [RedisAddress: RedisNode] = [:]
    private var isRefreshWanted = true
    private var isClosed = false
    private var watchers: [Waiter] = []
    /// Looks that have ended.
    private var looks: UInt64 = 0
    /// Why the last look at the cluster saw nothing.
    private(set) var failure: RedisFailure?

    init(seeds: [RedisAddress], context: RedisContext, loop: EventLoop) {
        self.seeds = seeds
        self.context = context
        self.loop = loop
        waiter = Waiter(loop: loop)
    }

    /// Starts the task.
    func start() {
        Task(executorPreference: loop) { await self.run() }
    }

    /// The master of a slot; nil while nobody knows.
    func node(for slot: UInt16) -> RedisNode? {
        map?.master(of: slot).flatMap { nodes[$0] }
    }

    /// The master at an address; nil when there is none.
    func node(at address: RedisAddress) -> RedisNode? {
        nodes[address]
    }

    /// All masters.
    var masters: [RedisNode] { Array(nodes.values) }

    /// The view seems to be wrong: another look is taken soon.
    func refresh() {
        isRefreshWanted = true
        waiter.wake()
    }

    /// Waits for the next look that is taken, at most until `deadline`.
    func look(waiter: Waiter, until deadline: MonotonicInstant) async {
        refresh()
        let before = looks
        while looks == before, !isClosed {
            watchers.append(waiter)
            if await waiter.wait(until: deadline) == .timedOut { break }
        }
        watchers.removeAll { $0 === waiter }
    }

    /// Whether a look has ended already, however it went.
    var hasLooked: Bool { looks > 0 }

    func close() {
        isClosed = true
        for node in nodes.values { node.close() }
        nodes.removeAll()
        wakeWatchers()
        waiter.wake()
    }

    // MARK: Task

    private func run() async {
        var failures = 0
        while !isClosed {
            isRefreshWanted = false
            do throws(RedisFailure) {
                adopt(try await ask())
                failures = 0
                failure = nil
                context.notices.connected("cluster")
            } catch {
                failures += 1
                failure = error
                isRefreshWanted = true
                context.notices.failed("cluster", error)
            }
            looks += 1
            wakeWatchers()
            await pause(failures)
            while !isRefreshWanted && !isClosed { _ = await waiter.wait() }
        }
        waiter.invalidate()
    }

    private func pause(_ failures: Int) async {
        let longest = min(
            Self.coolDown * (1 << min(failures, 8)), RedisNode.longestPause)
        let end = loop.now.advanced(by: longest * Double.random(in: 0.5...1))
        while !isClosed, await waiter.wait(until: end) == .ready {}
    }

    /// Asks the nodes that are known, in any order, until one tells.
    private func ask() async throws(RedisFailure) -> RedisClusterMap {
        var latest = RedisFailure(.unreachable, "no node is configured")
        let known = nodes.keys.shuffled()
        for address in known + seeds.shuffled().filter({ !known.contains($0) }) {
            if isClosed { break }
            do throws(RedisFailure) {
                return try await ask(address)
            } catch {
                latest = RedisFailure(
                    error.kind, "node \(address): \(error.reason)", hint: error.hint)
            }
        }
        throw latest
    }

    private func ask(_ address: RedisAddress) async throws(RedisFailure) -> RedisClusterMap {
        let settings = context.settings
        let deadline = loop.now.advanced(by: settings.connectTimeout / 2)
        let link = try await context.connector.connect(
            to: address, on: loop, waiter: waiter, until: deadline)
        defer { link.close() }
        let replies = try await link.logIn(
            username: settings.username, password: settings.password,
            then: [RedisCommand("CLUSTER", "SLOTS")], until: deadline)
        guard let reply = replies.first else { throw RedisFailure(.protocolError, "no reply") }
        if reply.errorCode == "ERR" {
            throw RedisFailure(
                .protocolError, "it is not in cluster mode",
                hint: "the URL has to start with redis:")
        }
        if let code = reply.errorCode { throw RedisFailure(code, to: "tell its slots") }
        guard let map = RedisClusterMap(reply, from: address) else {
            throw RedisFailure(.protocolError, "it has no slots, or tells what makes no sense")
        }
        return map
    }

    private func adopt(_ map: RedisClusterMap) {
        if isClosed || map == self.map { return }
        self.map = map
        let masters = map.masters
        for (address, node) in nodes where !masters.contains(address) {
            node.close()
            nodes[address] = nil
            context.forgetBreaker(of: address.description)
        }
        for address in masters {
            let keys = markerKeys(of: address, map)
            // With a hash tag in the prefix one master has all keys.
            if keys.isEmpty { continue }
            if let node = nodes[address] {
                node.adopt(keys) { map.master(of: RedisSlot.slot(of: $0)) == address }
            } else {
                nodes[address] = makeNode(address, keys)
            }
        }
    }

    private func markerKeys(of master: RedisAddress, _ map: RedisClusterMap) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        for slot in map.landmarks(of: master) {
            let key = context.keys.marker(inSlot: slot)
            let isOurs = map.master(of: RedisSlot.slot(of: key)) == master
            if isOurs && !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    private func makeNode(_ address: RedisAddress, _ keys: [[UInt8]]) -> RedisNode {
        let node = RedisNode(
            address.description, locator: .fixed(address), markerKeys: keys, context: context,
            loop: loop)
        node.whenTroubled = { [weak self] in self?.refresh() }
        node.start()
        return node
    }

    private func wakeWatchers() {
        for waiter in watchers { waiter.wake() }
        watchers.removeAll()
    }
}
