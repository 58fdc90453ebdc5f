#if DEBUG
    import Reactor
    import Replay
    import TestKit
    import Testing

    @Suite("Faults of the kernel: the file store")
    struct FileStoreFaultTests {
        private let place: FileStorePlace

        init() throws {
            place = try FileStorePlace()
        }

        @Test(
            "a store that cannot be made says why and what to do, leaves nothing, and can be made later",
            arguments: [
                ("fallocate:ENOSPC", "make room there"), ("fallocate:EDQUOT", "make room there"),
                ("fallocate:ENOSPC:1@1", "make room there"), ("fallocate:EIO", "correct that"),
                ("mkdir:ENOSPC", "make room there"), ("open:EMFILE", "correct that"),
                ("open[claims-]:ENOSPC", "make room there"), ("flock:EIO", "correct that"),
                ("opendir:EMFILE", "correct that"), ("fstat:EIO", "correct that"),
            ])
        func opening(rules: String, hint: String) throws {
            StandIn.use(try FaultPlan(text: rules)) {
                let error = #expect(throws: StoreOpenError.self) { try place.open() }
                #expect(error?.description.contains(hint) == true, "\(String(describing: error))")
            }
            let names = (try? place.folder.names()) ?? []
            if names.contains("replay") {
                let left = try StandIn.suspended { try Syscalls.names(in: place.directory) }
                #expect(left.isEmpty)
            }
            let store = try place.open()
            #expect(store.claim(place.claim(1)) == .claimed)
            #expect(store.claim(place.claim(1)) == .reused)
        }

        @Test(
            "a disk that fills up while claims are made changes nothing: their space was taken before",
            arguments: [
                "fallocate:ENOSPC", "write:ENOSPC", "ftruncate:ENOSPC", "stat:EIO", "fstat:EIO",
                "open:EMFILE",
            ])
        func claiming(rules: String) throws {
            let store = try place.open()
            StandIn.use(try FaultPlan(text: rules)) {
                for number in 0..<200 as Range<UInt64> {
                    #expect(store.claim(place.claim(number)) == .claimed)
                    #expect(store.claim(place.claim(number)) == .reused)
                }
                _ = store.purge(at: place.now)
                #expect(store.claim(place.claim(1)) == .reused)
            }
            #expect(store.statistics.entries == 200)
        }

        @Test("interrupted calls are made again")
        func interrupted() throws {
            let rules = ["open", "mkdir", "fallocate", "flock", "fstat", "stat", "read"].map {
                FaultRule($0, .interrupted, period: 2)
            }
            try StandIn.use(FaultPlan(rules)) {
                let store = try place.open()
                #expect(store.claim(place.claim(1)) == .claimed)
            }
        }
    }
#endif
