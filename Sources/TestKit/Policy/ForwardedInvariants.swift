internal import Policy

/// What must hold for any bytes as a value of `Forwarded`. The fuzzer and the replay of its corpus
/// share it.
public enum ForwardedInvariants {
    /// Whether a field is taken does not depend on how it is divided into lines at the commas of its
    /// list; what is taken has no byte that could end a field line, and means the same when it is
    /// written out again.
    ///
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        guard let elements = elements(of: [bytes]) else { return nil }
        if elements.count > bytes.count { return "\(elements.count) elements" }
        for element in elements {
            for byte in element.scheme + element.host where byte <= 0x20 || byte >= 0x7F {
                return "byte \(byte) in a scheme or host"
            }
        }
        let written = elements.map(write)
        if Self.elements(of: written) != elements { return "written out as \(written)" }
        let joined = Array(written.joined(separator: Array(", ".utf8)))
        if Self.elements(of: [joined]) != elements { return "joined as \(joined)" }
        // Behind a good line a bad one spoils the whole.
        if Self.elements(of: [bytes, Array("for=".utf8)]) != nil { return "a bad line is taken" }
        return nil
    }

    private static func elements(of lines: [[UInt8]]) -> [ForwardedField.Element]? {
        var field = ForwardedField()
        for line in lines {
            guard (try? field.append(line: line.span)) != nil else { return nil }
        }
        return field.elements
    }

    /// An element in another spelling of the same meaning.
    private static func write(_ element: ForwardedField.Element) -> [UInt8] {
        var text = Array(";".utf8)
        switch element.node {
        case .address(let address):
            text += Array("For=\"".utf8)
            text += address.isIPv4 ? [] : Array("[".utf8)
            address.appendText(to: &text)
            text += address.isIPv4 ? [] : Array("]".utf8)
            text += Array(":1\";".utf8)
        case .withheld: text += Array("for=unknown;".utf8)
        case nil: break
        }
        if !element.scheme.isEmpty { text += Array("PROTO=".utf8) + element.scheme + [0x3B] }
        if !element.host.isEmpty { text += Array("host=\"".utf8) + element.host + [0x22] }
        return text
    }
}
