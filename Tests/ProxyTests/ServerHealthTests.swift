import Configuration
import Reactor
import Testing

@testable import Proxy

@Suite("Health of an upstream server")
struct ServerHealthTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func after(_ seconds: Double) -> MonotonicInstant {
        start.advanced(by: .milliseconds(Int64(seconds * 1000)))
    }

    // MARK: Checks

    @Test(
        "a verdict changes after so many checks in a row, and not before",
        arguments: [
            ("", true), ("f", true), ("ff", true), ("fff", false), ("ffpfff", false),
            ("ffpffpff", true), ("fffp", false), ("fffpp", true), ("fffpfp", false),
            ("fffpfpp", true), ("fffppff", true), ("fffppfff", false),
        ])
    func verdict(checks: String, isHealthy: Bool) {
        var verdict = HealthVerdict(HealthCheck(path: "/"))
        var isReported = true
        for check in checks where verdict.note(passed: check == "p") { isReported.toggle() }
        #expect(verdict.isHealthy == isHealthy)
        #expect(isReported == isHealthy, "each change is reported once")
    }

    @Test("a server that its checks find again gets its share back little by little")
    func slowStart() {
        var health = ServerHealth()
        let span = Duration.seconds(10).nanoseconds
        #expect(health.share(at: start, slowStart: span) == 1)
        health.adopt(passesChecks: false, at: start)
        #expect(!health.isAvailable(at: start))
        health.adopt(passesChecks: true, at: after(20))
        #expect(health.isAvailable(at: after(20)))
        #expect(health.share(at: after(20), slowStart: span) == 0.1)
        #expect(health.share(at: after(25), slowStart: span) == 0.5)
        #expect(health.share(at: after(30), slowStart: span) == 1)
        #expect(health.share(at: after(20), slowStart: 0) == 1)
        // The same verdict once more is no return.
        health.adopt(passesChecks: true, at: after(40))
        #expect(health.share(at: after(40), slowStart: span) == 1)
    }

    // MARK: Ejection

    @Test("failures in a row eject, and any answer starts the row anew")
    func failures() {
        var settings = Ejection()
        settings.failures = 3
        var health = ServerHealth()
        var outcomes = (0..<2).map { _ in health.failed(at: start, settings) }
        outcomes.append(health.answered(isError: true, at: start, settings))
        outcomes += (0..<3).map { _ in health.failed(at: start, settings) }
        #expect(outcomes == [false, false, false, false, false, true])
        settings.failures = 0
        outcomes = (0..<100).map { _ in health.failed(at: start, settings) }
        #expect(!outcomes.contains(true))
    }

    @Test("a share of errors ejects when there are enough answers to speak of a share")
    func errorShare() {
        var settings = Ejection()
        settings.errorShare = 50
        var health = ServerHealth()
        var due: [Bool] = []
        for index in 0..<20 {
            due.append(health.answered(isError: index % 2 == 0, at: start, settings))
        }
        #expect(due == Array(repeating: false, count: 19) + [true])
        let isDueLater = health.answered(isError: true, at: after(11), settings)
        #expect(!isDueLater, "another window, one answer")
        settings.errorShare = nil
        due = (0..<50).map { _ in health.answered(isError: true, at: after(30), settings) }
        #expect(!due.contains(true))
    }

    @Test("each time out is twice as long as the one before, up to a limit, and calm shortens it")
    func growingTimes() {
        var settings = Ejection()
        settings.time = .seconds(10)
        settings.longest = .seconds(60)
        var health = ServerHealth()
        var now = start
        var times: [Duration] = []
        for _ in 0..<5 {
            let time = health.eject(at: now, settings, jitter: 0.5)
            #expect(!health.isAvailable(at: now))
            times.append(time)
            now = now.advanced(by: time)
            #expect(health.isAvailable(at: now))
        }
        #expect(times == [10, 20, 40, 60, 60].map { .seconds($0) })
        now = now.advanced(by: .seconds(1000))
        times = [health.eject(at: now, settings, jitter: 0.5)]
        times.append(health.eject(at: now.advanced(by: .seconds(10)), settings, jitter: 0))
        #expect(times == [.seconds(10), .seconds(18)])
    }

    // MARK: The log

    @Test("the log says once that a server fails, and once that it works again")
    func notice() {
        var notice = OutageNotice()
        var said = [notice.worked(at: start)]
        said += (0..<3).map { _ in notice.failed(at: start) }
        #expect(said == [false, true, false, false])
        // It may fail every other time.
        said = [notice.worked(at: after(1)), notice.failed(at: after(2))]
        #expect(said == [false, false])
        said = [notice.worked(at: after(7.5)), notice.worked(at: after(8))]
        said.append(notice.failed(at: after(9)))
        #expect(said == [true, false, true])
    }
}
