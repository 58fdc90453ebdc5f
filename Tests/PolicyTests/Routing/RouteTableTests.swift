import Policy
import Testing

@Suite("Route table: the most specific route serves")
struct RouteTableTests {
    @Test("host beats no host, exact beats wildcard, longer wildcard beats shorter")
    func hosts() throws {
        let table = try RouteTable([
            route("any", "/v1/x"), route("com", "/*", hosts: ["*.com"]),
            route("wide", "/*", hosts: ["*.example.com"]),
            route("narrow", "/*", hosts: ["*.api.example.com"]),
            route("exact", "/*", hosts: ["a.api.example.com"]),
        ])
        #expect(table.name("GET", "a.api.example.com", "/v1/x") == "exact")
        #expect(table.name("GET", "b.api.example.com", "/v1/x") == "narrow")
        #expect(table.name("GET", "c.b.api.example.com", "/v1/x") == "narrow")
        #expect(table.name("GET", "api.example.com", "/v1/x") == "wide")
        #expect(table.name("GET", "example.com", "/v1/x") == "com")
        #expect(table.name("GET", "com", "/v1/x") == "any")
        #expect(table.name("GET", "", "/v1/x") == "any")
        #expect(table.name("GET", "example.org", "/v1/y") == nil)
    }

    @Test("exact path beats prefix, longer prefix beats shorter, methods beat none")
    func paths() throws {
        let table = try RouteTable([
            route("root", "/*"), route("v1", "/v1/*"), route("transfers", "/v1/transfers"),
            route("post", "/v1/transfers", methods: ["POST"]), route("below", "/v1/transfers/*"),
            route("slash", "/v1/transfers/"), route("home", "/"),
        ])
        #expect(table.name("GET", "", "/v1/transfers") == "transfers")
        #expect(table.name("POST", "", "/v1/transfers") == "post")
        #expect(table.name("POST", "", "/v1/transfers/") == "slash")
        #expect(table.name("GET", "", "/v1/transfers/7/lines") == "below")
        #expect(table.name("GET", "", "/v1/accounts") == "v1")
        #expect(table.name("GET", "", "/v1/") == "v1")
        #expect(table.name("GET", "", "/v1") == "v1")
        #expect(table.name("GET", "", "/v11") == "root")
        #expect(table.name("GET", "", "/") == "home")
        #expect(table.name("GET", "", "/x") == "root")
    }

    @Test(
        "a route without the method is passed over for less specific ones, hosts included"
    )
    func methodFallback() throws {
        let table = try RouteTable([
            route("post", "/v1/pay", hosts: ["a.example"], methods: ["POST"]),
            route("put", "/v1/*", hosts: ["*.example"], methods: ["PUT"]),
            route("delete", "/*", methods: ["DELETE"]), route("rest", "/*"),
        ])
        #expect(table.name("POST", "a.example", "/v1/pay") == "post")
        #expect(table.name("PUT", "a.example", "/v1/pay") == "put")
        #expect(table.name("DELETE", "a.example", "/v1/pay") == "delete")
        #expect(table.name("GET", "a.example", "/v1/pay") == "rest")
        #expect(table.name("POST", "b.example", "/v1/pay") == "rest")
    }

    @Test(
        "P6: no route is no match, never a fall-through",
        arguments: ["/v2", "/v", "/v1x", "*", "", "v1"])
    func noRoute(path: String) throws {
        let table = try RouteTable([
            route("v1", "/v1/*"), route("other", "/*", hosts: ["a.example"]),
        ])
        #expect(table.name("GET", "b.example", path) == nil)
    }

    @Test("an empty table matches nothing")
    func empty() throws {
        #expect(try RouteTable([]).name("GET", "a.example", "/") == nil)
    }

    @Test("routes that tie are all named, lower index first")
    func conflicts() {
        let error = #expect(throws: RouteConflict.self) {
            try RouteTable([
                route("a", "/x", methods: ["GET", "POST"]), route("b", "/x", methods: ["POST"]),
                route("c", "/x"), route("d", "/y/*"), route("e", "/y/*"), route("f", "/y/*"),
                route("g", "/y"), route("h", "/z", hosts: ["p.example", "q.example"]),
                route("i", "/z", hosts: ["q.example", "p.example"]),
                route("j", "/z", hosts: ["*.example"]),
            ])
        }
        #expect(
            error?.pairs.map { [$0.0, $0.1] } == [[0, 1], [3, 4], [3, 5], [7, 8]])
    }

    @Test("a route may name a host or a method twice")
    func repetition() throws {
        let table = try RouteTable([
            route("a", "/x", hosts: ["p.example", "p.example"], methods: ["GET", "GET", "HEAD"])
        ])
        #expect(table.name("GET", "p.example", "/x") == "a")
    }

    @Test("each byte of a name counts, however long it is", arguments: 1...40)
    func names(_ count: Int) throws {
        let name = Array("abcdefghijklmnopqrstuvwxyz0123456789-._~".utf8.prefix(count))
        let text = String(decoding: name, as: UTF8.self)
        let table = try RouteTable([route("it", "/\(text)"), route("zero", "/other")])
        #expect(table.name("GET", "", "/\(text)") == "it")
        #expect(table.name("GET", "", "/\(text)\0") == nil)
        #expect(table.name("GET", "", "/\(text)a") == nil)
        #expect(table.name("GET", "", "/\(text.dropLast())") == nil)
        for place in name.indices {
            var other = name
            other[place] ^= 0x10
            #expect(table.name("GET", "", "/\(String(decoding: other, as: UTF8.self))") == nil)
        }
    }
}
