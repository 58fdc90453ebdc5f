/// A Firebase project as the verifier sees it: who may have issued a token, and for whom.
public struct Project: Sendable, Equatable {
    /// The name in the configuration.
    public var name: String
    /// Project number, digits only.
    public var number: String
    /// Project id; with it the audience must name both (docs/app-check-tokens.md 3).
    public var id: String?
    /// The exact value of claim `iss`: `https://firebaseappcheck.googleapis.com/<number>`, or a
    /// development issuer.
    public var issuer: String
    /// Aliases in the order of the configuration file, with their app ids.
    public var apps: [(alias: String, id: String)]
    /// Allowance for clocks that differ, in seconds, on `exp`, `iat` and `nbf`. 0 to 300.
    public var leeway: Int64

    public init(
        name: String, number: String, id: String?, issuer: String,
        apps: [(alias: String, id: String)], leeway: Int64
    ) {
        self.name = name
        self.number = number
        self.id = id
        self.issuer = issuer
        self.apps = apps
        self.leeway = leeway
    }

    public static func == (left: Project, right: Project) -> Bool {
        left.name == right.name && left.number == right.number && left.id == right.id
            && left.issuer == right.issuer && left.leeway == right.leeway
            && left.apps.count == right.apps.count
            && zip(left.apps, right.apps).allSatisfy { $0.alias == $1.alias && $0.id == $1.id }
    }
}
