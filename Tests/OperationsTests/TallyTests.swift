import Attestation
import Policy
import TestKit
import Testing

@testable import Operations

@Suite("Tallies")
struct TallyTests {
    @Test("keep the sums of each key, however many there are")
    func growth() {
        var generator = SeededGenerator(seed: 9)
        let table = TallyTable()
        var expected: [UInt64: [UInt64]] = [:]
        let keys = (0..<3000).map { _ in UInt64.random(in: 1...UInt64.max, using: &generator) }
        for turn in 0..<9000 {
            let key = keys[turn % 1000 + (turn < 3000 ? 0 : turn % 2000)]
            let sums = (0..<3).map { _ in UInt64.random(in: 0...9, using: &generator) }
            table.add(key, sums[0], sums[1], sums[2])
            expected[key] = zip(expected[key] ?? [0, 0, 0], sums).map(+)
        }
        let found = table.all.map { ($0.key, [$0.sums.0, $0.sums.1, $0.sums.2]) }
        #expect(found.count == expected.count)
        #expect(Dictionary(found) { first, _ in first } == expected)
    }

    @Test("wrap around instead of trapping")
    func overflow() {
        let table = TallyTable()
        table.add(1, .max, 1, 0)
        table.add(1, 3, 1, 0)
        #expect(table.all.map(\.sums.0) == [2])
    }

    @Test(
        "give back each label of an outcome",
        arguments: [0, 1, 9999, RequestOutcome.highestNumber],
        [Verdict?.none, .verified, .invalid(.lifetime), .exempt])
    func outcome(_ number: UInt32, _ verdict: Verdict?) {
        for action in [nil] + Action.allCases.map(Optional.init) {
            for (status, statusClass) in [(0, 0), (101, 1), (204, 2), (599, 5), (65_535, 5)] {
                let outcome = RequestOutcome(
                    route: number, app: RequestOutcome.highestNumber - number, verdict: verdict,
                    action: action, status: UInt16(status), microseconds: 30_000_001)
                let read = RequestOutcome(key: outcome.key)
                #expect(read.route == Int(number))
                #expect(read.app == Int(RequestOutcome.highestNumber - number))
                #expect(read.row == VerdictLabels.row(of: verdict))
                #expect(read.column == VerdictLabels.column(of: action))
                #expect(read.statusClass == statusClass)
                #expect(read.bucket == Histogram.Scale.requests.bounds.count)
                #expect(outcome.key != 0)
            }
        }
    }

    @Test("take numbers beyond the highest for the highest, and keep rare sums apart")
    func edges() {
        let beyond = RequestOutcome(
            route: .max, app: .max, verdict: .exempt, action: .reject, status: 500, microseconds: 0)
        #expect(beyond.route == Int(RequestOutcome.highestNumber))
        #expect(beyond.app == Int(RequestOutcome.highestNumber))
        let rare = RequestOutcome.rareSums(ofRoute: 7)
        #expect(rare.row == nil)
        #expect(rare.route == 7)
        #expect(VerdictLabels.rows.count < 0x1F)
    }
}
