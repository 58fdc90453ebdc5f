import Attestation
import Policy
import Testing

@Suite("What a token comes to on a route")
struct RouteTokensTests {
    private func token(project: Int, app: Int?) -> VerifiedToken {
        VerifiedToken(
            project: project, appID: "1:1:ios:a", app: app, issuedAt: 1, expiresAt: 2, tokenID: nil,
            provider: nil, keyID: "k")
    }

    private func route(_ projects: [Int]?, _ apps: [AppIndex]?) -> Route {
        var route = Route(name: "r", path: "/*", upstream: 0)
        route.projects = projects
        route.apps = apps
        return route
    }

    @Test("a route that lists nothing takes every app of every project, with an alias or not")
    func open() {
        for app in [0, nil] {
            #expect(route(nil, nil).acceptance(of: token(project: 3, app: app)) == .accepted)
            #expect(route(nil, nil).verdict(of: token(project: 3, app: app)) == .verified)
        }
    }

    @Test("a token of a project that is not listed is not allowed, whatever its app")
    func projects() {
        let route = route([1], nil)
        #expect(route.verdict(of: token(project: 1, app: nil)) == .verified)
        #expect(route.acceptance(of: token(project: 0, app: 0)) == .projectNotListed)
        #expect(route.verdict(of: token(project: 0, app: 0)) == .appNotAllowed)
    }

    @Test("an app is known by project and place, and one without an alias is on no list")
    func apps() {
        let route = route([0, 1], [AppIndex(project: 1, app: 2)])
        #expect(route.acceptance(of: token(project: 1, app: 2)) == .accepted)
        #expect(route.acceptance(of: token(project: 0, app: 2)) == .appNotListed)
        #expect(route.acceptance(of: token(project: 1, app: 1)) == .appNotListed)
        #expect(route.acceptance(of: token(project: 1, app: nil)) == .appNotListed)
        #expect(self.route([0], []).verdict(of: token(project: 0, app: 0)) == .appNotAllowed)
    }

    @Test(
        "what is no verified token keeps its verdict on any route",
        arguments: [
            (TokenVerdict.attestationFailed, Verdict.attestationFailed),
            (.debugSecret, .invalid(.malformed)),
            (.keysUnavailable(project: 0), .unavailable(.keys)),
            (.notAdmitted, .unavailable(.verificationLimit)),
            (.unknownKey(project: 0), .invalid(.unknownKey)),
        ] + InvalidReason.allCases.map { (.invalid($0), .invalid($0)) })
    func others(token: TokenVerdict, expected: Verdict) {
        #expect(route(nil, nil).verdict(of: token) == expected)
        #expect(route([], []).verdict(of: token) == expected)
    }
}
