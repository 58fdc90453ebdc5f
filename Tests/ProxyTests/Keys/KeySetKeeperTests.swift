import Attestation
import Configuration
import Reactor
import Synchronization
import TestKit
import Testing

@testable import Proxy

private let oneKey = TestIssuer.keySetJSON(of: [.standard])
private let otherKey = TestIssuer.keySetJSON(of: [.other])
private let bothKeys = TestIssuer.keySetJSON(of: [.standard, .other])

@Suite("Key set keeper", .timeLimit(.minutes(1)))
struct KeySetKeeperTests {
    @Test("prefetches each project's keys at the start")
    func prefetch() async throws {
        let first = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let second = try await ScriptedServer.start { _, _ in .ok(otherKey) }
        let rig = try KeeperRig([.url(first, name: "a"), .url(second, name: "b")])
        await rig.keeper.start()
        var latest: KeySnapshot?
        while let snapshot = await rig.next() {
            latest = snapshot
            if snapshot.sets.allSatisfy({ $0.usable(at: .now) != nil }) { break }
        }
        let snapshot = try #require(latest)
        #expect(snapshot.sets.map(\.project) == ["a", "b"])
        #expect(snapshot.usableKeys(ofProject: 0, at: .now)?.keyIDs == ["k1"])
        #expect(snapshot.usableKeys(ofProject: 1, at: .now)?.keyIDs == ["k2"])
        #expect(snapshot.usableKeys(ofProject: 2, at: .now) == nil)
        #expect(snapshot.sets[0].usable(at: snapshot.sets[0].usableUntil) == nil)
        #expect(
            snapshot.sets[0].usableUntil
                == snapshot.sets[0].fetchedAt.advanced(by: .seconds(6 * 3600)))
    }

    @Test("K1: without a key set at the start it is not usable, says why, and recovers by itself")
    func downAtStart() async throws {
        let isUp = Mutex(false)
        let server = try await ScriptedServer.start { _, _ in
            isUp.withLock { $0 } ? .ok(oneKey) : .init("HTTP/1.1 503 No\r\n\r\n")
        }
        let rig = try KeeperRig([.url(server)], url: .milliseconds())
        await rig.keeper.start()
        let failed = try await rig.keys { $0.attempts == 2 }
        #expect(failed.usable(at: .now) == nil)
        let before = try await rig.status()
        #expect(!before.isUsable)
        #expect(before.keyCount == 0)
        #expect(before.ageSeconds == nil)
        let reason =
            "answer of 127.0.0.1:\(server.port): it answered 503 instead of 200; "
            + "check jwks of [project.production]"
        #expect(before.lastError == reason)

        isUp.withLock { $0 = true }
        let good = try await rig.keys { $0.keySet != nil }
        #expect(usableKeyIDs(good) == ["k1"])
        let after = try await rig.status()
        #expect(after.isUsable)
        #expect(after.keyCount == 1)
        #expect(after.lastError == nil)
        #expect(after.refreshes.filter { $0.count > 0 }.map(\.result) == [.success, .status])
        #expect(after.refreshes.map(\.count).reduce(0, +) == good.attempts)

        // All failures are one line, the recovery another one.
        #expect(
            rig.log.messages(.error) == [
                "keys of project production could not be loaded: \(reason). Until there are good keys, "
                    + "its tokens are \"unavailable/keys\": enforced routes answer 503"
            ])
        #expect(rig.log.messages(.info).contains("keys of project production are available again"))
    }

    @Test("K2: an outage leaves good keys in use until they are too old, and then no longer")
    func downAfterStart() async throws {
        let server = try await ScriptedServer.start { _, index in index == 0 ? .ok(oneKey) : nil }
        let rig = try KeeperRig([.url(server)], url: .milliseconds(refresh: 100, usable: 2000))
        await rig.keeper.start()
        let good = try await rig.keys { $0.keySet != nil }
        let failed = try await rig.keys { $0.attempts >= 3 }
        #expect(failed.generation == good.generation)
        #expect(failed.keySet === good.keySet)
        #expect(failed.usableUntil == good.usableUntil)
        #expect(failed.usableUntil == good.fetchedAt.advanced(by: .milliseconds(2000)))
        let warnings = rig.log.messages(.warning)
        #expect(warnings.count == 1)
        #expect(warnings.first?.contains("The last good keys stay in use") == true)

        let old = try await rig.keys { _ in .now >= good.usableUntil }
        #expect(old.usable(at: .now) == nil)
        #expect(old.keySet === good.keySet)
        #expect(try await !rig.status().isUsable)
        #expect(
            rig.log.messages(.error).contains {
                $0.hasPrefix("keys of project production are too old to be used: ")
            })
    }

    @Test("K3: 10,000 tokens with random kids, from four threads, cost one fetch in a cool-down")
    func flood() async throws {
        let server = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let rig = try KeeperRig([.url(server)], url: .milliseconds(coolDown: 2000))
        await rig.keeper.start()
        _ = try await rig.keys { $0.attempts == 1 }
        let keeper = rig.keeper
        keeper.refetch("production")
        let first = try await rig.keys { $0.attempts == 2 }
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<2500 { keeper.refetch("production") } }
            }
        }
        #expect(await server.requests.count == 2)
        let second = try await rig.keys { $0.attempts == 3 }
        #expect(second.fetchedAt >= first.fetchedAt.advanced(by: .milliseconds(2000)))
        #expect(await server.requests.count == 3)
        // The same bytes are the same keys: verified tokens stay verified.
        #expect(second.generation == first.generation)
        #expect(second.keySet === first.keySet)
    }

    @Test("K3: a refetch for a project that does not exist is nobody's")
    func unknownProject() async throws {
        let server = try await ScriptedServer.start { _, _ in .ok(oneKey) }
        let rig = try KeeperRig([.url(server)], url: .milliseconds(coolDown: 0))
        await rig.keeper.start()
        _ = try await rig.keys { $0.attempts == 1 }
        rig.keeper.refetch("staging")
        rig.keeper.refetch("production")
        _ = try await rig.keys { $0.attempts == 2 }
        #expect(await server.requests.count == 2)
    }

    @Test("K4: a key that was rotated in is there when the cool-down ends, after a refetch in vain")
    func rotatedIn() async throws {
        let server = try await ScriptedServer.start { _, index in
            .ok(index < 2 ? oneKey : bothKeys)
        }
        let rig = try KeeperRig([.url(server)], url: .milliseconds(coolDown: 200))
        await rig.keeper.start()
        let first = try await rig.keys { $0.attempts == 1 }
        rig.keeper.refetch("production")
        let inVain = try await rig.keys { $0.attempts == 2 }
        #expect(usableKeyIDs(inVain) == ["k1"])
        rig.keeper.refetch("production")
        let second = try await rig.keys { $0.attempts == 3 }
        #expect(usableKeyIDs(second) == ["k1", "k2"])
        #expect(second.generation > first.generation)
    }

    @Test(
        "K5: a bad answer costs nothing but itself: good keys stay",
        arguments: [
            ("<html>Sign in</html>", "Content-Type: text/html\r\n", KeyRefreshResult.content),
            ("{}", "", .content), ("{\"keys\":[]}", "", .content), ("", "", .content),
            ("{\"keys\":[{\"kty\":\"AKP\",\"kid\":\"x\",\"pub\":\"AA\"}]}", "", .content),
            ("\u{1F}\u{8B}", "Content-Encoding: gzip\r\n", .body),
            (String(repeating: " ", count: 5 << 20), "", .body),
        ])
    func hostileContent(body: String, fields: String, result: KeyRefreshResult) async throws {
        let server = try await ScriptedServer.start { _, index in
            index == 0 ? .ok(oneKey) : .ok(body, fields: fields)
        }
        try await expectGoodKeysStay(server, after: result)
    }

    @Test(
        "K5: nor does an answer that is none",
        arguments: [
            (
                "HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\n\r\n",
                KeyRefreshResult.status
            ),
            ("HTTP/1.1 304 Not Modified\r\n\r\n", .status), ("HTTP/1.1 403 No\r\n\r\n", .status),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"keys\":", .body),
            ("garbage", .receive),
        ])
    func hostileAnswer(text: String, result: KeyRefreshResult) async throws {
        let server = try await ScriptedServer.start { _, index in
            index == 0 ? .ok(oneKey) : .init(text)
        }
        try await expectGoodKeysStay(server, after: result)
    }

    private func expectGoodKeysStay(
        _ server: ScriptedServer, after result: KeyRefreshResult
    ) async throws {
        let rig = try KeeperRig([.url(server)], url: .milliseconds(refresh: 1))
        await rig.keeper.start()
        let good = try await rig.keys { $0.attempts == 1 }
        let bad = try await rig.keys { $0.attempts == 2 }
        #expect(usableKeyIDs(bad) == ["k1"])
        #expect(bad.generation == good.generation)
        #expect(bad.usableUntil == good.usableUntil)
        let status = try await rig.status()
        #expect(status.isUsable)
        #expect(
            status.lastError?.contains("[project.production]") == true, "\(status.lastError ?? "")")
        #expect(status.refreshes.first { $0.result == result }?.count ?? 0 > 0)
    }

    @Test(
        "K5: usable keys survive bad neighbours and a wrong content type, and the bad ones are counted"
    )
    func mixedSet() async throws {
        let neighbours =
            "{\"kty\":\"AKP\",\"kid\":\"x\"},{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"},"
        let body = oneKey.replacing("[{", with: "[\(neighbours){")
        let server = try await ScriptedServer.start { _, _ in
            .ok(body, fields: "Content-Type: text/plain\r\n")
        }
        let rig = try KeeperRig([.url(server)])
        await rig.keeper.start()
        #expect(usableKeyIDs(try await rig.keys { $0.keySet != nil }) == ["k1"])
        let status = try await rig.status()
        #expect(status.keyCount == 1)
        #expect(status.skippedCount == 2)
        #expect(
            rig.log.messages(.warning) == [
                "keys of project production were skipped: key 1: not an RSA key; key 2: no usable kid"
            ])
    }

    @Test("K7: a key that was rotated out is gone, and the generation tells")
    func rotatedOut() async throws {
        let server = try await ScriptedServer.start { _, index in
            .ok(index == 0 ? bothKeys : otherKey)
        }
        let rig = try KeeperRig([.url(server)], url: .milliseconds(refresh: 50))
        await rig.keeper.start()
        let before = try await rig.keys { $0.keySet != nil }
        #expect(usableKeyIDs(before) == ["k1", "k2"])
        let after = try await rig.keys { $0.attempts == 2 }
        #expect(usableKeyIDs(after) == ["k2"])
        #expect(after.generation > before.generation)
    }

    @Test("sends the configured fields, and never logs them")
    func configuredFields() async throws {
        let server = try await ScriptedServer.start { _, _ in .init("HTTP/1.1 403 No\r\n\r\n") }
        var source = ProjectSource.url(server)
        source.keys = .url("http://127.0.0.1:\(server.port)/jwks?key=hush")
        source.keysHeaders = [("X-Goog-Api-Key", "s3cret")]
        let rig = try KeeperRig([source], url: .milliseconds())
        await rig.keeper.start()
        _ = try await rig.keys { $0.attempts == 1 }
        let requests = await server.requests
        #expect(requests.first?.contains("GET /jwks?key=hush HTTP/1.1\r\n") == true)
        #expect(requests.first?.contains("\r\nX-Goog-Api-Key: s3cret\r\n") == true)
        let status = try await rig.status()
        #expect(status.lastError?.contains("jwks_headers of [project.production]") == true)
        let everything = "\(rig.log.lines) \(status)"
        #expect(!everything.contains("s3cret"))
        #expect(!everything.contains("hush"))
    }

    @Test("a stopped keeper gives up what is under way and publishes nothing more")
    func stop() async throws {
        let server = try await ScriptedServer.start { _, _ in .init("", then: .silence) }
        let rig = try KeeperRig([.url(server)])
        await rig.keeper.start()
        await server.received(atLeast: 1)
        await rig.keeper.stop()
        #expect(await rig.keeper.status.isEmpty)
        #expect(rig.log.lines.isEmpty)
    }
}
