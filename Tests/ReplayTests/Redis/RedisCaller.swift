import Foundation
import Reactor
import Replay
import Synchronization
import TestKit

/// A store and its session on one loop, as one of the proxy's workers uses it.
actor RedisCaller {
    /// What operators were told.
    final class Events: Sendable {
        private let all = Mutex<[StoreEvent]>([])

        func append(_ event: StoreEvent) { all.withLock { $0.append(event) } }

        /// Every word of it.
        var text: String {
            all.withLock { events in
                events.map { event in
                    "\(event.severity): \(event.message)"
                        + event.fields.map { " \($0.name)=\($0.value)" }.joined()
                }
                .joined(separator: "\n")
            }
        }
    }

    nonisolated let store: RedisStore
    nonisolated let events: Events
    private let host: TestLoop
    private var session: (any ClaimSession)?
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        host.loop.asUnownedSerialExecutor()
    }

    init(_ settings: RedisSettings) throws {
        let events = Events()
        self.events = events
        store = RedisStore(settings: settings) { events.append($0) }
        host = try TestLoop()
    }

    /// Another loop with the same store.
    init(sharing other: RedisCaller) throws {
        store = other.store
        events = other.events
        host = try TestLoop()
    }

    /// Connects, and waits until the store can vouch for tokens of this moment.
    func open() async {
        let session = store.makeSession(on: host.loop)
        self.session = session
        let waiter = Waiter(loop: host.loop)
        await session.warmUp(waiter: waiter, until: .now.advanced(by: .seconds(10)))
        while Int64(Date.now.timeIntervalSince1970) < store.reliableSince {
            _ = await waiter.wait(until: .now.advanced(by: .milliseconds(20)))
        }
        waiter.invalidate()
    }

    func close() {
        session?.close()
        session = nil
    }

    func claim(_ claim: Claim, patience: Duration = .seconds(5)) async -> ClaimOutcome {
        guard let session else { return .unavailable(.system) }
        let waiter = Waiter(loop: host.loop)
        defer { waiter.invalidate() }
        return await session.claim(
            claim, waiter: waiter, until: .now.advanced(by: patience))
    }

    func release(_ claim: Claim) async -> Bool {
        guard let session else { return false }
        let waiter = Waiter(loop: host.loop)
        defer { waiter.invalidate() }
        return await session.release(
            claim, waiter: waiter, until: .now.advanced(by: .seconds(5)))
    }

    func inspect(_ claim: Claim) async -> ClaimOutcome? {
        guard let session else { return nil }
        let waiter = Waiter(loop: host.loop)
        defer { waiter.invalidate() }
        return await session.inspect(
            claim, waiter: waiter, until: .now.advanced(by: .seconds(5)))
    }
}

/// A caller that is connected, for the length of a test.
func withCaller<R: Sendable>(
    _ settings: RedisSettings, _ body: (RedisCaller) async throws -> R
) async throws -> R {
    let caller = try RedisCaller(settings)
    await caller.open()
    do {
        let result = try await body(caller)
        await caller.close()
        return result
    } catch {
        await caller.close()
        throw error
    }
}

extension RedisSettings {
    static func single(_ server: RedisServer) -> RedisSettings {
        RedisSettings(.single(.tcp(host: "127.0.0.1", port: server.port)))
    }
}

extension Claim {
    /// The claim of a token that nobody has seen yet.
    ///
    /// - Parameters:
    ///   - age: Seconds since it was issued.
    ///   - life: Seconds until nobody accepts it.
    ///   - clock: How far our clock is ahead of the real one, in seconds.
    static func fresh(
        age: Int64 = 0, life: Int64 = 300, clock: Int64 = 0,
        key: ClaimKey = ClaimKey(
            high: .random(in: 0...UInt64.max), low: .random(in: 0...UInt64.max))
    ) -> Claim {
        let wall = Int64(Date.now.timeIntervalSince1970 * 1_000_000) + clock * 1_000_000
        return Claim(
            key: key, issuedAt: wall / 1_000_000 - age, retainedUntil: wall / 1_000_000 + life,
            at: ClaimInstant(wallMicroseconds: wall, monotonic: .now))
    }

    /// The same token in another request.
    func again(clock: Int64 = 0) -> Claim {
        var claim = self
        claim.at = ClaimInstant(
            wallMicroseconds: Int64(Date.now.timeIntervalSince1970 * 1_000_000)
                + clock * 1_000_000,
            monotonic: .now)
        return claim
    }
}
