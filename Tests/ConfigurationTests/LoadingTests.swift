import Attestation
import Policy
import Testing

@testable import Configuration

@Suite("Loading a configuration")
struct LoadingTests {
    /// Loads a text that must be good.
    private func load(_ text: String, fileName: String = "proxy.conf") throws -> Configuration {
        let (configuration, diagnostics) = Configuration.load(
            text: text, fileName: fileName, surroundings: fakeSurroundings)
        #expect(diagnostics == [])
        return try #require(configuration)
    }

    private let frame = """
        [[listener]]
        listen = "127.0.0.1:8080"
        [upstream.api]
        servers = ["127.0.0.1:9000"]

        """

    private let open = """
        [[route]]
        name = "all"
        path = "/*"
        upstream = "api"
        app_check = "off"

        """

    @Test("takes every value over, in the units of the model")
    func values() throws {
        let configuration = try load(
            """
            [server]
            workers = 3
            state_directory = "/srv/state"
            drain_delay = "5s"
            drain_timeout = "5m"
            upgrade_timeout = "2m"
            token_cache = "1MiB"
            [log]
            level = "debug"
            format = "text"
            access = "rejected"
            [admin]
            listen = "[::1]:9090"
            token_file = "portcullis-admin"
            [[listener]]
            listen = "unix:/run/portcullis.sock"
            trusted_proxies = ["10.0.0.0/8", "::1"]
            limits = { header_bytes = "8KiB", headers = 50, body = "1GiB", header_timeout = "2s", idle_timeout = "1m" }
            [project.one]
            number = "111111"
            id = "first"
            leeway = "2m"
            jwks = "https://keys.example.com/jwks"
            jwks_ca = "ca.pem"
            jwks_headers = { X-Goog-Api-Key = { env = "API_KEY" } }
            egress_proxy = "http://[::1]:3128"
            apps = { web = "1:111111:web:0a", ios = "1:111111:ios:0b" }
            client_fingerprints = { fields = ["X-Firebase-Client"], user_agents = ["MyApp/*"] }
            [project.two]
            number = "222222"
            issuer = "http://127.0.0.1:8081/issuer"
            jwks = "http://127.0.0.1:8081/jwks"
            apps = { ios = "1:222222:ios:0c" }
            [upstream.other]
            servers = ["unix:/run/other.sock"]
            [upstream.api]
            servers = ["api.internal:80", "[::1]:9000"]
            balance = "round_robin"
            protocol = "http/1.1"
            idle_connections = 7
            timeouts = { connect = "250ms", response_header = "10s", idle = "2m" }
            [[route]]
            name = "transfers"
            hosts = ["api.example.com", "*.example.org"]
            path = "/v1/transfers"
            methods = ["POST"]
            upstream = "api"
            apps = ["ios"]
            app_check = "enforce"
            enforce_percent = 0.5
            sticky_by = "header:X-Install"
            share_seed = "spring"
            websocket_token = "header"
            forward_token = true
            cors = { allow_origins = ["https://app.example.com"], allow_credentials = true, answer_preflights = true, allow_methods = ["POST"], allow_headers = ["Content-Type"], max_age = "1h" }
            """)

        #expect(configuration.server.workers == 3)
        #expect(configuration.server.stateDirectory == "/srv/state")
        #expect(configuration.server.drainDelay == .seconds(5))
        #expect(configuration.server.upgradeTimeout == .seconds(120))
        #expect(configuration.server.drainTimeout == .seconds(300))
        #expect(configuration.server.tokenCacheBytes == 1 << 20)
        #expect(configuration.log.level == .debug)
        #expect(configuration.log.format == .text)
        #expect(configuration.log.access == .rejected)
        #expect(configuration.admin?.listen == .tcp(host: "::1", port: 9090))
        #expect(configuration.admin?.tokenFile == "portcullis-admin")

        let listener = try #require(configuration.listeners.first)
        #expect(listener.name == "unix:/run/portcullis.sock")
        #expect(listener.listen == .unix(path: "/run/portcullis.sock"))
        #expect(listener.trustedProxies.map(\.description) == ["10.0.0.0/8", "::1"])
        #expect(listener.limits.headerBytes == 8192)
        #expect(listener.limits.headers == 50)
        #expect(listener.limits.body == 1 << 30)
        #expect(listener.limits.headerTimeout == .seconds(2))
        #expect(listener.limits.idleTimeout == .seconds(60))

        let one = configuration.projects[0]
        #expect(one.project.issuer == "https://firebaseappcheck.googleapis.com/111111")
        #expect(one.project.id == "first")
        #expect(one.project.leeway == 120)
        #expect(one.project.apps.map(\.alias) == ["web", "ios"])
        #expect(one.keys == .url("https://keys.example.com/jwks"))
        #expect(one.keysCA == "ca.pem")
        #expect(one.keysHeaders.map(\.value) == ["AIza-from-the-environment"])
        #expect(one.egressProxy == .tcp(host: "::1", port: 3128))
        #expect(
            one.fingerprints == [
                .fieldPresent("x-firebase-client"), .userAgent(pattern: "MyApp/*"),
            ])
        let two = configuration.projects[1]
        #expect(two.project.issuer == "http://127.0.0.1:8081/issuer")
        #expect(two.project.leeway == 60)

