/// A project's configuration, made ready to be compared with the bytes of claims.
///
/// A class: each token's rules are passed on a dozen times, and a copy of a structure raises the
/// count of every array in it.
final class ProjectRules: Sendable {
    /// The project's name in the configuration.
    let name: String
    /// The exact value of `iss`.
    let issuer: [UInt8]
    /// Every one of these must be in `aud`.
    let audiences: [[UInt8]]
    /// Seconds.
    let leeway: Int64
    private let aliases: [String]
    private let appsByID: [String: Int]

    init(_ project: Project) {
        name = project.name
        issuer = Array(project.issuer.utf8)
        audiences = ([project.number] + [project.id].compactMap(\.self))
            .map { Array("projects/\($0)".utf8) }
        leeway = min(max(project.leeway, 0), TokenLimits.leeway)
        aliases = project.apps.map(\.alias)
        appsByID = Dictionary(
            zip(project.apps.map(\.id), project.apps.indices),
            uniquingKeysWith: { first, _ in first })
    }

    /// The index of an app among the configured aliases.
    func app(withID id: String) -> Int? { appsByID[id] }

    /// The alias of an app.
    func alias(ofAppWithID id: String) -> String? { appsByID[id].map { aliases[$0] } }
}
