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
    private let appIDs: [String]
    /// The apps in the order of their ids' bytes: a few comparisons are less work than one hash of
    /// an id.
    private let appsByID: [(id: [UInt8], app: Int)]

    init(_ project: Project) {
        name = project.name
        issuer = Array(project.issuer.utf8)
        audiences = ([project.number] + [project.id].compactMap(\.self))
            .map { Array("projects/\($0)".utf8) }
        leeway = min(max(project.leeway, 0), TokenLimits.leeway)
        aliases = project.apps.map(\.alias)
        appIDs = project.apps.map(\.id)
        appsByID = project.apps.enumerated().map { (id: Array($1.id.utf8), app: $0) }
            .sorted { left, right in
                let order = left.id.span.order(right.id.span)
                return order < 0 || order == 0 && left.app < right.app
            }
    }

    /// The index of an app among the configured aliases; of two with one id, the first.
    func app(withID id: Span<UInt8>) -> Int? {
        var range = appsByID.indices
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            let other = appsByID[middle].id
            if other.span.order(id) < 0 {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        guard range.lowerBound < appsByID.count else { return nil }
        let (found, app) = appsByID[range.lowerBound]
        return found.span.equals(id) ? app : nil
    }

    /// The id of the app at an index that ``app(withID:)`` gave: the same text, made once.
    func id(ofApp app: Int) -> String { appIDs[app] }

    /// The alias of an app.
    func alias(ofAppWithID id: Span<UInt8>) -> String? { app(withID: id).map { aliases[$0] } }
}
