extension JSONDocument {
    /// A string as a copy, or nil when the value is none.
    func text(of value: Int) -> String? { string(value)?.text() }

    /// A member of the root for a person's eyes: short, and without a byte that could steer a
    /// terminal.
    func display(_ name: StaticString) -> String {
        guard let member = member(name) else { return "nothing" }
        return display(member)
    }

    private func display(_ value: Int, isNested: Bool = false) -> String {
        switch kind(of: value) {
        case .string: "\"\(escaped(value))\""
        case .number: escaped(value)
        case .true: "true"
        case .false: "false"
        case .null: "null"
        case .object: "an object"
        case .array where isNested: "an array"
        case .array:
            "["
                + elements(of: value).prefix(8).map { display($0, isNested: true) }
                .joined(separator: ", ") + (count(of: value) > 8 ? ", …]" : "]")
        }
    }

    private func escaped(_ value: Int) -> String {
        var text = ""
        let bytes = characters(value)
        for index in bytes.indices.prefix(128) {
            switch bytes[index] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                text += "\\" + String(UnicodeScalar(bytes[index]))
            case 0x20...0x7E:
                text += String(UnicodeScalar(bytes[index]))
            case let byte:
                text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return bytes.count > 128 ? text + "…" : text
    }
}
