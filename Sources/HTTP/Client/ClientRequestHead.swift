internal import Reactor

/// The head of a request that a client makes.
struct ClientRequestHead {
    /// GET or POST.
    let method: StaticString
    /// Gives the Host field.
    let url: HTTPURL
    /// Path and query: visible ASCII.
    let target: String
    /// Fields beyond the client's own.
    let fields: [(name: String, value: String)]
    /// Media type and length in bytes, where there is a content.
    let content: (type: StaticString, length: Int)?
    /// The connection is meant for further requests.
    let isPersistent: Bool

    /// The bytes up to and with the blank line.
    ///
    /// - Throws: when a target or field would break out of its line.
    func write(to head: ByteBuffer, userAgent: String) throws(HTTPClientError) {
        guard target.hasPrefix("/"), target.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw unsendable("the target has a character that no target may carry")
        }
        head.append(method)
        head.append(" \(target) HTTP/1.1\r\nHost: \(url.hostField)\r\n")
        head.append("User-Agent: \(userAgent)\r\n")
        head.append("Accept: application/json\r\nAccept-Encoding: identity\r\n")
        if !isPersistent { head.append("Connection: close\r\n") }
        if let content {
            head.append("Content-Type: ")
            head.append(content.type)
            head.append("\r\nContent-Length: \(content.length)\r\n")
        }
        for (name, value) in fields {
            // A line break here would be a second field, or a second request.
            guard Self.isSafe(name), !name.isEmpty, !name.utf8.contains(UInt8(ascii: ":")),
                Self.isSafe(value)
            else {
                throw unsendable(
                    "a configured request field has a character that no field may carry")
            }
            head.append("\(name): \(value)\r\n")
        }
        head.append("\r\n")
    }

    private func unsendable(_ reason: String) -> HTTPClientError {
        HTTPClientError(.send, host: url.endpoint.description, reason)
    }

    private static func isSafe(_ text: String) -> Bool {
        text.utf8.allSatisfy { 0x20...0x7E ~= $0 || $0 >= 0x80 || $0 == 0x09 }
    }
}
