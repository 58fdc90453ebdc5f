import Attestation
import Configuration
import Reactor
import TestKit
import Testing

@testable import Proxy

private let oneKey = TestIssuer.keySetJSON(of: [.standard])
private let otherKey = TestIssuer.keySetJSON(of: [.other])

@Suite("Sources of the key set keeper", .timeLimit(.minutes(1)))
struct KeySetKeeperSourceTests {
    private static let fileIntervals = KeySchedule.Intervals(
        refresh: .milliseconds(20), shortestRefresh: .milliseconds(20), usable: nil,
        coolDown: .zero, firstRetry: .milliseconds(20), longestRetryWithoutKeys: .milliseconds(20),
        longestRetryWithKeys: .milliseconds(20), jitter: 0)

    @Test("a file is read again when it changes; a broken one leaves the good keys in use")
    func file() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(oneKey, to: "keys.json")
        let rig = try KeeperRig([.file(path)], file: Self.fileIntervals)
        await rig.keeper.start()
        let first = try await rig.keys { $0.keySet != nil }
        #expect(usableKeyIDs(first) == ["k1"])
        #expect(first.usableUntil == .never)

        try folder.write("{\"keys\":", to: "keys.json")
        let broken = try await rig.keys { $0.attempts > first.attempts }
        #expect(usableKeyIDs(broken) == ["k1"])
        #expect(broken.generation == first.generation)
        #expect(
            try await rig.status().lastError
                == "the content of \(path) is not JSON; check jwks of [project.production]")

        try folder.write(otherKey, to: "keys.json")
        let second = try await rig.keys { $0.generation > first.generation }
        #expect(usableKeyIDs(second) == ["k2"])
        #expect(try await rig.status().lastError == nil)

        try Syscalls.unlink(path)
        _ = try await rig.keys { $0.attempts > second.attempts }
        let status = try await rig.status()
        #expect(status.isUsable)
        #expect(
            status.lastError
                == "cannot read \(path): No such file or directory; check jwks of [project.production]"
        )
        // Once each, however often it was looked at.
        #expect(rig.log.messages(.warning).count == 2)
    }

    @Test("K1: a file that is not there yet is found when it comes")
    func lateFile() async throws {
        let folder = try TemporaryFolder()
        let rig = try KeeperRig([.file(folder.path(of: "keys.json"))], file: Self.fileIntervals)
        await rig.keeper.start()
        let missing = try await rig.keys { $0.attempts == 1 }
        #expect(missing.usable(at: .now) == nil)
        try folder.write(oneKey, to: "keys.json")
        #expect(usableKeyIDs(try await rig.keys { $0.keySet != nil }) == ["k1"])
    }

    @Test("a file that does not change is not told about, unless somebody waits for a refetch")
    func unchangedFile() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(oneKey, to: "keys.json")
        let rig = try KeeperRig([.file(path)], file: Self.fileIntervals)
        await rig.keeper.start()
        let first = try await rig.keys { $0.attempts == 1 }
        rig.keeper.refetch("production")
        let second = try await rig.keys { $0.attempts > 1 }
        #expect(second.generation == first.generation)
        let successes = try await rig.status().refreshes.first { $0.result == .success }
        #expect(successes?.count == 1)
    }

    @Test("a reload keeps the keys of unchanged sources and fetches the new ones")
    func reload() async throws {
        let kept = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let added = try await ScriptedServer.start { _, _ in .ok(otherKey) }
        let removed = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let rig = try KeeperRig([.url(removed, name: "old"), .url(kept, name: "kept")])
        await rig.keeper.start()
        while let snapshot = await rig.next(), snapshot.sets.contains(where: { $0.attempts == 0 }) {
            continue
        }
        let before = await rig.keeper.snapshot
        let after = await rig.keeper.update(
            projects: [.url(kept, name: "kept"), .url(added, name: "new")])
        #expect(after.sets.map(\.project) == ["kept", "new"])
        #expect(after.sets[0].keySet === before.sets[1].keySet)
        #expect(after.sets[0].fetchedAt == before.sets[1].fetchedAt)
        #expect(after.sets[1].usable(at: .now) == nil)
        while let snapshot = await rig.next(), snapshot.sets.last?.keySet == nil { continue }
        #expect(await rig.keeper.snapshot.sets.last?.keySet?.keyIDs == ["k2"])
        #expect(await kept.requests.count == 1)
        #expect(await rig.keeper.status.map(\.project) == ["kept", "new"])
    }

    @Test("a reload with another source under the old name does not keep the old keys")
    func changedSource() async throws {
        let first = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let second = try await ScriptedServer.start { _, _ in .ok(otherKey) }
        let rig = try KeeperRig([.url(first)])
        await rig.keeper.start()
        _ = try await rig.keys { $0.keySet != nil }
        let snapshot = await rig.keeper.update(projects: [.url(second)])
        #expect(snapshot.sets.first?.keySet == nil)
        #expect(usableKeyIDs(try await rig.keys { $0.keySet != nil }) == ["k2"])
    }

    @Test("K1: a restart while the URL is out of reach goes on with the keys of the earlier run")
    func restart() async throws {
        let folder = try TemporaryFolder()
        let server = try await ScriptedServer.start { _, index in index == 0 ? .ok(oneKey) : nil }
        let first = try KeeperRig([.url(server)], stateDirectory: folder.path)
        await first.keeper.start()
        _ = try await first.keys { $0.keySet != nil }
        await first.keeper.stop()

        let second = try KeeperRig(
            [.url(server)], stateDirectory: folder.path, url: .milliseconds(usable: 6 * 3_600_000))
        let restored = try #require(await second.keeper.start().sets.first)
        #expect(usableKeyIDs(restored) == ["k1"])
        // What is left of their six hours, not six hours from now. Kept in whole seconds.
        let left = restored.usableUntil.microseconds(since: .now) / 1_000_000
        #expect(6 * 3600 - 60...6 * 3600 ~= left)
        let failed = try await second.keys { $0.attempts == 1 }
        #expect(usableKeyIDs(failed) == ["k1"])
    }

    @Test("keys of an earlier run that are too old, or came from another URL, are not used")
    func staleRestart() async throws {
        let folder = try TemporaryFolder()
        let server = try await ScriptedServer.start { _, _ in nil }
        let source = ProjectSource.url(server)
        guard case .url(let url) = source.keys else { return }
        let path = SavedKeySet.path(in: folder.path, project: "production")
        let cases: [(String, Int64, Bool)] = [
            (url, 0, true), (url, 6 * 3600 - 60, true), (url, 6 * 3600, false), (url, -3600, false),
            ("\(url)2", 0, false),
        ]
        for (source, age, isUsed) in cases {
            let saved = SavedKeySet(
                source: source, fetchedAt: WallClock.seconds - age, body: Array(oneKey.utf8))
            try saved.write(to: path)
            let rig = try KeeperRig([.url(server)], stateDirectory: folder.path)
            let restored = await rig.keeper.start().sets.first
            #expect((restored?.usable(at: .now) != nil) == isUsed, "age \(age)")
            await rig.keeper.stop()
        }
    }

    @Test("a state directory that cannot be written is one warning, and no reason to fail")
    func missingStateDirectory() async throws {
        let folder = try TemporaryFolder()
        let server = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let directory = folder.path(of: "none")
        let rig = try KeeperRig(
            [.url(server)], stateDirectory: directory, url: .milliseconds(refresh: 1))
        await rig.keeper.start()
        let keys = try await rig.keys { $0.attempts == 3 }
        #expect(usableKeyIDs(keys) == ["k1"])
        #expect(
            rig.log.messages(.warning) == [
                "cannot write \(directory)/jwks-production.saved: No such file or directory. "
                    + "A restart while the key set is out of reach will have no keys; "
                    + "check state_directory in [server]"
            ])
    }
}

private enum WallClock {
    static var seconds: Int64 {
        (try? EventLoop().wallMicroseconds / 1_000_000) ?? 0
    }
}
