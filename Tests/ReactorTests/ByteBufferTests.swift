import Reactor
import TestKit
import Testing

@Suite("Byte buffer")
struct ByteBufferTests {
    /// What a buffer is, written as plainly as possible.
    private struct Model {
        var pinned: [UInt8] = []
        var waiting: [UInt8] = []
    }

    private func copy(_ span: Span<UInt8>) -> [UInt8] {
        span.withUnsafeBytes { Array($0) }
    }

    private func expectSame(
        _ buffer: ByteBuffer, _ model: Model, _ step: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Bool {
        let isSame =
            copy(buffer.bytes) == model.waiting && copy(buffer.pinnedBytes) == model.pinned
            && buffer.count == model.waiting.count && buffer.isEmpty == model.waiting.isEmpty
            && buffer.pinnedCount == model.pinned.count && buffer.capacity >= buffer.count
        #expect(isSame, "after \(step)", sourceLocation: sourceLocation)
        return isSame
    }

    @Test(
        "any order of calls leaves what two arrays would hold",
        arguments: 1...20 as ClosedRange<UInt64>)
    func model(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let buffer = ByteBuffer(capacity: 64)
        var model = Model()
        for index in 0..<2000 {
            let step = step(buffer, &model, &random)
            if !expectSame(buffer, model, "step \(index), \(step)") { return }
        }
    }

    private func step(
        _ buffer: ByteBuffer, _ model: inout Model, _ random: inout SeededGenerator
    ) -> String {
        let some = (0..<Int.random(in: 0...90, using: &random)).map { _ in
            UInt8.random(in: .min ... .max, using: &random)
        }
        let part = Int.random(in: 0...model.waiting.count, using: &random)
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1:
            buffer.append(some)
            model.waiting += some
            return "append"
        case 2:
            buffer.append(UInt8(ascii: "x"))
            model.waiting.append(UInt8(ascii: "x"))
            return "append of a byte"
        case 3:
            let number =
                UInt64.random(in: 0...UInt64.max, using: &random) >> UInt64(some.count % 64)
            buffer.append(decimal: number)
            model.waiting += Array("\(number)".utf8)
            return "append of \(number)"
        case 4:
            buffer.reserve(some.count)
            let count = buffer.appendUnsafe { free in
                free.copyBytes(from: some)
                return some.count
            }
            #expect(count == some.count)
            model.waiting += some
            return "append by pointer"
        case 5, 6, 7:
            buffer.consume(part)
            model.waiting.removeFirst(part)
            return "consume"
        case 8 where model.pinned.isEmpty:
            buffer.pin(part)
            model.pinned = Array(model.waiting.prefix(part))
            model.waiting.removeFirst(part)
            return "pin"
        case 9:
            buffer.unpin()
            model.pinned = []
            return "unpin"
        case 10:
            buffer.reserve(some.count * 5)
            return "reserve"
        case 11 where some.count > 80:
            buffer.shrink(above: 256, to: 64)
            model = Model()
            #expect(buffer.capacity <= 256)
            return "shrink"
        default:
            return "nothing"
        }
    }

    @Test("pinned bytes stay while megabytes pass behind them, in memory that does not grow")
    func pinnedWhileStreaming() {
        let buffer = ByteBuffer(capacity: 4096)
        buffer.append("the head")
        buffer.pin(8)
        let piece = [UInt8](repeating: 7, count: 1000)
        for _ in 0..<2000 {
            buffer.append(piece)
            buffer.consume(999)
            buffer.consume(1)
        }
        #expect(copy(buffer.pinnedBytes) == Array("the head".utf8))
        #expect(buffer.capacity == 4096)
    }

    @Test(
        "numbers are written in decimal digits", arguments: [0, 9, 10, 99, 100, .max] as [UInt64])
    func decimal(number: UInt64) {
        let buffer = ByteBuffer(capacity: 0)
        buffer.append(decimal: number)
        #expect(copy(buffer.bytes) == Array("\(number)".utf8))
    }

    @Test("all that waits changes hands with its memory, and both buffers go on")
    func takesAll() {
        let (target, source) = (ByteBuffer(capacity: 128), ByteBuffer(capacity: 256))
        for round in 0..<3 as Range<UInt8> {
            #expect(target.isUnused)
            source.append([1, 2, 3, round])
            source.consume(2)
            #expect(!source.isUnused)
            let capacity = source.capacity
            target.takeAll(of: source)
            #expect(copy(target.bytes) == [3, round] && target.capacity == capacity)
            #expect(source.isUnused && source.isEmpty)
            target.pin(1)
            target.append(4)
            #expect(copy(target.pinnedBytes) == [3] && copy(target.bytes) == [round, 4])
            target.consume(2)
            // Pinned bytes are a use, too.
            #expect(target.isEmpty && !target.isUnused)
            target.unpin()
        }
    }

    @Test("shrinking gives memory back only where the buffer grew beyond the limit")
    func shrink() {
        let buffer = ByteBuffer(capacity: 128)
        buffer.reserve(1000)
        let grown = buffer.capacity
        buffer.shrink(above: grown, to: 128)
        #expect(buffer.capacity == grown)
        buffer.shrink(above: grown - 1, to: 128)
        #expect(buffer.capacity == 128)
    }
}
