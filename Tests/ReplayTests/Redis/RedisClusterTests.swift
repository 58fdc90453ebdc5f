import Reactor
import Testing

@testable import Replay

@Suite("The store redis, with a real cluster", .enabled(if: RedisServer.isInstalled))
struct RedisClusterTests {
    /// Two masters with half of the slots each; or three, of which the last has a half of the
    /// second half.
    private struct Cluster {
        let nodes: [RedisServer]
        let names: [String]

        init(_ count: Int = 2) async throws {
            let options = [
                "cluster-enabled yes", "cluster-config-file nodes.conf",
                "cluster-node-timeout 2000", "cluster-require-full-coverage no",
            ]
            var nodes: [RedisServer] = []
            for _ in 0..<count { nodes.append(try await RedisServer(options)) }
            try nodes[0].cli("cluster", "addslotsrange", "0", "8191")
            try nodes[1].cli("cluster", "addslotsrange", "8192", count == 2 ? "16383" : "12287")
            if count > 2 { try nodes[2].cli("cluster", "addslotsrange", "12288", "16383") }
            for node in nodes.dropFirst() {
                try nodes[0].cli("cluster", "meet", "127.0.0.1", "\(node.port)")
            }
            self.nodes = nodes
            let servers = nodes
            names = try nodes.map { try $0.cli("cluster", "myid") }
            try await until("the cluster is complete") {
                try servers.allSatisfy { node in
                    let info = try node.cli("cluster", "info")
                    let slots = try node.cli("cluster", "slots")
                    return info.contains("cluster_state:ok")
                        && info.contains("cluster_slots_assigned:16384")
                        && servers.allSatisfy { slots.contains("\($0.port)") }
                }
            }
        }

        var settings: RedisSettings {
            RedisSettings(.cluster([.tcp(host: "127.0.0.1", port: nodes[0].port)]))
        }

        /// A slot moves from the first node to the second, up to the last word about it.
        func startMove(of slot: UInt16) throws {
            try nodes[1].cli("cluster", "setslot", "\(slot)", "importing", names[0])
            try nodes[0].cli("cluster", "setslot", "\(slot)", "migrating", names[1])
        }

        /// Moves what is in the slot.
        func moveKeys(in slot: UInt16) throws {
            let keys = try nodes[0].cli("cluster", "getkeysinslot", "\(slot)", "1000")
                .split(separator: "\n").map(String.init)
            if keys.isEmpty { return }
            let words = ["migrate", "127.0.0.1", "\(nodes[1].port)", "", "0", "5000", "keys"]
            _ = try nodes[0].cli(words + keys)
        }

        func endMove(of slot: UInt16) throws {
            for node in nodes.reversed() {
                try node.cli("cluster", "setslot", "\(slot)", "node", names[1])
            }
        }
    }

    private static let keys = RedisKeys(prefix: "portcullis:")

    /// A fresh token whose key is in one of the slots.
    private func token(in slots: ClosedRange<UInt16>, age: Int64 = 0) -> Claim {
        while true {
            let claim = Claim.fresh(age: age)
            if slots ~= RedisSlot.slot(of: Self.keys.key(of: claim.key)) { return claim }
        }
    }

    private let lower: ClosedRange<UInt16> = 0...8191
    private let upper: ClosedRange<UInt16> = 8192...16383

    @Test("R2: each token is claimed once, on the master that has its slot")
    func claims() async throws {
        let cluster = try await Cluster()
        try await withCaller(cluster.settings) { one in
            try await withCaller(cluster.settings) { other in
                for _ in 0..<30 {
                    let token = Claim.fresh()
                    #expect(await one.claim(token) == .claimed)
                    #expect(await other.claim(token.again()) == .reused)
                }
                let released = Claim.fresh()
                #expect(await one.claim(released) == .claimed)
                #expect(await one.release(released))
                #expect(await other.claim(released) == .claimed)
            }
        }
        for node in cluster.nodes {
            let count = Int(try node.cli("dbsize")) ?? 0
            #expect(count > 5)
        }
    }

