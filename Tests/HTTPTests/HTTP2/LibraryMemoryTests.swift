import CNGHTTP2
import Testing

@testable import HTTP

@Suite("Memory of the HTTP/2 library")
struct LibraryMemoryTests {
    /// What the library sees of the memory.
    private func withFunctions(_ body: (nghttp2_mem) throws -> Void) rethrows {
        let memory = LibraryMemory()
        try body(memory.withFunctions { $0.pointee })
        // Its blocks are the memory's only as long as it is there.
        withExtendedLifetime(memory) {}
    }

    @Test(
        "a block keeps its bytes beside others, and is aligned for every type",
        arguments: [0, 1, 31, 32, 33, 511, 512, 513, 600, 20_000])
    func keeps(size: Int) throws {
        try withFunctions { memory in
            var blocks: [UnsafeMutableRawPointer] = []
            for index in 0..<40 {
                let block = try #require(memory.malloc(size, memory.mem_user_data))
                block.initializeMemory(as: UInt8.self, repeating: UInt8(index), count: size)
                #expect(UInt(bitPattern: block) % 16 == 0)
                blocks.append(block)
            }
            for (index, block) in blocks.enumerated() {
                let bytes = UnsafeRawBufferPointer(start: block, count: size)
                #expect(bytes.allSatisfy { $0 == UInt8(index) })
                memory.free(block, memory.mem_user_data)
            }
        }
    }

    @Test("a freed block is the next one of its size, and zeroed where that is asked for")
    func reuses() throws {
        try withFunctions { memory in
            let first = try #require(memory.malloc(100, memory.mem_user_data))
            first.initializeMemory(as: UInt8.self, repeating: 0xAA, count: 100)
            memory.free(first, memory.mem_user_data)
            let second = try #require(memory.calloc(4, 25, memory.mem_user_data))
            #expect(second == first)
            #expect(UnsafeRawBufferPointer(start: second, count: 100).allSatisfy { $0 == 0 })
            memory.free(second, memory.mem_user_data)
        }
    }

    @Test("a block that grows keeps what it holds", arguments: [(10, 20), (10, 400), (500, 5000)])
    func grows(from: Int, to: Int) throws {
        try withFunctions { memory in
            let block = try #require(memory.malloc(from, memory.mem_user_data))
            block.initializeMemory(as: UInt8.self, repeating: 7, count: from)
            let larger = try #require(memory.realloc(block, to, memory.mem_user_data))
            #expect(UnsafeRawBufferPointer(start: larger, count: from).allSatisfy { $0 == 7 })
            larger.initializeMemory(as: UInt8.self, repeating: 8, count: to)
            memory.free(larger, memory.mem_user_data)
        }
    }

    @Test("a size that no memory has is nil, not a small block")
    func refuses() throws {
        withFunctions { memory in
            #expect(memory.calloc(.max, 16, memory.mem_user_data) == nil)
            #expect(memory.malloc(.max, memory.mem_user_data) == nil)
            memory.free(nil, memory.mem_user_data)
        }
    }
}
