internal import FoundationEssentials
internal import Reactor
internal import Replay
internal import TestKit
import Testing

@Suite("Opening the file store")
struct FileStoreOpeningTests {
    var place: FileStorePlace

    init() throws {
        place = try FileStorePlace()
    }

    @Test("R13: claims are there again after a restart, and so is what the file vouches for")
    mutating func restarts() throws {
        let since: Int64
        do {
            let store = try place.open()
            since = store.reliableSince
            #expect(store.claim(place.claim(1)) == .claimed)
        }
        let claim = place.claim(1)
        place.pass(seconds: 60)
        let store = try place.open()
        #expect(store.claim(claim) == .reused)
        #expect(store.reliableSince == since)
    }

    @Test("R14: two stores on one folder share the claims; closing one leaves the other open")
    func twoStores() throws {
        let old = try place.open(entryLimit: 10)
        let new = try place.open(entryLimit: 200_000)
        #expect(old.claim(place.claim(1)) == .claimed)
        #expect(new.claim(place.claim(1)) == .reused)
        old.close()
        #expect(old.claim(place.claim(2)) == .unavailable(.system))
        #expect(new.claim(place.claim(2)) == .claimed)
        #expect(new.statistics.byteLimit ?? 0 > 200_000 * 150)
    }

    @Test("R13: after a reboot everything is discarded, and what is older than the start predates")
    mutating func reboots() throws {
        let claim = place.claim(1)
        do {
            let store = try place.open()
            #expect(store.claim(claim) == .claimed)
        }
        // An hour later, 40 seconds after the boot.
        place.step(seconds: 3600)
        place.now.monotonic = MonotonicInstant(nanoseconds: 40_000_000_000)
        let store = try place.open(bootID: "boot-2")
        #expect(store.reliableSince == place.now.wallSeconds + 1)
        #expect(store.statistics.entries == 0)
        var token = place.claim(2)
        token.issuedAt = store.reliableSince - 1
        #expect(store.claim(token) == .predates)
        #expect(store.claim(token) == .reused)
        token.key = place.claim(3).key
        token.issuedAt = store.reliableSince
        #expect(store.claim(token) == .claimed)
        #expect(try folder() == ["claims-boot-2.mdb", "claims-boot-2.mdb-lock"])
    }

    @Test("R13: a folder that moved to a machine that runs for long lets no token pass again")
    mutating func moves() throws {
        var claim: Claim
        do {
            let store = try place.open(bootID: "machine-1")
            place.pass(seconds: 10)
            claim = place.claim(1)
            claim.issuedAt = place.now.wallSeconds
            #expect(store.claim(claim) == .claimed)
        }
        let store = try place.open(bootID: "machine-2")
        place.pass(seconds: 2)
        claim.at = place.now
        #expect(store.inspect(claim) == .predates)
        #expect(store.claim(claim) == .predates)
        #expect(try folder() == ["claims-machine-2.mdb", "claims-machine-2.mdb-lock"])
    }

    @Test(
        "R4, R13: a clock that was behind when the file was made does not reopen the window",
        arguments: [false, true])
    mutating func clockWrongAtBoot(isFirst: Bool) throws {
        let before = place.claim(1)
        if !isFirst {
            let store = try place.open()
            #expect(store.claim(before) == .claimed)
        }
        // The machine boots with its clock 500 seconds behind, and learns better.
        place.step(seconds: 20 - 500)
        place.now.monotonic = MonotonicInstant(nanoseconds: 10_000_000_000)
        let store = try place.open(bootID: "boot-2")
        place.step(seconds: 500)
        var again = before
        again.at = place.now
        #expect(again.issuedAt > store.reliableSince)
        #expect(store.claim(again) == .predates)
        // The start, by the clock that is right, and tokens from after it.
        var token = place.claim(2)
        token.issuedAt = place.now.wallSeconds
        #expect(store.claim(token) == .claimed)
    }

    @Test("R13: without a step of the clock the border stays where it is, to the second")
    mutating func borderStays() throws {
        let store = try place.open()
        for (number, milliseconds) in zip(UInt64(1)..., [0, 499, 500, 501, 1499, 1500, 1501]) {
            var token = place.claim(number)
            token.issuedAt = store.reliableSince
            token.at.wallMicroseconds += Int64(milliseconds) * 1000
            token.at.monotonic = token.at.monotonic.advanced(by: .milliseconds(milliseconds))
            #expect(store.claim(token) == .claimed)
        }
    }

    @Test("the folder and the files are the user's alone")
    func permissions() throws {
        _ = try place.open()
        #expect(try permissions(of: place.directory) == 0o700)
        for name in try folder() {
            #expect(try permissions(of: "\(place.directory)/\(name)") == 0o600)
        }
    }

    @Test("a file of another version is left alone, and the error says what to do")
    func otherVersion() throws {
        do { _ = try place.open() }
        try patch { bytes in
            // The header record: its key, then the version.
            let key: [UInt8] = Array("header".utf8) + [0, 0]
            let version: [UInt8] = [2, 0, 0, 0, 0, 0, 0, 0]
            let found = (0..<(1 << 16)).filter { index in
                bytes[index...].starts(with: key + version)
            }
            #expect(!found.isEmpty)
            for index in found { bytes[index + 8] = 7 }
        }
        let error = #expect(throws: StoreOpenError.self) { try place.open() }
        #expect(error?.message.contains("claims-boot-1.mdb: it has format 7") == true)
        #expect(error?.hint.contains("remove it") == true)
        #expect(throws: StoreOpenError.self) { try place.openForInspection() }
        #expect(try folder().contains("claims-boot-1.mdb"))
    }

