import Attestation
import Foundation
import Policy
import Testing

@testable import Configuration

/// The repository's root, from where this file lies.
let repository = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

/// What the configurations of these tests may refer to.
let fakeSurroundings = Surroundings(
    file: { path in
        switch path.split(separator: "/").last {
        case "empty": []
        case "two-lines": Array("one\ntwo\n".utf8)
        case "google-api-key": Array("AIza-from-a-file\r\n".utf8)
        case "portcullis-admin", "admin-for-all": Array("0123456789abcdef\n".utf8)
        case "keys.json", "ca.pem", "service-account.json", "api.pem",
            "api.key", "api.ocsp", "client.pem", "client.key",
            "redis-password":
            Array("text".utf8)
        default: nil
        }
    },
    environment: { name in
        switch name {
        case "TEAM": "edge"
        case "OTLP_AUTHORIZATION": "Bearer of-the-collector"
        case "API_KEY": "AIza-from-the-environment"
        case "SENTINEL_PASSWORD": "of the sentinels"
        default: nil
        }
    },
    mode: { path in
        switch path.split(separator: "/").last {
        case "portcullis-admin": 0o100640
        case "admin-for-all": 0o100644
        case "admin-pipe": 0o010600
        default: nil
        }
    })

@Suite("proxy.conf.example")
struct ExampleTests {
    let text: String

    init() throws {
        text = try String(
            contentsOf: repository.appending(path: "proxy.conf.example"), encoding: .utf8)
    }

