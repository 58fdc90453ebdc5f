import Reactor
import Testing

@Suite("Objects for whoever needs one next")
struct SparesTests {
    private final class Object {}

    private func spares(_ objects: [Object], limit: Int = 64) -> Spares<Object> {
        var spares = Spares<Object>(limit: limit)
        for object in objects { spares.giveBack(object) }
        return spares
    }

    @Test("the one that was used last is the first to be used again, and there are not too many")
    func order() {
        let objects = (0..<3).map { _ in Object() }
        var spares = spares(objects, limit: 2)
        #expect(spares.isFull)
        #expect(spares.take() === objects[1])
        #expect(!spares.isFull)
        #expect(spares.take() === objects[0])
        #expect(spares.take() == nil)
    }

    @Test("what nobody needed between two looks is let go, except a few, the ones used last")
    func sweep() {
        let objects = (0..<20).map { _ in Object() }
        var spares = spares(objects)
        // Of a burst nothing is known at the first look.
        #expect(spares.sweep() == 0)
        // Three of the twenty were needed at the same time, so seventeen were not.
        let needed = (0..<3).compactMap { _ in spares.take() }
        for object in needed { spares.giveBack(object) }
        var ended: [Object] = []
        #expect(spares.sweep { ended.append($0) } == 9)
        #expect(ended.elementsEqual(objects[..<9], by: ===))
        #expect(spares.sweep() == 3)
        #expect(spares.sweep() == 0)
    }

    @Test("all are let go at once, and each is told")
    func removeAll() {
        let objects = (0..<20).map { _ in Object() }
        var spares = spares(objects)
        _ = spares.sweep()
        var ended = 0
        spares.removeAll { _ in ended += 1 }
        #expect(ended == 20)
        #expect(spares.take() == nil)
        for object in objects { spares.giveBack(object) }
        // What was counted before is forgotten.
        #expect(spares.sweep() == 0)
    }
}
