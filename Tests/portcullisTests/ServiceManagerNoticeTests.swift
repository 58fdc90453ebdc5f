import Reactor
import Testing

@testable import portcullis

@Suite("O10: what the service manager is told")
struct ServiceManagerNoticeTests {
    private func notice(_ environment: [String: String]) -> ServiceManagerNotice {
        ServiceManagerNotice(process: 42) { environment[$0] }
    }

    @Test("a message is lines of fields")
    func lines() {
        #expect(
            ServiceManagerNotice.text(.ready(status: "serving")) == "READY=1\nSTATUS=serving")
        #expect(ServiceManagerNotice.text(.alive) == "WATCHDOG=1")
        #expect(
            ServiceManagerNotice.text(.stopping(status: "draining", extension: .seconds(10)))
                == "STOPPING=1\nEXTEND_TIMEOUT_USEC=10000000\nSTATUS=draining")
    }

    @Test("a reload carries the instant of its beginning, in microseconds")
    func reloading() {
        let text = ServiceManagerNotice.text(
            .reloading(at: MonotonicInstant(nanoseconds: 5_000_001_999)))
        #expect(text.hasPrefix("RELOADING=1\nMONOTONIC_USEC=5000001\n"))
    }

    @Test(
        "a status cannot begin another field",
        arguments: ["a\nREADY=1", "a\r\nMAINPID=1", "a\u{0}b", "a\u{85}b"])
    func injection(status: String) {
        let text = ServiceManagerNotice.text(.status(status))
        #expect(text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        #expect(text.hasPrefix("STATUS=a "))
    }

    @Test("a long status is cut")
    func long() {
        let text = ServiceManagerNotice.text(.status(String(repeating: "é", count: 5000)))
        #expect(text == "STATUS=" + String(repeating: "é", count: 400))
    }

    @Test("the watchdog is fed twice in its limit")
    func watchdog() {
        #expect(notice(["WATCHDOG_USEC": "30000000"]).watchdogInterval == .seconds(15))
        #expect(
            notice(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"]).watchdogInterval
                == .seconds(15))
    }

    @Test(
        "there is no watchdog that is not meant",
        arguments: [
            [:], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "-5"], ["WATCHDOG_USEC": "soon"],
            ["WATCHDOG_USEC": "99999999999999999999"], ["WATCHDOG_USEC": ""],
            ["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "43"],
            ["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "x"],
        ])
    func noWatchdog(environment: [String: String]) {
        #expect(notice(environment).watchdogInterval == nil)
    }

    @Test(
        "where nobody listens, sending does nothing",
        arguments: [
            [:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "@"],
            ["NOTIFY_SOCKET": String(repeating: "x", count: 200)],
        ])
    func nobody(environment: [String: String]) throws {
        try notice(environment).send(.alive)
    }

    @Test("a socket that is not there is said")
    func notThere() {
        let notice = notice(["NOTIFY_SOCKET": "/nonexistent/notify"])
        #expect(throws: Errno.noSuchFile) { try notice.send(.alive) }
    }
}
