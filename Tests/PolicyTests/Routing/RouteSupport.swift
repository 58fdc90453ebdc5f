import Policy

func route(
    _ name: String, _ path: String, hosts: [String] = [], methods: [String] = [],
    mode: Route.Mode = .monitor
) -> Route {
    var route = Route(name: name, path: path, upstream: 0)
    route.hosts = hosts
    route.methods = methods
    route.mode = mode
    return route
}

extension RouteTable {
    /// The name of the route that serves a request.
    func name(_ method: String, _ host: String, _ path: String) -> String? {
        match(
            host: Array(host.utf8).span, path: Array(path.utf8).span,
            method: Array(method.utf8).span
        ).map { routes[$0].name }
    }
}

extension RouteTable {
    func match(_ method: String, _ host: String, _ path: String) -> RouteMatch? {
        find(
            host: Array(host.utf8).span, path: Array(path.utf8).span,
            method: Array(method.utf8).span)
    }
}
