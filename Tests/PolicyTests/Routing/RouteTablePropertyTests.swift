import Policy
import TestKit
import Testing

@Suite("Route table against the rules written plainly")
struct RouteTablePropertyTests {
    @Test("P1: finds what the plain rules find, for random tables and requests")
    func agreesWithOracle() throws {
        var reasons: [RouteMatch.Reason?: Int] = [:]
        for seed in 0..<15 {
            var generator = SeededGenerator(seed: UInt64(seed))
            let oracle = try RouteOracle(routes: randomRoutes(&generator))
            let table = try RouteTable(oracle.routes)
            for _ in 0..<400 {
                let method = Self.requestMethods.pick(using: &generator)
                let host = Self.requestHosts.pick(using: &generator)
                let path = randomPath(Self.requestSegments, &generator)
                let expected = oracle.match(method, host, path)
                #expect(
                    table.match(method, host, path) == expected,
                    "seed \(seed): \(method) \(host) \(path)")
                reasons[expected?.reason, default: 0] += 1
            }
        }
        // The comparison says little about a rule that no request met.
        for reason in RouteMatch.Reason.allCases { #expect(reasons[reason, default: 0] > 50) }
        #expect(reasons[nil, default: 0] > 100)
    }

    @Test("ten thousand routes are all found, and nothing else")
    func many() throws {
        let table = try RouteTable(
            (0..<10_000).map { index in
                route(
                    "r\(index)",
                    "/v\(index % 7)/res\(index)" + (index.isMultiple(of: 2) ? "/*" : ""),
                    hosts: index.isMultiple(of: 3) ? ["h\(index).example"] : [])
            })
        for index in 0..<10_000 {
            let host = index.isMultiple(of: 3) ? "h\(index).example" : "other.example"
            let path = "/v\(index % 7)/res\(index)"
            #expect(table.name("GET", host, path) == "r\(index)")
            let below = index.isMultiple(of: 2) ? "r\(index)" : nil
            #expect(table.name("GET", host, path + "/x/y") == below)
            #expect(table.name("GET", host, path + "x") == nil)
        }
    }

    /// 1 to 40 routes of which no two tie.
    private func randomRoutes(_ generator: inout SeededGenerator) throws -> [Route] {
        var routes: [Route] = []
        for index in 0..<Int.random(in: 1...40, using: &generator) {
            let next = randomRoute(index, &generator)
            if (try? RouteTable(routes + [next])) != nil { routes.append(next) }
        }
        return routes
    }

    private func randomRoute(_ index: Int, _ generator: inout SeededGenerator) -> Route {
        var path = randomPath(Self.routeSegments, &generator)
        if Bool.random(using: &generator) { path = path == "/" ? "/*" : path + "/*" }
        var made = route(
            "r\(index)", path, mode: Route.Mode.allCases.pick(using: &generator))
        made.hosts = Self.routeHosts.pick(using: &generator)
        made.methods = Self.routeMethods.pick(using: &generator)
        made.enforcedShare = [25_000_000, 100_000_000].pick(using: &generator)
        made.replay = Route.Mode.allCases.pick(using: &generator)
        made.whenUnavailable = [nil, .reject, .allow].pick(using: &generator)
        made.apps = [nil, [AppIndex(project: 0, app: 0)]].pick(using: &generator)
        return made
    }

    private func randomPath(_ segments: [String], _ generator: inout SeededGenerator) -> String {
        let count = Int.random(in: 0...4, using: &generator)
        return "/"
            + (0..<count).map { _ in segments.pick(using: &generator) }.joined(separator: "/")
    }

    private static let routeHosts = [
        [], [], ["a.example"], ["*.example"], ["*.b.example"], ["a.b.example", "a.example"],
    ]
    private static let requestHosts = [
        "", "example", "a.example", "b.example", "a.b.example", "c.b.example", "other",
    ]
    private static let routeMethods = [
        [], [], ["GET"], ["POST"], ["GET", "POST"], ["PROPFIND"], ["POST", "PROPFIND"],
    ]
    private static let requestMethods = [
        "GET", "HEAD", "POST", "PUT", "PROPFIND", "FOO", "post",
    ]
    private static let routeSegments = ["a", "b", "a", "b", "Cc", "longer-segment", "cc"]
    private static let requestSegments = [
        "a", "b", "a", "b", "A", "b;x=1", "", "Cc", "cc", "CC", "longer-segment", "LONGER-segment",
        ";",
    ]
}
