/// The header of a token, with each member that has a rule found in one walk.
struct TokenHeader: ~Copyable {
    /// The first segment, for what is told to people.
    let document: JSONDocument

    /// Each of these is a value of `document`, or nil when there is no such member.
    let algorithm: Int?
    let type: Int?
    let critical: Int?
    let keyID: Int?

    /// - Parameter document: An object.
    init(_ document: JSONDocument) {
        var algorithm: Int?
        var type: Int?
        var critical: Int?
        var keyID: Int?
        document.forEachShortMember { name, value in
            // No name is there twice, so each is found at most once.
            switch name {
            case ShortName("alg"): algorithm = value
            case ShortName("typ"): type = value
            case ShortName("kid"): keyID = value
            case ShortName("crit"): critical = value
            default: break
            }
        }
        self.document = document
        self.algorithm = algorithm
        self.type = type
        self.critical = critical
        self.keyID = keyID
    }
}
