internal import Reactor

/// Where the parts of the demo listen.
struct DemoPlaces: Sendable {
    let proxy: SocketAddress
    let admin: SocketAddress
    let backend: SocketAddress
    let issuer: SocketAddress
}

/// The demo's configuration, as a user would write it.
enum DemoConfiguration {
    /// The demo's configuration as a file would have it.
    static func text(_ places: DemoPlaces, issuer: String) -> String {
        """
        [server]
        workers = 1

        [log]
        format = "text"

        [admin]
        listen = "\(places.admin)"

        [[listener]]
        listen = "\(places.proxy)"

        [project.demo]
        number = "\(DemoIssuer.projectNumber)"
        id = "\(DemoIssuer.projectID)"
        issuer = "\(issuer)"
        jwks = "http://\(places.issuer)/jwks"
        apps = { ios = "\(DemoIssuer.appID)" }

        [replay]
        store = "memory"

        [upstream.backend]
        servers = ["\(places.backend)"]

        [[route]]
        name = "monitored"
        path = "/*"
        upstream = "backend"
        app_check = "monitor"

        [[route]]
        name = "enforced"
        path = "/enforced/*"
        upstream = "backend"
        app_check = "enforce"

        [[route]]
        name = "once"
        path = "/once/*"
        upstream = "backend"
        app_check = "enforce"
        replay = "enforce"

        """
    }
}
