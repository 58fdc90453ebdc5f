internal import CNGHTTP2

/// What both sides let each other do (RFC 9113, section 6.5).
extension HTTP2Session {
    /// Says what we take, in the first bytes of ours.
    func submitSettings() {
        var settings: [nghttp2_settings_entry] = [
            .init(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, UInt32(limits.streamWindow)),
            .init(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(clamping: limits.head.bytes)),
        ]
        if role == .server {
            settings.append(
                .init(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.concurrentStreams))
            // WebSocket (RFC 8441).
            settings.append(.init(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1))
        } else {
            settings.append(.init(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
        }
        nghttp2_submit_settings(pointer, 0, &settings, settings.count)
        nghttp2_session_set_local_window_size(pointer, 0, 0, limits.connectionWindow)
    }

    /// The peer said what it takes.
    func greeted() {
        if isGreeted { return }
        isGreeted = true
        if role == .client { onCapacity() }
    }

    /// The peer lets us open another stream now. One that did not say yet how many it takes lets us
    /// open one.
    public var canOpenStream: Bool {
        if !isGreeted && hasStreams { return false }
        let allowed = nghttp2_session_get_remote_settings(
            pointer, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return streamCount < Int(min(allowed, limits.concurrentStreams))
            && nghttp2_session_check_request_allowed(pointer) != 0
    }

    /// Whether the peer takes extended CONNECT (RFC 8441, section 3); nil while it did not say. One
    /// that is gone would not say any more, and tells so when it is asked.
    var takesWebSocket: Bool? {
        if isAbandoned { return true }
        if !isGreeted { return nil }
        return nghttp2_session_get_remote_settings(
            pointer, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1
    }
}

extension nghttp2_settings_entry {
    init(_ id: nghttp2_settings_id, _ value: UInt32) {
        self.init(settings_id: Int32(id.rawValue), value: value)
    }
}