    @Test("while a slot moves (ASK), and after it has (MOVED), no token passes twice")
    func migration() async throws {
        let cluster = try await Cluster()
        try await withCaller(cluster.settings) { caller in
            let before = token(in: lower)
            let slot = RedisSlot.slot(of: Self.keys.key(of: before.key))
            #expect(await caller.claim(before) == .claimed)
            try cluster.startMove(of: slot)
            let during = token(in: slot...slot)
            // It is not on the old master: asked for on the new one.
            #expect(await caller.claim(during) == .claimed)
            #expect(await caller.claim(during.again()) == .reused)
            #expect(await caller.claim(before.again()) == .reused)
            try cluster.moveKeys(in: slot)
            #expect(await caller.claim(before.again()) == .reused)
            try cluster.endMove(of: slot)
            let after = token(in: slot...slot)
            #expect(await caller.claim(after) == .claimed)
            for token in [before, during, after] {
                #expect(await caller.claim(token.again()) == .reused)
            }
            // The memory of both is whole: nothing predates it.
            #expect(!caller.events.text.contains("lost what it knew"))
        }
    }

    @Test("when the slot of a marker moves, the memory of its master stays whole")
    func markerMoves() async throws {
        let cluster = try await Cluster()
        try await withCaller(cluster.settings) { caller in
            #expect(await caller.claim(.fresh()) == .claimed)
            let since = caller.store.reliableSince
            // The middle of the first master's slots, where the marker is that is read.
            let slot: UInt16 = 4096
            #expect(
                try cluster.nodes[0].cli("cluster", "countkeysinslot", "\(slot)") != "0")
            try cluster.startMove(of: slot)
            try cluster.moveKeys(in: slot)
            try cluster.endMove(of: slot)
            try await until("claims pass on both masters again") {
                let one = await caller.claim(token(in: 0...4000))
                let two = await caller.claim(token(in: upper))
                return one == .claimed && two == .claimed
            }
            #expect(caller.store.reliableSince == since)
        }
    }

    @Test("R13: one master is flushed: tokens issued before are predates, on all masters")
    func flushed() async throws {
        let cluster = try await Cluster()
        try await withCaller(cluster.settings) { caller in
            let token = token(in: upper)
            #expect(await caller.claim(token) == .claimed)
            try cluster.nodes[1].cli("flushall")
            #expect(await caller.claim(token.again()) == .predates)
            #expect(await caller.claim(self.token(in: lower, age: 5)) == .predates)
            #expect(await caller.claim(self.token(in: lower, age: -5)) == .claimed)
        }
    }

    @Test("R11: one master is down: its tokens are unavailable, those of the others are claimed")
    func oneDown() async throws {
        // Two of three are a majority; of two, the one that is left would refuse everything.
        let cluster = try await Cluster(3)
        try await withCaller(cluster.settings) { caller in
            cluster.nodes[1].kill()
            for _ in 0..<10 {
                guard case .unavailable = await caller.claim(token(in: 8192...12287)) else {
                    Issue.record("claimed on a dead master")
                    return
                }
                #expect(await caller.claim(token(in: lower)) == .claimed)
                #expect(await caller.claim(token(in: 12288...16383)) == .claimed)
            }
        }
    }

    @Test("a server outside a cluster, and a cluster asked as one server, are said")
    func wrongMode() async throws {
        let single = try await RedisServer()
        let asCluster = RedisSettings(.cluster([.tcp(host: "127.0.0.1", port: single.port)]))
        try await withCaller(asCluster) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
            #expect(caller.events.text.contains("not in cluster mode"))
        }
        let cluster = try await Cluster()
        try await withCaller(.single(cluster.nodes[0])) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
            #expect(caller.events.text.contains("redis+cluster:"))
        }
    }

    @Test("with a hash tag in the prefix one master has all claims")
    func hashTag() async throws {
        let cluster = try await Cluster()
        var settings = cluster.settings
        settings.keyPrefix = "{portcullis}:"
        try await withCaller(settings) { caller in
            for _ in 0..<10 {
                let token = Claim.fresh()
                #expect(await caller.claim(token) == .claimed)
                #expect(await caller.claim(token.again()) == .reused)
            }
        }
    }
}
