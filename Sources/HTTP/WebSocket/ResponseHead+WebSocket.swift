extension ResponseHead {
    /// Whether the head opens the WebSocket that a handshake with this key asked for (RFC 6455,
    /// section 4.1).
    ///
    /// - Parameter bytes: What the head was parsed from.
    public func opensWebSocket(_ bytes: Span<UInt8>, key: Span<UInt8>) -> Bool {
        guard status == 101, version == .http11,
            fields.count(of: .upgrade) == 1, let upgrade = fields.first(.upgrade),
            fields.count(of: .webSocketAccept) == 1, let accept = fields.first(.webSocketAccept)
        else { return false }
        let expected = WebSocketHandshake.accept(of: key)
        return bytes.slice(upgrade.value).equals("websocket")
            && bytes.slice(accept.value).elementsEqual(expected)
    }
}

extension Span where Element == UInt8 {
    fileprivate func elementsEqual(_ other: [UInt8]) -> Bool {
        if count != other.count { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }
}
