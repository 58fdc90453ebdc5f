import Reactor
import TestKit
import Testing

@testable import Proxy

@Suite("The keys of one loop")
struct LoopKeysTests {
    @Test("keys of another configuration, or older ones, are not taken over")
    func adoption() async throws {
        try await TestLoop().run { loop in
            let keys = LoopKeys(
                KeySnapshot(sets: [], edition: 2, change: 5), loop: loop.loop,
                requestRefetch: { _ in })
            let waiter = Waiter(loop: loop.loop)
            #expect(keys.awaitNext(waiter))
            for (edition, change) in [(1, 9), (3, 9), (2, 4)] as [(UInt64, UInt64)] {
                keys.adopt(KeySnapshot(sets: [], edition: edition, change: change))
                #expect(keys.snapshot.edition == 2 && keys.snapshot.change == 5)
            }
            keys.adopt(KeySnapshot(sets: [], edition: 2, change: 6))
            #expect(keys.snapshot.change == 6)
            #expect(await waiter.wait(until: loop.loop.now.advanced(by: .seconds(10))) == .ready)
        }
    }
}
