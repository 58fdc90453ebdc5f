import Configuration
import Operations
import Proxy
import Reactor
import Testing

@testable import portcullis

@Suite("O11: what one process tells the next")
struct HandoverTests {
    private static let least = "process 42\nchannel 9"

    @Test("everything arrives as it was said, whatever names and paths hold")
    func roundTrip() throws {
        var said = Handover(
            process: 42, channel: 9, deadline: MonotonicInstant(nanoseconds: 1_234_567_890_123))
        said.sockets = [
            PassedSocket(number: 5, origin: .opened(.tcp(host: "::1", port: 8080))),
            PassedSocket(number: 6, origin: .opened(.tcp(host: "::1", port: 8080))),
            PassedSocket(number: 7, origin: .opened(.unix(path: "/run/a b\n%41é.sock"))),
            PassedSocket(number: 8, origin: .manager(name: "listener-1")),
            PassedSocket(number: 10, origin: .manager(name: "")),
        ]
        said.claimStore = "file: /var/lib/portcullis/claims"
        said.usableProjects = ["production", "with space"]
        said.unhealthy = [.init(upstream: "api", label: "127.0.0.1:9000")]
        said.names = [
            .tcp(host: "api.internal", port: 80): [
                .tcp(host: "10.0.0.1", port: 80), .tcp(host: "::1", port: 80),
            ]
        ]
        said.drains = [
            .init(upstream: "api", server: "[::1]:9000", by: "127.0.0.1", since: 1_700_000_000)
        ]
        said.upgrades = .init(succeeded: 3, failed: 2)
        var heard = try #require(Handover(said.text))
        // Those of one address keep their order; addresses have none.
        heard.sockets.sort { $0.number < $1.number }
        #expect(heard == said)
    }

    @Test("what a later version says besides is passed over")
    func unknown() {
        #expect(Handover(Self.least + "\ncolour blue\nkeys") == Handover(Self.least))
    }

    @Test(
        "what no process of this program says is refused",
        arguments: [
            "", "\n", "process 42", "channel 9", "process -1\nchannel 9", "process x\nchannel 9",
            "process 42\nchannel -1", "process 99999999999999999999\nchannel 9",
            least + "\nopened 127.0.0.1:80 2", least + "\nopened 127.0.0.1:80 x",
            least + "\nopened nowhere 5", least + "\nmanager a -5", least + "\ndeadline soon",
        ])
    func refused(text: String) {
        #expect(Handover(text) == nil)
    }

    @Test("a listener with a socket for each of 256 loops fits into the environment")
    func large() {
        var handover = Handover(process: 1, channel: 9, deadline: .never)
        for listener in 0..<16 {
            let address = ListenAddress.tcp(host: "127.0.0.1", port: UInt16(8000 + listener))
            handover.sockets += (0..<256).map {
                PassedSocket(number: Int32(1000 + listener * 256 + $0), origin: .opened(address))
            }
        }
        #expect(handover.text.utf8.count < 64 << 10)
    }

    @Test("what does not fit into one variable goes on in the next")
    func split() {
        var handover = Handover(process: 1, channel: 9, deadline: .never)
        for number in 0..<10_000 {
            handover.names[.tcp(host: "host-\(number).example", port: 80)] = [
                .tcp(host: "10.0.0.1", port: 80)
            ]
        }
        let variables = handover.variables
        #expect(variables.count > 3)
        #expect(variables.allSatisfy { $0.utf8.count < 128 << 10 })
        #expect(variables[1].hasPrefix("PORTCULLIS_HANDOVER_1="))
        let values = variables.map { $0.drop { $0 != "=" }.dropFirst() }
        #expect(Handover(values.joined()) == handover)
    }

    @Test(
        "the file that was replaced has the kernel's note behind its name",
        arguments: [
            ("/usr/bin/portcullis (deleted)", "/usr/bin/portcullis"),
            ("/usr/bin/portcullis", "/usr/bin/portcullis"), (" (deleted)", ""),
        ])
    func deleted(link: String, path: String) {
        #expect(Program.withoutDeleted(link) == path)
    }

    @Test(
        "a name that does not lead to the file that runs is not believed",
        arguments: ["/bin/true", "nonsense", "", "./portcullis", "../../bin/true"])
    func name(name: String) throws {
        let file = try #require(Syscalls.target(ofLink: "/proc/self/exe"))
        let arguments = [name, "run"]
        #expect(Program.current(arguments)?.path == Program.withoutDeleted(file))
        #expect(Program.current(arguments)?.arguments == arguments)
    }
}