    @Test("what is no file of claims is left alone, and the error says what to do")
    func damaged() throws {
        do { _ = try place.open() }
        try patch { bytes in for index in 0..<8192 { bytes[index] = 0x55 } }
        let error = #expect(throws: StoreOpenError.self) { try place.open() }
        #expect(error?.message.contains("claims-boot-1.mdb") == true)
        #expect(error?.hint.contains("damaged") == true)
    }

    @Test("a file that a process was killed over before it was finished is finished")
    func unfinished() throws {
        try FileManager.default.createDirectory(
            atPath: place.directory, withIntermediateDirectories: false)
        try folder(write: [], to: "claims-boot-1.mdb")
        let store = try place.open()
        #expect(store.reliableSince == place.now.wallSeconds + 1)
        #expect(store.claim(place.claim(1)) == .claimed)
    }

    @Test("R12: without the disk space nothing is made, and the error says how much and where")
    func diskFull() throws {
        let error = #expect(throws: StoreOpenError.self) {
            try place.open(entryLimit: 1_000_000_000_000)
        }
        #expect(error?.message.contains("cannot reserve 160000") == true)
        #expect(error?.message.contains("\(place.directory)/claims-boot-1.mdb") == true)
        #expect(error?.hint.contains("max_entries") == true)
        #expect(try folder().isEmpty)
        _ = try place.open()
    }

    @Test("R12: a store that wants more than the disk has leaves the one that runs alone")
    func diskFullForAnother() throws {
        let store = try place.open()
        #expect(throws: StoreOpenError.self) { try place.open(entryLimit: 1_000_000_000_000) }
        #expect(store.claim(place.claim(1)) == .claimed)
    }

    @Test("the space of the file is taken when it is opened")
    func reserves() throws {
        let store = try place.open(entryLimit: 100_000)
        let limit = try #require(store.statistics.byteLimit)
        let status = try Syscalls.status(at: "\(place.directory)/claims-boot-1.mdb")
        #expect(status.allocatedBytes >= Int64(limit))
        #expect(status.size == Int64(limit))
    }

    @Test("no folder above, a file in its place: the error names it")
    func unusableFolders() throws {
        for path in ["\(place.folder.path)/none/replay", try place.folder.write("", to: "file")] {
            let error = #expect(throws: StoreOpenError.self) {
                try FileStore.open(
                    directory: path, entryLimit: 10, now: place.now, boot: Boot(id: "boot-1"))
            }
            #expect(error?.message.contains(path) == true)
            #expect(error?.hint.contains("state_directory") == true)
        }
    }

    @Test("a folder that does not hold maps of files is refused by name")
    func procIsNoPlace() throws {
        let error = #expect(throws: StoreOpenError.self) {
            try FileStore.open(
                directory: "/proc/self", entryLimit: 10, now: place.now, boot: Boot(id: "boot-1"))
        }
        #expect(error?.message.contains("/proc/self") == true)
    }

    @Test("R14: a deleted file is noticed, and nothing is claimed in it any longer")
    func deleted() throws {
        let store = try place.open()
        #expect(store.claim(place.claim(1)) == .claimed)
        try FileManager.default.removeItem(atPath: place.directory)
        _ = store.purge(at: place.now)
        #expect(store.claim(place.claim(2)) == .unavailable(.system))
        #expect(!store.release(place.claim(1)))
    }

    @Test("the present boot has a name")
    func presentBoot() throws {
        let boot = try Boot.current()
        #expect(boot.id.utf8.count == 36)
    }

    @Test("inspection sees claims, makes none and needs a store that is there")
    func inspection() throws {
        #expect(try place.openForInspection() == nil)
        #expect(try place.folder.names().isEmpty)
        do {
            let store = try place.open()
            #expect(store.claim(place.claim(1)) == .claimed)
        }
        #expect(try place.openForInspection(bootID: "boot-2") == nil)
        let inspected = try #require(try place.openForInspection())
        #expect(inspected.inspect(place.claim(1)) == .reused)
        #expect(inspected.inspect(place.claim(2)) == .claimed)
        #expect(inspected.claim(place.claim(2)) == .unavailable(.system))
        #expect(!inspected.release(place.claim(1)))
        #expect(inspected.statistics.entries == 1)
    }

    private func folder() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: place.directory).sorted()
    }

    private func folder(write bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: "\(place.directory)/\(name)"))
    }

    private func patch(_ change: (inout [UInt8]) -> Void) throws {
        let path = "\(place.directory)/claims-boot-1.mdb"
        var bytes = Array(try Data(contentsOf: URL(filePath: path)))
        change(&bytes)
        try Data(bytes).write(to: URL(filePath: path))
    }

    private func permissions(of path: String) throws -> UInt32 {
        try Syscalls.status(at: path).permissions
    }
}
