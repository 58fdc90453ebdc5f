#if DEBUG
    import Reactor
    import TestKit
    import Testing

    @testable import Proxy

    @Suite("Faults of the kernel: the state directory and key files")
    struct KeyFileFaultTests {
        private let saved = SavedKeySet(
            source: "https://keys.example.com/jwks", fetchedAt: 1_800_000_000,
            body: [UInt8](repeating: 0x7B, count: 200_000))
        private let older = SavedKeySet(
            source: "https://keys.example.com/jwks", fetchedAt: 1_700_000_000, body: [0x7B])

        @Test(
            "a key set that cannot be kept leaves the older one, and nothing else",
            arguments: [
                "open:ENOSPC:1", "open:EMFILE:1", "open:EROFS:1", "write:ENOSPC:1",
                "write:short=1000:1,write:ENOSPC:1@1", "write:EDQUOT:1", "write:EIO:1",
                "rename:ENOSPC:1", "rename:EIO:1",
            ])
        func kept(rules: String) throws {
            let folder = try TemporaryFolder()
            let path = SavedKeySet.path(in: folder.path, project: "production")
            try older.write(to: path)
            let plan = try FaultPlan(text: rules)
            try StandIn.use(plan) {
                #expect(throws: Errno.self) { try saved.write(to: path) }
                #expect(SavedKeySet.read(path) == older)
                #expect(try folder.names() == ["jwks-production.saved"])
                // Once there is room again, the next one is kept.
                try saved.write(to: path)
                #expect(SavedKeySet.read(path) == saved)
            }
        }

        @Test(
            "short and interrupted calls lose no byte of a file",
            arguments: [
                "write:short=7777", "read:short=1000",
                "write:EINTR:1/2,read:EINTR:1/2,open:EINTR:1/2",
            ])
        func whole(rules: String) throws {
            let folder = try TemporaryFolder()
            let path = SavedKeySet.path(in: folder.path, project: "production")
            try StandIn.use(try FaultPlan(text: rules)) {
                try saved.write(to: path)
                #expect(SavedKeySet.read(path) == saved)
            }
            #expect(SavedKeySet.read(path) == saved)
        }

        @Test(
            "a key file that cannot be read is a failure with the kernel's words, not an empty key set",
            arguments: [
                "open:EMFILE", "open:EACCES", "fstat:EIO", "read:EIO", "read:short=10:1,read:EIO@1",
            ])
        func unread(rules: String) throws {
            let folder = try TemporaryFolder()
            let path = try folder.write("{\"keys\":[]} and more", to: "jwks.json")
            StandIn.use(try FaultPlan(text: rules)) {
                let failure = #expect(throws: KeyFile.Failure.self) {
                    try KeyFile.read(path, maximumBytes: 1000)
                }
                #expect(failure?.reason.isEmpty == false)
            }
        }
    }
#endif
