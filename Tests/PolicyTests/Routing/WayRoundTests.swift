import Policy
import Testing

/// Spellings that a backend may take for something else must not get a weaker route.
@Suite("No way round a stricter route")
struct WayRoundTests {
    private func shop() throws -> RouteTable {
        try RouteTable([
            route("pay", "/pay", methods: ["POST"], mode: .enforce), route("rest", "/*"),
            route("admin", "/admin/*", mode: .enforce), route("users", "/v1/Users", mode: .enforce),
        ])
    }

    @Test(
        "P8: an unknown method gets the strictest route that any method of this path gets",
        arguments: ["post", "FOO", "Post", "PROPFIND", "POST ", ""])
    func unknownMethod(method: String) throws {
        let table = try shop()
        #expect(table.match(method, "", "/pay") == RouteMatch(route: 0, reason: .unknownMethod))
        #expect(table.name(method, "", "/other") == "rest")
    }

    @Test(
        "P8: a known method that the stricter route does not name goes on",
        arguments: ["GET", "PUT"])
    func knownMethod(method: String) throws {
        #expect(try shop().match(method, "", "/pay") == RouteMatch(route: 1, reason: .mostSpecific))
    }

    @Test("P8: a method that some route names is known where it is named, unknown elsewhere")
    func namedMethod() throws {
        let table = try RouteTable([
            route("pay", "/dav/pay", methods: ["POST"], mode: .enforce),
            route("dav", "/dav/*", methods: ["PROPFIND"]), route("rest", "/*"),
            route("buy", "/buy", methods: ["POST"], mode: .enforce),
        ])
        #expect(table.name("PROPFIND", "", "/dav/pay") == "dav")
        #expect(table.name("propfind", "", "/dav/pay") == "pay")
        #expect(table.name("PROPFIND", "", "/buy") == "buy")
    }

    @Test("P8: a route without methods shadows stricter ones for every method")
    func shadowed() throws {
        let table = try RouteTable([
            route("public", "/public/*"), route("rest", "/*", mode: .enforce),
        ])
        #expect(table.name("FOO", "", "/public/x") == "public")
        #expect(table.name("GET", "", "/public/x") == "public")
    }

    @Test("P8: an unknown method has no route where no route takes every method")
    func noFallback() throws {
        let table = try RouteTable([route("pay", "/pay", methods: ["POST"])])
        #expect(table.match("FOO", "", "/pay") == nil)
    }

    @Test("P8: what a more specific host enforces counts for an unknown method")
    func unknownMethodAcrossHosts() throws {
        let table = try RouteTable([
            route("pay", "/pay", hosts: ["a.example"], methods: ["POST"], mode: .enforce),
            route("rest", "/*"),
        ])
        #expect(table.name("FOO", "a.example", "/pay") == "pay")
        #expect(table.name("FOO", "b.example", "/pay") == "rest")
    }

    @Test("P8: HEAD follows GET, and naming HEAD changes nothing")
    func head() throws {
        let table = try RouteTable([
            route("get", "/x", methods: ["GET"], mode: .enforce),
            route("head", "/x", methods: ["HEAD"], mode: .off), route("rest", "/*"),
        ])
        #expect(table.name("HEAD", "", "/x") == "get")
        #expect(table.name("HEAD", "", "/y") == "rest")
        #expect(table.name("head", "", "/x") == "get")
    }

    @Test(
        "P2: a path that looks like a stricter route's gets that route",
        arguments: [
            ("/ADMIN", "admin"), ("/Admin/x", "admin"), ("/admin/", "admin"), ("//admin", "admin"),
            ("/admin;x=1", "admin"), ("/admin;x=1/y", "admin"), ("/;x/admin", "admin"),
            ("/admin//x", "admin"), ("/v1/users", "users"), ("/v1/Users/", "users"),
            ("/V1//USERS;v=2", "users"), ("/v1/Users/7", "rest"), ("/administrator", "rest"),
            ("/x/admin", "rest"), ("/admi", "rest"), ("/PAY/", "rest"),
            ("/admin%3Bx=1", "admin"), ("/admin%3B/y", "admin"), ("/%3Bx/ADMIN", "admin"),
            ("/admin%3", "rest"), ("/admin%3A", "rest"),
        ])
    func lookAlike(path: String, name: String) throws {
        #expect(try shop().name("GET", "", path) == name)
    }

