public import Policy

/// What must hold for any bytes that a connection begins with where a PROXY header is expected. The
/// fuzzer and the replay of its corpus share it.
public enum ProxyHeaderInvariants {
    /// The verdict does not depend on how the bytes arrive; a header lies within its limits and its
    /// bytes; written out in either version it means the same.
    ///
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        let whole = outcome(bytes)
        var first: Result<ProxyHeader?, ProxyHeaderError>?
        for count in 0...bytes.count {
            let part = outcome(Array(bytes.prefix(count)))
            if let first {
                if part != first { return "after \(count) bytes \(part), before \(first)" }
            } else if part != .success(nil) {
                first = part
            }
        }
        if first ?? .success(nil) != whole { return "in pieces \(first as Any), at once \(whole)" }
        guard case .success(let header?) = whole else { return nil }
        let isText = bytes[0] == UInt8(ascii: "P")
        if header.length > (isText ? 107 : ProxyHeader.longest) || header.length > bytes.count {
            return "a header of \(header.length) bytes"
        }
        guard case .client(let address) = header.origin else { return nil }
        for written in [text(address), binary(address)] {
            guard case .success(let again?) = outcome(written + [0x47]),
                again.origin == header.origin, again.length == written.count
            else { return "written out as \(written)" }
        }
        return nil
    }

    /// What the parser says.
    public static func outcome(_ bytes: [UInt8]) -> Result<ProxyHeader?, ProxyHeaderError> {
        do throws(ProxyHeaderError) {
            return .success(try ProxyHeader.parse(bytes.span))
        } catch {
            return .failure(error)
        }
    }

    private static func text(_ address: IPAddress) -> [UInt8] {
        var text: [UInt8] = []
        address.appendText(to: &text)
        let family = address.isIPv4 ? "TCP4" : "TCP6"
        let other = address.isIPv4 ? "192.0.2.1" : "2001:db8::1"
        return Array("PROXY \(family) ".utf8) + text + Array(" \(other) 1 443\r\n".utf8)
    }

    private static func binary(_ address: IPAddress) -> [UInt8] {
        let source = address.bytes
        let ports: [UInt8] = [0, 1, 1, 187]
        let block = source + [UInt8](repeating: 9, count: source.count) + ports
        let signature = Array("\r\n\r\n\0\r\nQUIT\n".utf8)
        return signature + [0x21, address.isIPv4 ? 0x11 : 0x21, 0, UInt8(block.count)] + block
    }
}
