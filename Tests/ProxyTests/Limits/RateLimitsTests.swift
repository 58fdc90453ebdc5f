import Configuration
import Policy
import Testing

@testable import Proxy

@Suite("Limits across configurations")
struct RateLimitsTests {
    private static func configuration(
        _ limit: RateLimit?, name: String = "all", verifications: Int = 500
    ) throws -> Configuration {
        var route = Route(name: name, path: "/*", upstream: 0)
        route.rateLimit = limit
        var configuration = Configuration(routes: try RouteTable([route]))
        configuration.server.verifications.perSecond = verifications
        return configuration
    }

    private static var monitored: RateLimit {
        var limit = RateLimit(requests: 10, seconds: 60)
        limit.mode = .monitor
        return limit
    }

    @Test(
        "a reload keeps the buckets of a limit that is the same",
        arguments: [
            (RateLimit(requests: 10, seconds: 60), "all", true), (monitored, "all", true),
            (RateLimit(requests: 10, seconds: 60), "other", false),
            (RateLimit(requests: 11, seconds: 60), "all", false),
            (RateLimit(requests: 10, seconds: 61), "all", false),
            (RateLimit(requests: 10, seconds: 60, burst: 11), "all", false),
            (RateLimit(requests: 10, seconds: 60, key: .app), "all", false),
        ])
    func reload(limit: RateLimit, name: String, isKept: Bool) throws {
        let before = RateLimits(
            try Self.configuration(RateLimit(requests: 10, seconds: 60)), previous: nil)
        let after = RateLimits(try Self.configuration(limit, name: name), previous: before)
        let (old, new) = try (#require(before.routes[0]), #require(after.routes[0]))
        #expect((old.table === new.table) == isKept)
        #expect(new.limit == limit)
    }

    @Test("the limit on verifications goes on while it is the same")
    func verifications() throws {
        let before = RateLimits(try Self.configuration(nil), previous: nil)
        let same = RateLimits(try Self.configuration(nil), previous: before)
        let other = RateLimits(try Self.configuration(nil, verifications: 9), previous: before)
        let none = RateLimits(try Self.configuration(nil, verifications: 0), previous: before)
        #expect(before.verifications != nil && same.verifications === before.verifications)
        #expect(other.verifications != nil && other.verifications !== before.verifications)
        #expect(none.verifications == nil)
        #expect(before.status.routes.isEmpty && none.status.verifications == nil)
    }

    @Test("housekeeping gives up the buckets of every limit that are full again")
    func housekeeping() throws {
        let limits = RateLimits(
            try Self.configuration(RateLimit(requests: 10, seconds: 60)), previous: nil)
        let tables = try [#require(limits.routes[0]).table, #require(limits.verifications)]
        for table in tables { #expect(table.charge(1, at: 0) { 1 } == nil) }
        for _ in 0..<32 { limits.purge(at: 1) }
        #expect(tables.map(\.entries) == [1, 1])
        for _ in 0..<32 { limits.purge(at: 60_000_000_000) }
        #expect(tables.map(\.entries) == [0, 0])
    }

    @Test("a served configuration hands its limits on to the next one")
    func handingOn() throws {
        let configuration = try Self.configuration(RateLimit(requests: 10, seconds: 60))
        let before = ServingConfiguration(configuration, addresses: [])
        let after = ServingConfiguration(configuration, addresses: [], previous: before)
        #expect(before.limits.routes[0]?.table === after.limits.routes[0]?.table)
        #expect(after.details(of: after.routes[0]).limit === after.limits.routes[0])
    }

    @Test("a limit by app comes behind the token, every other one before it")
    func steps() throws {
        func step(_ limit: RateLimit?) throws -> ServedRoute.LimitStep {
            ServingConfiguration(try Self.configuration(limit), addresses: []).routes[0].limitStep
        }
        #expect(try step(nil) == .none)
        #expect(try step(RateLimit(requests: 1, seconds: 1)) == .beforeToken)
        #expect(try step(RateLimit(requests: 1, seconds: 1, key: .field("x"))) == .beforeToken)
        #expect(try step(RateLimit(requests: 1, seconds: 1, key: .app)) == .afterToken)
    }
}