    @Test("P2: looking like a stricter route also counts for its methods")
    func lookAlikeMethods() throws {
        let table = try shop()
        #expect(table.match("POST", "", "/PAY/") == RouteMatch(route: 0, reason: .lookAlike))
        #expect(table.match("post", "", "/PAY/") == RouteMatch(route: 0, reason: .lookAlike))
        #expect(table.match("PUT", "", "/PAY/") == RouteMatch(route: 1, reason: .mostSpecific))
    }

    @Test(
        "P2: what is written for the very path stands, and a laxer look-alike changes nothing"
    )
    func written() throws {
        let table = try RouteTable([
            route("small", "/v1/users", mode: .enforce), route("capital", "/v1/Users"),
            route("below", "/Docs/*"), route("docs", "/docs/*", mode: .enforce),
            route("lax", "/open/*", mode: .off), route("rest", "/*"),
        ])
        #expect(table.name("GET", "", "/v1/Users") == "capital")
        #expect(table.name("GET", "", "/v1/USERS") == "small")
        #expect(table.name("GET", "", "/Docs/x") == "below")
        #expect(table.name("GET", "", "/DOCS/x") == "docs")
        #expect(table.name("GET", "", "/OPEN/x") == "rest")
    }

    @Test("P2: a path that looks like a stricter route of a more specific host gets that route")
    func lookAlikeHost() throws {
        let table = try RouteTable([
            route("admin", "/admin", hosts: ["a.example"], mode: .enforce), route("rest", "/*"),
        ])
        #expect(table.name("GET", "a.example", "/admin/") == "admin")
        #expect(table.name("GET", "b.example", "/admin/") == "rest")
    }

    @Test("stricter is: the mode, then the enforced share, then fewer apps")
    func strictness() throws {
        var quarter = route("quarter", "/x", methods: ["PUT"], mode: .enforce)
        quarter.enforcedShare = 25_000_000
        let full = route("full", "/x", methods: ["POST"], mode: .enforce)
        var narrow = route("narrow", "/x", methods: ["PATCH"], mode: .enforce)
        narrow.apps = [AppIndex(project: 0, app: 0)]
        var monitored = route("monitored", "/x", methods: ["GET"])
        monitored.apps = [AppIndex(project: 0, app: 0)]
        let rest = route("rest", "/*")
        #expect(try RouteTable([rest, monitored]).name("FOO", "", "/x") == "monitored")
        #expect(try RouteTable([rest, monitored, quarter]).name("FOO", "", "/x") == "quarter")
        #expect(try RouteTable([rest, quarter, full]).name("FOO", "", "/x") == "full")
        #expect(try RouteTable([rest, full, narrow, quarter]).name("FOO", "", "/x") == "narrow")
    }

    @Test("P2, P8: a route where a token is good for one use is stricter than one without")
    func strictnessOfReplay() throws {
        func rule(
            _ name: String, _ method: String, _ replay: Route.Mode,
            _ whenUnavailable: WhenUnavailable? = nil
        ) -> Route {
            var rule = route(name, "/x", methods: [method], mode: .enforce)
            rule.replay = replay
            rule.whenUnavailable = whenUnavailable
            return rule
        }
        let rest = route("rest", "/*")
        var narrow = rule("narrow", "GET", .off)
        narrow.apps = [AppIndex(project: 0, app: 0)]
        let monitored = rule("monitored", "POST", .monitor)
        let open = rule("open", "PUT", .enforce, .allow)
        let enforced = rule("enforced", "PATCH", .enforce)
        let closed = rule("closed", "DELETE", .enforce, .reject)
        let ascending = [narrow, monitored, open, enforced, closed]
        for count in 1...ascending.count {
            let table = try RouteTable([rest] + ascending.prefix(count).shuffled())
            #expect(table.name("FOO", "", "/x") == ascending[count - 1].name)
        }
        // The written path of a laxer route looks like that of a stricter one.
        var once = route("once", "/Pay", mode: .enforce)
        once.replay = .enforce
        let table = try RouteTable([route("often", "/*", mode: .enforce), once])
        #expect(table.match("GET", "", "/pay/") == RouteMatch(route: 1, reason: .lookAlike))
    }

    @Test("P8: replay beyond app_check makes no route stricter, as it rejects nothing")
    func idleReplay() throws {
        var idle = route("idle", "/x", methods: ["GET"], mode: .monitor)
        idle.replay = .enforce
        var narrow = route("narrow", "/x", methods: ["POST"], mode: .monitor)
        narrow.replay = .monitor
        narrow.apps = [AppIndex(project: 0, app: 0)]
        let table = try RouteTable([route("rest", "/*"), idle, narrow])
        #expect(table.name("FOO", "", "/x") == "narrow")
    }
}
