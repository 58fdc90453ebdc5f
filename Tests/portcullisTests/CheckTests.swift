import TestKit
import Testing

@testable import portcullis

@Suite("portcullis check")
struct CheckTests {
    @Test("prints the routes in order of precedence, and what they lead to")
    func routeTable() {
        let run = Transcript(
            ["check", "-c", "proxy.conf"],
            files: [
                "proxy.conf": """
                [[listener]]
                listen = "0.0.0.0:8080"
                trusted_proxies = ["10.0.0.0/8"]
                [admin]
                listen = "127.0.0.1:9090"
                [project.production]
                number = "123"
                jwks = "https://keys.example.com/jwks?key=secret"
                apps = { ios = "1:123:ios:abc" }
                [upstream.api]
                servers = ["127.0.0.1:9000", "unix:/run/api.sock"]
                balance = "round_robin"
                [[route]]
                name = "rest"
                path = "/*"
                upstream = "api"
                [[route]]
                name = "health"
                path = "/healthz"
                upstream = "api"
                app_check = "off"
                [[route]]
                name = "v1"
                path = "/v1/*"
                upstream = "api"
                projects = ["production"]
                replay = "monitor"
                [[route]]
                name = "transfers"
                hosts = ["*.example.com", "api.example.com"]
                path = "/v1/transfers"
                methods = ["POST"]
                upstream = "api"
                apps = ["ios"]
                app_check = "enforce"
                enforce_percent = 12.5
                replay = "enforce"
                when_unavailable = "reject"
                [replay]
                store = "redis"
                redis = "rediss+sentinel://user:secret@s1,s2/mymaster/3"
                limited_use_max_lifetime = "10m"
                when_unavailable = "allow"
                """
            ])
        #expect(run.exitCode == .done)
        #expect(run.errors == [])
        #expect(
            run.text == """
                proxy.conf: ok

                Routes, the most specific first:
                  HOST             PATH           METHODS  ROUTE      UPSTREAM  APP_CHECK  SHARE               REPLAY            APPS
                  api.example.com  /v1/transfers  POST     transfers  api       enforce    12.5% by client_ip  enforce (reject)  ios
                  *.example.com    /v1/transfers  POST     transfers  api       enforce    12.5% by client_ip  enforce (reject)  ios
                  any              /healthz       any      health     api       off        -                   off               -
                  any              /v1/*          any      v1         api       monitor    -                   monitor           any of production
                  any              /*             any      rest       api       monitor    -                   off               any

                Replay protection:
                  STORE  WHERE                                                      LIMITED-USE UP TO  WHEN UNAVAILABLE  SIGUSR2
                  redis  mymaster of Sentinels s1:26379, s2:26379, database 3, TLS  10m                allow             keeps claims

                Limits:
                  LIMIT          OF EACH CLIENT                                                            CLIENTS  MEMORY, AT MOST
                  verifications  500 bad tokens a second (burst 5000) of each network, IPv4 /32, IPv6 /48  100000   4128 KiB

                Listeners:
                  LISTEN          SERVES            BELIEVES       FROM
                  0.0.0.0:8080    http/1.1          X-Forwarded-*  10.0.0.0/8
                  127.0.0.1:9090  admin, read only  nothing        nobody

                Projects:
                  PROJECT     NUMBER  ISSUER                                       KEYS
                  production  123     https://firebaseappcheck.googleapis.com/123  https://keys.example.com/jwks?…

                Upstreams:
                  UPSTREAM  BALANCE      SPEAKS    SERVERS
                  api       round_robin  http/1.1  127.0.0.1:9000, unix:/run/api.sock
                """)
    }

    @Test("says what a listener believes, and of whom")
    func trust() {
        let listeners = """
            [[listener]]
            listen = "0.0.0.0:8080"
            proxy_protocol = true
            trusted_proxies = ["10.0.0.0/8"]
            [[listener]]
            listen = "unix:/run/edge.sock"
            trusted_proxies = ["unix:", "10.0.0.0/8"]
            forwarding_fields = "forwarded"
            [[listener]]
            listen = "0.0.0.0:8081"
            """
        let run = Transcript(
            ["check", "-c", "proxy.conf"],
            files: ["proxy.conf": OneRouteFile.text(listeners: listeners)])
        #expect(run.exitCode == .done)
        let words = run.text.split { $0.isWhitespace }.joined(separator: " ")
        #expect(
            words.contains("0.0.0.0:8080 http/1.1 PROXY headers, X-Forwarded-* 10.0.0.0/8"))
        #expect(
            words.contains(
                "unix:/run/edge.sock http/1.1 Forwarded its local peers, 10.0.0.0/8"))
        #expect(words.contains("0.0.0.0:8081 http/1.1 nothing nobody"))
    }

    @Test(
        "says where claims are kept, and no password",
        arguments: [
            ("store = \"memory\"", "memory  this process"),
            ("store = \"file\"", "file   state/replay"),
            (
                "store = \"redis\"\nredis = \"redis://:secret@cache\"",
                "redis  cache:6379"
            ),
            (
                "store = \"redis\"\nredis = \"redis+unix://:secret@/run/r.sock?db=1\"",
                "redis  unix:/run/r.sock, database 1"
            ),
            (
                "store = \"redis\"\nredis = \"rediss+cluster://:secret@a,[::1]:1\"",
                "redis  Cluster of a:6379, [::1]:1, TLS"
            ),
            (
                "store = \"google\"\ngoogle = { credentials = \"key.json\" }",
                "google  https://firebaseappcheck.googleapis.com/v1beta"
            ),
        ])
    func stores(settings: String, line: String) {
        let run = Transcript(
            ["check", "-c", "proxy.conf"],
            files: [
                "proxy.conf": OneRouteFile.text(
                    server: "state_directory = \"state\"", route: "replay = \"monitor\"",
                    more: "[replay]\n\(settings)"), "key.json": "{}",
            ])
        #expect(run.exitCode == .done)
        #expect(run.output.contains { $0.contains("\n  \(line)") }, "\(run.text)")
        #expect(!run.text.contains("secret"))
    }

    @Test("O1: lists every mistake on the standard error, and exits with 1")
    func mistakes() {
        let run = Transcript(
            ["check", "-c", "etc/proxy.conf"],
            files: ["etc/proxy.conf": "[server]\nworkers = 900\n[lgo]\n"])
        #expect(run.exitCode == .wrong)
        #expect(run.output == [])
        #expect(
            run.errorText == """
                etc/proxy.conf:1:1: error: there is no [[listener]]
                  hint: add [[listener]] with listen = "127.0.0.1:8080"
                etc/proxy.conf:1:1: error: there is no [[route]]
                  hint: a request without a route is answered 404; add [[route]] with path = "/*"
                etc/proxy.conf:2:11: error: "workers" in [server] must be from 0 to 256, not 900
                  workers = 900
                            ^~~
                etc/proxy.conf:3:2: error: unknown key "lgo"; did you mean "log"?
                  [lgo]
                   ^~~
                etc/proxy.conf: 4 errors
                """)
    }

    @Test("shows warnings, and exits with 0")
    func warnings() {
        let run = Transcript(
            ["check", "-c", "proxy.conf"],
            files: [
                "proxy.conf": """
                [[listener]]
                listen = "127.0.0.1:8080"
                [admin]
                listen = "0.0.0.0:9090"
                [upstream.api]
                servers = ["127.0.0.1:9000"]
                [[route]]
                name = "all"
                path = "/*"
                upstream = "api"
                app_check = "off"
                """
            ])
        #expect(run.exitCode == .done)
        #expect(run.errorText.hasPrefix("proxy.conf:4:10: warning: "))
        #expect(run.output.first == "proxy.conf: ok")
    }

    @Test("a certificate or key that is there and closed to us, or no file, is an error")
    func closed() {
        let run = Transcript(
            ["check", "-c", "proxy.conf"],
            files: [
                "proxy.conf": """
                [[listener]]
                listen = "127.0.0.1:8443"
                tls.certificates = [ { certificate = "/etc", key = "/nowhere/a.key" } ]
                tls.client_ca = "/etc"
                [upstream.api]
                servers = ["127.0.0.1:9000"]
                tls.ca = "/etc"
                [[route]]
                name = "all"
                path = "/*"
                upstream = "api"
                app_check = "off"
                """
            ])
        #expect(run.exitCode == .wrong)
        let wrong = "/etc: is no regular file of at most 1 MiB"
        #expect(run.errors.filter { $0.contains("listener 127.0.0.1:8443: \(wrong)") }.count == 2)
        #expect(run.errors.contains { $0.contains("upstream api: \(wrong)") })
    }

    @Test("a file that cannot be read exits with 1")
    func missing() {
        let run = Transcript(["check", "-c", "nowhere.conf"])
        #expect(run.exitCode == .wrong)
        #expect(run.errors.first == "nowhere.conf:1:1: error: the file cannot be read")
    }
}
