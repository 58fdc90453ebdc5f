import Configuration
import Reactor
import Testing

@testable import Proxy

@Suite("The memory limit")
struct MemoryTests {
    @Test("load is shed from nine tenths on, until less than eight tenths are taken")
    func marks() {
        var governor = MemoryGovernor(limit: 1000)
        var changes: [Bool] = []
        for used: UInt64 in [0, 899, 900, 850, 800, 799, 899, 1200, 0] {
            changes.append(governor.note(used: used))
        }
        #expect(changes == [false, false, true, false, false, true, false, true, true])
        #expect(!governor.isShedding)
    }

    private func limit(_ files: [String: String]) -> UInt64? {
        ControlGroup { files[$0] }.memoryLimit
    }

    @Test("version 2: the smallest of the group and those around it")
    func version2() {
        let files = [
            "/proc/self/cgroup": "0::/system.slice/portcullis.service\n",
            "/sys/fs/cgroup/system.slice/portcullis.service/memory.max": "536870912\n",
            "/sys/fs/cgroup/system.slice/memory.max": "max\n",
            "/sys/fs/cgroup/memory.max": "1073741824\n",
        ]
        #expect(limit(files) == 512 << 20)
    }

    @Test("in a container, where only the root is to be seen")
    func container() {
        let files = ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "268435456\n"]
        #expect(limit(files) == 256 << 20)
        let host = [
            "/proc/self/cgroup": "0::/kubepods/pod1/abc\n",
            "/sys/fs/cgroup/memory.max": "268435456\n",
        ]
        #expect(limit(host) == 256 << 20)
    }

    @Test("version 1, beside the empty tree of version 2")
    func version1() {
        let files = [
            "/proc/self/cgroup": "5:cpu,memory:/docker/abc\n2:cpuset:/x\n0::/\n",
            "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes": "104857600\n",
            "/sys/fs/cgroup/cpuset/x/memory.limit_in_bytes": "1\n",
        ]
        #expect(limit(files) == 100 << 20)
    }

    @Test(
        "what is no number is no limit",
        arguments: ["max\n", "", "-1\n", "12 34\n", "1e9\n", "99999999999999999999999\n"])
    func noLimit(text: String) {
        #expect(
            limit(["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": text]) == nil)
        #expect(limit(["/proc/self/cgroup": text]) == nil)
        #expect(limit([:]) == nil)
    }

    @Test("the file's own words")
    func settings() {
        #expect(MemoryMeter.limit(.off) == nil)
        #expect(MemoryMeter.limit(.bytes(5)) == 5)
    }

    @Test("own pages and shared memory count, pages of files do not")
    func reading() {
        let status = """
            Name:\tportcullis
            VmRSS:\t   90000 kB
            RssAnon:\t   20000 kB
            RssFile:\t   60000 kB
            RssShmem:\t   10000 kB
            Threads:\t4

            """
        #expect(MemoryMeter.parse(Array(status.utf8).span) == 30_000 << 10)
        for text in [
            "", "Name:\tx\n", "RssAnon:\t x kB\nRssShmem:\t 1 kB\n", "RssAnon:\t 1 kB\n",
            "RssAnon:\t 9999999999999999 kB\nRssShmem:\t 1 kB",
        ] {
            #expect(MemoryMeter.parse(Array(text.utf8).span) == nil, "\(text)")
        }
    }

    @Test("this process takes something, and more when it takes more")
    func growth() throws {
        let before = try #require(MemoryMeter.used())
        let pages = [UInt8](repeating: 1, count: 64 << 20)
        let after = try #require(MemoryMeter.used())
        #expect(before > 1 << 20)
        #expect(after > before + 32 << 20)
        #expect(pages.last == 1)
    }
}
