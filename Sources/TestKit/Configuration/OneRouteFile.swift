/// A whole configuration file with one listener, one project, one upstream and one route: what most
/// tests of a single setting need around it.
public enum OneRouteFile {
    /// The text. Each argument stands at the end of the table of its name, as lines of its own;
    /// `more` holds tables and stands at the end of the file.
    public static func text(
        server: String = "", project: String = "", named name: String = "all", path: String = "/*",
        route: String = "", more: String = ""
    ) -> String {
        """
        [server]
        \(server)
        [[listener]]
        listen = "127.0.0.1:8080"
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