    /// The example with every optional key switched on.
    var everything: String {
        text.replacing(/\n#(?=[a-z_]+ = |\[)/, with: "\n")
    }

    @Test("passes as it is, on a machine that has none of its files")
    func passes() {
        let (configuration, diagnostics) = Configuration.load(
            text: text, fileName: "proxy.conf.example", surroundings: .empty)
        #expect(diagnostics == [])
        #expect(configuration?.routes.routes.count == 3)
    }

    /// The example for a store: with every optional key but those of other stores.
    func everything(for store: StoreKind) -> String {
        let lines = text.replacing("store = \"file\"", with: "store = \"\(store.rawValue)\"")
            .split(separator: "\n", omittingEmptySubsequences: false)
        return lines.map { line in
            if line.hasPrefix("#[") { return String(line.dropFirst()) }
            guard let match = line.prefixMatch(of: /\#?([a-z_]+)\ =/) else { return String(line) }
            let isForeign = StoreKind.owners(of: String(match.1)).map { !$0.contains(store) }
            return (isForeign == true ? "#" : "") + line.trimmingPrefix("#")
        }.joined(separator: "\n")
    }

    @Test("passes with every optional key switched on", arguments: StoreKind.allCases)
    func passesInFull(store: StoreKind) {
        let (configuration, diagnostics) = Configuration.load(
            text: everything(for: store), fileName: "proxy.conf.example",
            surroundings: fakeSurroundings)
        // The example enforces, for which memory is no good.
        #expect(diagnostics.map(\.severity) == (store == .memory ? [.warning] : []))
        let headers = configuration?.projects.first?.keysHeaders ?? []
        #expect(headers.map(\.name) == ["X-Goog-Api-Key", "X-Team"])
        #expect(headers.map(\.value) == ["AIza-from-a-file", "edge"])
    }

    @Test("shows the defaults of an upstream")
    func upstreamDefaults() throws {
        let (configuration, _) = Configuration.load(
            text: text, fileName: "proxy.conf.example", surroundings: .empty)
        let example = try #require(configuration?.upstreams.first)
        var upstream = Upstream(name: example.name, servers: example.servers)
        upstream.health = HealthCheck(path: "/healthz")
        upstream.limits.connections = 1000
        #expect(example == upstream)
    }

    @Test(
        "shows the defaults",
        arguments: [
            "[server]", "[log]", "[tracing]", "[replay]", "[[listener]]", "[project.NAME]",
            "[[route]]",
        ])
    func defaults(table: String) throws {
        let (configuration, _) = Configuration.load(
            text: text, fileName: "proxy.conf.example", surroundings: .empty)
        let example = try #require(configuration)
        switch table {
        case "[server]": #expect(example.server == Server())
        case "[log]": #expect(example.log == Log())
        case "[tracing]":
            #expect(example.tracing == nil)
            let (full, _) = Configuration.load(
                text: everything(for: .file), fileName: "proxy.conf.example",
                surroundings: fakeSurroundings)
            var tracing = Tracing(url: "http://127.0.0.1:4318/v1/traces")
            tracing.headers = [("Authorization", "Bearer of-the-collector")]
            tracing.authorityFile = "/etc/portcullis/ca.pem"
            tracing.egressProxy = .tcp(host: "proxy.internal", port: 3128)
            #expect(full?.tracing == tracing)
        case "[replay]": #expect(example.replay == ReplaySettings())
        case "[[listener]]":
            var listener = Listener(
                name: "0.0.0.0:8080", listen: .tcp(host: "0.0.0.0", port: 8080))
            // What the key looks like; by default nobody is believed.
            listener.trustedProxies = example.listeners.first?.trustedProxies ?? []
            #expect(example.listeners == [listener])
        case "[project.NAME]":
            let (bare, _) = Configuration.load(
                text: Self.bare, fileName: "proxy.conf", surroundings: .empty)
            let (shown, plain) = try (
                #require(example.projects.first), #require(bare?.projects.first)
            )
            #expect(shown.keys == plain.keys)
            #expect(shown.project.issuer == plain.project.issuer)
            #expect(shown.project.leeway == plain.project.leeway)
        default:
            let shown = try #require(example.routes.routes.first)
            let plain = Route(name: "transfers", path: "/", upstream: 0)
            #expect(shown.stickyBy == plain.stickyBy)
            #expect(shown.seed == plain.seed)
            #expect(shown.webSocketToken == plain.webSocketToken)
            #expect(shown.forwardToken == plain.forwardToken)
            #expect(shown.whenUnavailable == plain.whenUnavailable)
            #expect(shown.cors?.maxAge == CORS(allowOrigins: []).maxAge)
        }
    }

    /// A file with nothing but what has no default.
    private static let bare = """
        [[listener]]
        listen = "127.0.0.1:8080"
        [project.production]
        number = "123456789012"
        [upstream.api]
        servers = ["127.0.0.1:9000"]
        [[route]]
        name = "all"
        path = "/*"
        upstream = "api"
        """

    @Test("shows the defaults of the stores that are reached over a network")
    func storeDefaults() throws {
        func replay(_ text: String) throws -> ReplaySettings {
            let (configuration, _) = Configuration.load(
                text: text, fileName: "proxy.conf.example", surroundings: fakeSurroundings)
            return try #require(configuration).replay
        }
        let redis = try replay(everything(for: .redis))
        #expect(redis.timeout == ReplaySettings().timeout)
        #expect(redis.monitorPatience == ReplaySettings().monitorPatience)
        guard case .redis(let server) = redis.store else { throw StoreMissing() }
        let plain = RedisServer(topology: .single, addresses: [])
        #expect(server.keyPrefix == plain.keyPrefix)
        #expect(server.acceptsEviction == plain.acceptsEviction)

        let google = try replay(
            everything(for: .google).replacing(/\n(timeout|monitor_patience) = .*/, with: ""))
        for time in [google.timeout, google.monitorPatience] {
            #expect(text.contains("\"\(DurationText.format(time))\" for google"))
        }
        guard case .google(let account) = google.store else { throw StoreMissing() }
        #expect(account.url == GoogleAccount(credentialsFile: "").url)
    }

    private struct StoreMissing: Error {}

    @Test("has every key of the schema, set or optional", arguments: Schema.all.map(\.name))
    func isComplete(table: String) throws {
        let schema = try #require(Schema.all.first { $0.name == table }?.schema)
        for key in schema.keys {
            let isSet = try everything.contains(
                Regex("(?m)(^\(key) = |^\\[\\[?(\\w+\\.)*\(key)[.\\]]|[{,] \(key) = )"))
            #expect(isSet, "\(key) of \(table) is missing")
        }
    }

    @Test("and so has the table of README.md", arguments: Schema.all.map(\.name))
    func readmeIsComplete(table: String) throws {
        // The tables that README.md leaves to the example.
        if ["root", "secret", "client_fingerprints", "cors"].contains(table) { return }
        let schema = try #require(Schema.all.first { $0.name == table }?.schema)
        let readme = try String(
            contentsOf: repository.appending(path: "README.md"), encoding: .utf8)
        let rows = readme.split(separator: "\n").filter { $0.hasPrefix("| `[") }.joined()
        for key in schema.keys { #expect(rows.contains("`\(key)`"), "\(key) of \(table)") }
    }
}