        let api = configuration.upstreams[1]
        #expect(api.name == "api")
        #expect(
            api.servers == [.tcp(host: "api.internal", port: 80), .tcp(host: "::1", port: 9000)])
        #expect(api.balance == .roundRobin)
        #expect(api.idleConnections == 7)
        #expect(api.connectTimeout == .milliseconds(250))
        #expect(api.responseHeaderTimeout == .seconds(10))
        #expect(api.idleTimeout == .seconds(120))

        let route = try #require(configuration.routes.routes.first)
        #expect(route.hosts == ["api.example.com", "*.example.org"])
        #expect(route.upstream == 1)
        #expect(route.projects == nil)
        // An alias that two projects have means both apps.
        #expect(
            route.apps == [AppIndex(project: 0, app: 1), AppIndex(project: 1, app: 0)])
        #expect(route.mode == .enforce)
        #expect(route.enforcedShare == 500_000)
        #expect(route.stickyBy == .field("x-install"))
        #expect(route.seed == "spring")
        #expect(route.forwardToken)
        #expect(route.cors?.maxAge == 3600)
        #expect(route.cors?.allowCredentials == true)
        #expect(route.cors?.answerPreflights == true)
        #expect(route.cors?.allowMethods == ["POST"])
        #expect(route.cors?.allowHeaders == ["Content-Type"])
    }

    @Test("relative files start at the configuration's folder")
    func relativeFiles() throws {
        let text =
            frame + open + """
                [project.p]
                number = "1"
                jwks = "keys.json"
                """
        let configuration = try load(text, fileName: "/etc/portcullis/proxy.conf")
        #expect(configuration.projects.first?.keys == .file("/etc/portcullis/keys.json"))
        let beside = try load(text, fileName: "proxy.conf")
        #expect(beside.projects.first?.keys == .file("keys.json"))
    }

    @Test("M8: a protected route whose references do not resolve fails the whole load")
    func danglingReference() {
        let project = "[project.p]\nnumber = \"1\"\napps = { ios = \"1:1:ios:0a\" }\n"
        let route = "[[route]]\nname = \"pay\"\npath = \"/pay\"\napp_check = \"enforce\"\n"
        for reference in [
            "upstream = \"apii\"", "upstream = \"api\"\nprojects = [\"q\"]",
            "upstream = \"api\"\napps = [\"android\"]",
        ] {
            let (configuration, diagnostics) = Configuration.load(
                text: frame + open + project + route + reference + "\n", fileName: "proxy.conf",
                surroundings: .empty)
            #expect(configuration == nil)
            #expect(diagnostics.map(\.severity) == [.error], "\(reference)")
        }
    }

    @Test("M8: an empty list of apps or projects never means all of them, and never nobody")
    func emptyLists() {
        for list in ["apps = []", "projects = []", "hosts = []", "methods = []"] {
            let (configuration, _) = Configuration.load(
                text: frame + open + list + "\n", fileName: "proxy.conf", surroundings: .empty)
            #expect(configuration == nil, "\(list)")
        }
    }

    @Test(
        "shares are exact",
        arguments: [
            ("25", UInt32(25_000_000)), ("0", 0), ("100", 100_000_000), ("0.1", 100_000),
            ("0.000001", 1), ("\"2%\"", 2_000_000), ("\"0.3%\"", 300_000),
            ("33.333333", 33_333_333),
        ])
    func shares(text: String, share: UInt32) throws {
        let configuration = try load(
            frame + """
                [project.p]
                number = "1"
                [[route]]
                name = "all"
                path = "/*"
                upstream = "api"
                app_check = "enforce"
                enforce_percent = \(text)
                """)
        #expect(configuration.routes.routes.first?.enforcedShare == share)
    }

    private func routes(_ count: Int, path: (Int) -> String, upstream: String) -> String {
        (0..<count).map { number in
            """
            [[route]]
            name = "r\(number)"
            path = "\(path(number))"
            upstream = "\(upstream)"
            app_check = "off"

            """
        }.joined()
    }

    @Test("ten thousand routes load")
    func manyRoutes() {
        let text = frame + routes(10_000, path: { "/\($0)" }, upstream: "api")
        let (configuration, _) = Configuration.load(
            text: text, fileName: "proxy.conf", surroundings: .empty)
        #expect(configuration?.routes.routes.count == 10_000)
    }

    @Test("a thousand mistakes are all listed")
    func manyMistakes() {
        let dangling = frame + routes(1_000, path: { "/\($0)" }, upstream: "apj")
        let (configuration, diagnostics) = Configuration.load(
            text: dangling, fileName: "proxy.conf", surroundings: .empty)
        #expect(configuration == nil)
        #expect(diagnostics.count == 1_000)
    }

    @Test("of a thousand routes that tie, each is told once")
    func manyConflicts() {
        let equal = frame + routes(1_000, path: { _ in "/" }, upstream: "api")
        let (configuration, diagnostics) = Configuration.load(
            text: equal, fileName: "proxy.conf", surroundings: .empty)
        #expect(configuration == nil)
        #expect(diagnostics.count == 999)
    }

    @Test("a file of more than 1 MiB is refused")
    func tooLarge() {
        let text = frame + open + String(repeating: "#\n", count: 1 << 19)
        let (configuration, diagnostics) = Configuration.load(
            text: text, fileName: "proxy.conf", surroundings: .empty)
        #expect(configuration == nil)
        #expect(diagnostics.map(\.message) == ["the file is larger than 1 MiB"])
    }

    @Test("a file that is not there is a diagnostic")
    func missingFile() {
        let (configuration, diagnostics) = Configuration.load(
            file: "/nowhere/proxy.conf", surroundings: .empty)
        #expect(configuration == nil)
        #expect(
            diagnostics.map(\.description)
                == ["/nowhere/proxy.conf:1:1: error: the file cannot be read"])
    }
}
