/// Words of a stranger for our log.
enum ForeignText {
    private static let longestWord = 48

    /// The text on one line of printable ASCII. Words as long as keys and tokens are left out, so
    /// that a service that repeats what it was sent brings no secret into a log.
    ///
    /// - Parameter longest: Characters of the result at most.
    static func bounded(_ text: String, to longest: Int = 240) -> String {
        let considered = longest * 4
        // The end of a word that is cut off there may be the start of a secret.
        var whole = text.utf8.prefix(considered)
        if whole.count == considered {
            whole = whole[..<(whole.lastIndex(of: 0x20) ?? whole.startIndex)]
        }
        let printable = whole.map { 0x21...0x7E ~= $0 ? $0 : 0x20 }
        let words = printable.split(separator: 0x20).map { word in
            word.count > longestWord ? "[...]" : String(decoding: word, as: UTF8.self)
        }
        return String(words.joined(separator: " ").prefix(longest))
    }
}
