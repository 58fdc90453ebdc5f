import TestKit
import Testing

@testable import Attestation

@Suite("The rules of a project")
struct ProjectRulesTests {
    /// Ids of several lengths, with the same beginnings and ends, one of them twice.
    static let ids = [
        "1:123:ios:b", "1:123:ios:a", "1:123:android:a", "", "1:123:ios:ab", "1:123:ios:a", "1",
        "1:123:web:a", "1:123:ios:é",
    ]

    @Test("find each app, and of two with one id the first", arguments: 0...ids.count)
    func apps(count: Int) {
        var project = TestIssuer.project
        let ids = Self.ids.prefix(count)
        project.apps = ids.map { (alias: "app \($0)", id: $0) }
        let rules = ProjectRules(project)
        for id in Self.ids + ["1:123:ios:c", "1:123:ios:", "0", "2", "1:123:ios:abc", "\u{FF}"] {
            let found = rules.app(withID: Array(id.utf8).span)
            #expect(found == ids.firstIndex(of: id))
            let alias = rules.alias(ofAppWithID: Array(id.utf8).span)
            #expect(alias == (ids.contains(id) ? "app \(id)" : nil))
        }
    }
}
