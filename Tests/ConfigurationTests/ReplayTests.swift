import Policy
import TestKit
import Testing

@testable import Configuration

@Suite("Replay protection in a configuration")
struct ReplayTests {
    private func load(
        replay: String, route: String = "app_check = \"enforce\"\nreplay = \"enforce\""
    ) throws -> Configuration {
        let (configuration, diagnostics) = Configuration.load(
            text: OneRouteFile.text(
                server: "state_directory = \"state\"", route: route, more: replay),
            fileName: "/etc/portcullis/proxy.conf", surroundings: fakeSurroundings)
        #expect(diagnostics == [])
        return try #require(configuration)
    }

    @Test("without [replay], a route that asks for it claims in files")
    func defaults() throws {
        let configuration = try load(replay: "")
        #expect(configuration.replay == ReplaySettings())
        #expect(configuration.replay.store == .file)
        #expect(configuration.claimsTokens)
        #expect(configuration.server.claimsDirectory == "/etc/portcullis/state/replay")
        #expect(try !load(replay: "", route: "").claimsTokens)
    }

    @Test("takes every value of a local store over")
    func local() throws {
        let settings = try load(
            replay: """
                [replay]
                store = "file"
                limited_use_max_lifetime = "10m"
                max_entries = 5000
                """
        ).replay
        #expect(settings.store == .file)
        #expect(settings.limitedUseMaxLifetime == .seconds(600))
        #expect(settings.maxEntries == 5000)
    }

    @Test("takes every value of Redis over")
    func redis() throws {
        let settings = try load(
            replay: """
                [replay]
                store = "redis"
                redis = "rediss+sentinel://user@s1,s2:26380/mymaster/3"
                redis_password = { env = "API_KEY" }
                redis_sentinel_password = { file = "google-api-key" }
                redis_ca = "ca.pem"
                redis_key_prefix = "claims/"
                redis_eviction = "accept"
                timeout = "100ms"
                monitor_patience = "5ms"
                """
        ).replay
        var server = RedisServer(
            topology: .sentinel(master: "mymaster"),
            addresses: [.tcp(host: "s1", port: 26379), .tcp(host: "s2", port: 26380)])
        server.usesTLS = true
        server.user = "user"
        server.password = "AIza-from-the-environment"
        server.sentinelPassword = "AIza-from-a-file"
        server.database = 3
        server.authorityFile = "/etc/portcullis/ca.pem"
        server.keyPrefix = "claims/"
        server.acceptsEviction = true
        #expect(settings.store == .redis(server))
        #expect(settings.timeout == .milliseconds(100))
        #expect(settings.monitorPatience == .milliseconds(5))
    }

    @Test("takes every value of Google over")
    func google() throws {
        let settings = try load(
            replay: """
                [replay]
                store = "google"
                [replay.google]
                credentials = "service-account.json"
                url = "http://[::1]:8081/v1/"
                ca = "ca.pem"
                egress_proxy = "http://proxy:3128"
                """
        ).replay
        var account = GoogleAccount(credentialsFile: "/etc/portcullis/service-account.json")
        account.url = "http://[::1]:8081/v1"
        account.authorityFile = "/etc/portcullis/ca.pem"
        account.egressProxy = .tcp(host: "proxy", port: 3128)
        #expect(settings.store == .google(account))
    }

    @Test(
        "M1: a monitored request waits for a remote store for a shorter time",
        arguments: [
            ("store = \"redis\"\nredis = \"redis://cache\"", 250, 25),
            ("store = \"redis\"\nredis = \"redis://cache\"\ntimeout = \"10ms\"", 10, 10),
            ("store = \"google\"\ngoogle = { credentials = \"ca.pem\" }", 2_000, 500),
            (
                "store = \"google\"\ngoogle = { credentials = \"ca.pem\" }\ntimeout = \"5s\"",
                5_000, 500
            ),
        ])
    func patience(store: String, timeout: Int, patience: Int) throws {
        let settings = try load(replay: "[replay]\n" + store).replay
        #expect(settings.timeout == .milliseconds(timeout))
        #expect(settings.monitorPatience == .milliseconds(patience))
    }

    @Test("R11: a route's own when_unavailable goes before that of the store")
    func whenUnavailable() throws {
        for (word, expected) in [("reject", WhenUnavailable.reject), ("allow", .allow)] {
            let monitored = "replay = \"monitor\"\nwhen_unavailable = \"\(word)\""
            let configuration = try load(
                replay: "[replay]\nwhen_unavailable = \"allow\"", route: monitored)
            let route = try #require(configuration.routes.routes.first)
            #expect(route.replay == .monitor)
            #expect(
                route.enforcement(storeDefault: configuration.replay.whenUnavailable)
                    == Enforcement(
                        appCheck: .monitor, replay: .monitor, whenUnavailable: expected))
        }
        let configuration = try load(
            replay: "[replay]\nwhen_unavailable = \"allow\"", route: "replay = \"monitor\"")
        #expect(configuration.routes.routes.first?.whenUnavailable == nil)
        #expect(configuration.replay.whenUnavailable == .allow)
    }

    @Test(
        "reads the URL of one server",
        arguments: [
            ("redis://cache", "cache:6379", nil as String?, nil as String?, 0),
            ("redis://cache:7000/", "cache:7000", nil, nil, 0),
            ("redis://Cache.Internal/12", "cache.internal:6379", nil, nil, 12),
            ("redis://:p%40ss%3a%25@10.0.0.1:1/0", "10.0.0.1:1", nil, "p@ss:%", 0),
            ("redis://user:p:w@[::1]", "[::1]:6379", "user", "p:w", 0),
            ("redis://:%C3%A9@cache", "cache:6379", nil, "é", 0),
            ("redis+unix:///run/redis.sock", "unix:/run/redis.sock", nil, nil, 0),
            ("redis+unix://:pw@/run/a%20b?db=7", "unix:/run/a b", nil, "pw", 7),
            ("REDIS://cache", "cache:6379", nil, nil, 0),
        ])
    func single(url: String, address: String, user: String?, password: String?, database: Int)
        throws
    {
        let server = try RedisURLText(url).server
        #expect(server.topology == .single)
        #expect(server.addresses.map(\.description) == [address])
        #expect(server.user == user)
        #expect(server.password == password)
        #expect(server.database == database)
        #expect(!server.usesTLS)
    }

    @Test("rediss is TLS, of every kind of server")
    func tls() throws {
        for url in [
            "rediss://cache", "rediss+cluster://a,b:1/0", "rediss+sentinel://:p@a,b/m-1._/2",
        ] {
            #expect(try RedisURLText(url).server.usesTLS)
        }
        let cluster = try RedisURLText("rediss+cluster://u:p@a,b:1").server
        #expect(cluster.topology == .cluster)
        #expect(cluster.addresses.map(\.description) == ["a:6379", "b:1"])
        #expect(cluster.password == "p")
    }
}
