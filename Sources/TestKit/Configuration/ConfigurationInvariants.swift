internal import Configuration
internal import Policy

/// What must hold for any bytes that are read as a configuration file. The fuzzer and the replay of
/// its corpus share it.
public enum ConfigurationInvariants {
    /// Every error has a place in the file, no text of the file can steer a terminal, and what
    /// loads without an error has nothing dangling in it.
    ///
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        let (configuration, diagnostics) = Configuration.load(
            bytes: bytes, fileName: "proxy.conf", surroundings: .empty)
        let hasErrors = diagnostics.contains { $0.severity == .error }
        if (configuration == nil) != hasErrors {
            return "configuration \(configuration == nil ? "missing" : "present"), \(diagnostics)"
        }
        let lineCount = bytes.count { $0 == 0x0A } + 1
        for diagnostic in diagnostics {
            let position = diagnostic.position
            // An end of file may be reported on the line behind the last one.
            guard 1...(lineCount + 1) ~= position.line, 1...(bytes.count + 2) ~= position.column,
                diagnostic.width >= 1
            else { return "no place in the file: \(diagnostic)" }
            if let control = controlCharacter(in: diagnostic.description) {
                return "shows control character \(control)"
            }
        }
        if zip(diagnostics, diagnostics.dropFirst()).contains(where: { $0.position > $1.position })
        {
            return "not in file order: \(diagnostics.map(\.position))"
        }
        return configuration.flatMap(dangling)
    }

    private static func controlCharacter(in text: String) -> UInt32? {
        text.unicodeScalars.first { scalar in
            scalar != "\n" && scalar != "\t" && scalar.properties.generalCategory == .control
        }?.value
    }

    private static func dangling(_ configuration: Configuration) -> String? {
        if configuration.listeners.isEmpty { return "no listener" }
        for route in configuration.routes.routes {
            if !configuration.upstreams.indices.contains(route.upstream) {
                return "route \(route.name) has no upstream"
            }
            if configuration.upstreams[route.upstream].servers.isEmpty {
                return "upstream of route \(route.name) has no server"
            }
            if route.mode != .off, configuration.projects.isEmpty {
                return "route \(route.name) is protected by nobody's tokens"
            }
            let indices = (route.projects ?? []) + (route.apps ?? []).map(\.project)
            if !indices.allSatisfy(configuration.projects.indices.contains) {
                return "route \(route.name) has a project that is not there"
            }
            if route.projects?.isEmpty == true || route.apps?.isEmpty == true {
                return "route \(route.name) accepts nobody"
            }
            if !route.path.hasPrefix("/") { return "route \(route.name) has path \(route.path)" }
        }
        return nil
    }
}
