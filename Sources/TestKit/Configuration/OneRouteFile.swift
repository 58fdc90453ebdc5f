/// A whole configuration file with one project, one upstream, one route and, unless a test brings its
/// own, one listener: what most tests of a single setting need around it.
public enum OneRouteFile {
    /// The text. Each argument stands at the end of the table of its name, as lines of its own;
    /// `listeners` and `more` hold tables; those of `more` stand at the end of the file.
    public static func text(
        server: String = "",
        listeners: String = "[[listener]]\nlisten = \"127.0.0.1:8080\"",
        project: String = "", named name: String = "all", path: String = "/*", route: String = "",
        more: String = ""
    ) -> String {
        """
        [server]
        \(server)
        \(listeners)
        [project.production]
        number = "123"
        \(project)
        [upstream.api]
        servers = ["127.0.0.1:9000"]
        [[route]]
        name = "\(name)"
        path = "\(path)"
        upstream = "api"
        \(route)
        \(more)
        """
    }
}
