/// Why a text is not what its key asks for.
struct Misspelling: Error {
    /// Continues a sentence that starts with the key: "must be …".
    var message: String
    /// What was probably meant.
    var suggestion: String?
    /// What would be right.
    var hint: String?

    init(_ message: String, suggestion: String? = nil, hint: String? = nil) {
        self.message = message
        self.suggestion = suggestion
        self.hint = hint
    }
}

extension Setting {
    /// A string that `parse` understands; what it throws is reported here.
    func string<Value>(
        hint: String? = nil, _ parse: (String) throws(Misspelling) -> Value
    ) -> Value? {
        guard let text = string(hint: hint) else { return nil }
        do {
            return try parse(text)
        } catch {
            self.error(error.message, suggestion: error.suggestion, hint: error.hint)
            return nil
        }
    }
}
