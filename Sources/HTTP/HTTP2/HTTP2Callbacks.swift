internal import CNGHTTP2
internal import Reactor

/// What nghttp2 tells a session while it reads and writes frames.
enum HTTP2Callbacks {
    /// A session of the library that reports to `session`; nil without memory.
    static func makeSession(role: HTTP2Session.Role, for session: HTTP2Session) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        var option: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        guard nghttp2_option_new(&option) == 0 else { return nil }
        defer { nghttp2_option_del(option) }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, beganHeaders)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, gotField)
        nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, beganFrame)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, gotFrame)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, gotContent)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closedStream)
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, sentFrame)
        // Windows open when content was taken, not when it came.
        nghttp2_option_set_no_auto_window_update(option, 1)
        // What a closed stream was is of no use to us, and costs memory.
        nghttp2_option_set_no_closed_streams(option, 1)
        nghttp2_option_set_max_outbound_ack(option, 256)
        nghttp2_option_set_max_settings(option, 32)
        // Resets have a budget of ours, which knows what else the connection does.
        nghttp2_option_set_stream_reset_rate_limit(option, 1 << 20, 1 << 20)
        nghttp2_option_set_peer_max_concurrent_streams(option, 100)
        // What a message may be is judged once, by us: the library drops fields with characters
        // that may not be there without a word, and looks at each byte that a parser of ours looks
        // at again.
        nghttp2_option_set_no_http_messaging(option, 1)
        // Safe: unretained, because the session owns the library's object and frees it first.
        let context = Unmanaged.passUnretained(session).toOpaque()
        var made: OpaquePointer?
        let result = session.memory.library.withFunctions { memory in
            role == .server
                ? nghttp2_session_server_new3(&made, callbacks, context, option, memory)
                : nghttp2_session_client_new3(&made, callbacks, context, option, memory)
        }
        return result == 0 ? made : nil
    }

    /// Calls `body` with the session that a callback is for; without one, the answer is `other`.
    ///
    /// There are thirty calls for a request: to count a reference for each would cost more than most
    /// of them do.
    @inline(__always)
    private static func withSession<Answer>(
        _ context: UnsafeMutableRawPointer?, or other: Answer, _ body: (HTTP2Session) -> Answer
    ) -> Answer {
        guard let context else { return other }
        // Safe: the pointer is the one that `makeSession` gave the library, and the session is alive
        // while it calls the library.
        return Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef(body)
    }

    // MARK: Heads

    private static let beganHeaders: nghttp2_on_begin_headers_callback = { _, frame, context in
        guard let frame = frame?.pointee else { return 0 }
        return withSession(context, or: 0) { session in
            let id = frame.hd.stream_id
            let isRequest =
                session.role == .server && frame.headers.cat == NGHTTP2_HCAT_REQUEST
            if isRequest {
                session.beganHead(of: HTTP2Stream(session: session), id: id)
                session.beginAssembly(isTrailing: false, answersHandshake: false)
                return 0
            }
            let stream = session.stream(id)
            session.beginAssembly(
                isTrailing: stream?.hasHead == true,
                answersHandshake: stream?.webSocketKey != nil)
            return 0
        }
    }

    private static let gotField: nghttp2_on_header_callback = {
        _, _, name, nameCount, value, valueCount, _, context in
        withSession(context, or: 0) { session in
            // Safe: the library gives both runs with their lengths, valid during the call.
            let nameBytes = UnsafeBufferPointer(start: name, count: nameCount)
            let valueBytes = UnsafeBufferPointer(start: value, count: valueCount)
            if session.addField(nameBytes.span, valueBytes.span) { return 0 }
            // To go on decoding it would cost more than the connection is worth (RFC 9113, section
            // 10.5.1): a few bytes can stand for a long field that came before.
            session.end(.flood, code: .enhanceYourCalm)
            return CNGHTTP2_CALLBACK_FAILURE
        }
    }

    /// - Returns: false when the message is malformed.
    private static func finishHead(
        _ session: HTTP2Session, _ stream: HTTP2Stream, isOver: Bool
    ) -> Bool {
        guard let assembly = session.assembly else { return true }
        if stream.hasHead {
            if assembly.isMalformed || !isOver || !mayEnd(stream) { return false }
            stream.trailers = assembly.trailers
            return true
        }
        // No window counts heads: of interim ones that nobody read yet, there are not too many.
        if stream.headBytes > session.limits.head.bytes { return false }
        // Interim heads come before the one that content follows.
        let isInterim = session.role == .client && assembly.isInterim
        if isInterim {
            if isOver { return false }
        } else {
            stream.tally = tally(of: assembly, on: stream, session.role)
            if isOver && !stream.tally.isComplete { return false }
        }
        let isWhole = stream.receiveHead { text in
            session.role == .server
                ? assembly.writeRequest(into: text)
                : assembly.writeResponse(into: text, to: stream.webSocketKey)
        }
        guard isWhole else { return false }
        stream.hasHead = !isInterim
        stream.hasContent = !isOver
        stream.isReceivingOver = isOver
        if session.role == .server {
            stream.noteRequestMethod(assembly.isHeadRequest ? .head : .get)
            if assembly.isWebSocket { stream.noteWebSocket() }
            session.arrived(stream)
        } else {
            stream.waiter?.wake()
        }
        return true
    }

    /// What the content of a message has to come to.
    private static func tally(
        of assembly: HeadAssembly, on stream: HTTP2Stream, _ role: HTTP2Session.Role
    ) -> ContentTally {
        // The length is that of what is not sent (RFC 9110, section 8.6).
        let isEmpty = role == .client && (stream.requestMethod == .head || assembly.saysNothing)
        return ContentTally(declared: isEmpty ? 0 : assembly.contentLength)
    }

    // MARK: Frames

    private static let beganFrame: nghttp2_on_begin_frame_callback = { _, header, context in
        guard let header = header?.pointee else { return 0 }
        return withSession(context, or: 0) { session in
            let isIdle: Bool
            if UInt32(header.type) != NGHTTP2_CONTINUATION.rawValue { session.endedHead() }
            switch UInt32(header.type) {
            case NGHTTP2_DATA.rawValue:
                isIdle =
                    header.length == 0
                    && header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) == 0
            case NGHTTP2_HEADERS.rawValue:
                if !session.expectsHead(of: header.stream_id) { return CNGHTTP2_CALLBACK_FAILURE }
                session.ended.began(header.stream_id)
                isIdle = false
            case NGHTTP2_WINDOW_UPDATE.rawValue: isIdle = !session.allowance.spendWindowUpdate()
            case NGHTTP2_RST_STREAM.rawValue where session.stream(header.stream_id) != nil:
                isIdle = false
                session.ended.noteReset(of: header.stream_id)
                // One that ends a stream of ours cost us that stream.
                if session.role == .server && !session.countReset() {
                    return CNGHTTP2_CALLBACK_FAILURE
                }
            default: isIdle = true
            }
            return isIdle && !session.countIdleFrame() ? CNGHTTP2_CALLBACK_FAILURE : 0
        }
    }

    private static let gotFrame: nghttp2_on_frame_recv_callback = { _, frame, context in
        guard let frame = frame?.pointee else { return 0 }
        return withSession(context, or: 0) { session in
            switch UInt32(frame.hd.type) {
            case NGHTTP2_HEADERS.rawValue:
                session.endedHead()
                session.withStream(frame.hd.stream_id) { gotHead(session, $0, frame.hd) }
                session.endAssembly()
            case NGHTTP2_DATA.rawValue:
                // Padding alone moves nothing either.
                let isEmpty = frame.hd.length > 0 && frame.hd.length == frame.data.padlen
                if isEmpty && !session.countIdleFrame() { return CNGHTTP2_CALLBACK_FAILURE }
                session.withStream(frame.hd.stream_id) { endContent(session, $0, frame.hd) }
            case NGHTTP2_GOAWAY.rawValue: session.isGoingAway = true
            case NGHTTP2_SETTINGS.rawValue: session.greeted()
            default: break
            }
            return 0
        }
    }

    private static func gotHead(
        _ session: HTTP2Session, _ stream: HTTP2Stream, _ frame: nghttp2_frame_hd
    ) {
        if stream.isMalformed { return }
        if finishHead(session, stream, isOver: endsStream(frame)) {
            endReceiving(stream, frame)
        } else {
            session.refuse(stream)
        }
    }

    private static func endContent(
        _ session: HTTP2Session, _ stream: HTTP2Stream, _ frame: nghttp2_frame_hd
    ) {
        if !endsStream(frame) || stream.isMalformed { return }
        if stream.hasHead && mayEnd(stream) {
            endReceiving(stream, frame)
        } else {
            session.refuse(stream)
        }
    }

    /// The content is as long as the head says. What nobody reads was not counted.
    private static func mayEnd(_ stream: HTTP2Stream) -> Bool {
        stream.tally.isComplete || stream.isReceivingUnwanted
    }

    private static func endsStream(_ frame: nghttp2_frame_hd) -> Bool {
        frame.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    }

    private static func endReceiving(_ stream: HTTP2Stream, _ frame: nghttp2_frame_hd) {
        if !endsStream(frame) { return }
        stream.isReceivingOver = true
        stream.waiter?.wake()
    }

    private static let gotContent: nghttp2_on_data_chunk_recv_callback = {
        _, _, id, bytes, count, context in
        guard let bytes else { return 0 }
        return withSession(context, or: 0) { session in
            guard let stream = session.stream(id), !stream.isReceivingUnwanted,
                session.counts(count, on: stream)
            else {
                session.consumedUnwanted(count)
                return 0
            }
            session.allowance.earnIdleFrame()
            // Safe: the library gives `count` bytes, valid during the call.
            stream.receive(UnsafeRawBufferPointer(start: bytes, count: count))
            return 0
        }
    }

    private static let closedStream: nghttp2_on_stream_close_callback = {
        _, id, code, context in
        withSession(context, or: 0) { session in
            guard let stream = session.stream(id) else { return 0 }
            session.forget(stream)
            if stream.isReceivingOver { session.ended.noteEnd(of: id) }
            if stream.isReceivingUnwanted { session.discard(stream) }
            stream.ended(code)
            session.streamEnded(stream.resetCode ?? code)
            return 0
        }
    }

    private static let sentFrame: nghttp2_on_frame_send_callback = { _, frame, context in
        guard let frame = frame?.pointee else { return 0 }
        return withSession(context, or: 0) { session in
            switch UInt32(frame.hd.type) {
            case NGHTTP2_DATA.rawValue:
                session.allowance.earnWindowUpdates()
                session.allowance.earnIdleFrame()
                if endsStream(frame.hd) {
                    session.withStream(frame.hd.stream_id) { $0.hasEndLeft = true }
                }
            case NGHTTP2_HEADERS.rawValue:
                session.withStream(frame.hd.stream_id) { stream in
                    stream.hasHeadLeft = true
                    if endsStream(frame.hd) { stream.hasEndLeft = true }
                }
            case NGHTTP2_RST_STREAM.rawValue:
                let isRefusal =
                    frame.rst_stream.error_code == HTTP2ErrorCode.refusedStream.rawValue
                if isRefusal && session.role == .server { session.onRefusal() }
                countBlame(session, frame.rst_stream.error_code)
            case NGHTTP2_GOAWAY.rawValue where frame.goaway.error_code != 0:
                // The library ends a connection for what is wrong with its frames without asking.
                session.failure = session.failure ?? .protocolError
            default: break
            }
            return 0
        }
    }

    /// A peer that makes us reset streams again and again costs as much as one that resets them
    /// itself. What we give up for reasons of our own is not its fault.
    private static func countBlame(_ session: HTTP2Session, _ code: UInt32) {
        switch HTTP2ErrorCode(rawValue: code) {
        case .some(.none), .cancel, .internalError: break
        default: _ = session.countReset()
        }
    }

    // MARK: Content that goes out

    static let readContent: nghttp2_data_source_read_callback = {
        _, id, buffer, length, flags, _, context in
        let failure = Int(CNGHTTP2_STREAM_FAILURE)
        guard let buffer else { return failure }
        return withSession(context, or: failure) { session in
            // Safe: the library gives room for `length` bytes.
            let room = UnsafeMutableRawBufferPointer(start: buffer, count: length)
            return session.withStream(id) { read($0, of: session, into: room, flags) } ?? failure
        }
    }

    private static func read(
        _ stream: HTTP2Stream, of session: HTTP2Session, into room: UnsafeMutableRawBufferPointer,
        _ flags: UnsafeMutablePointer<UInt32>?
    ) -> Int {
        switch stream.pull(into: room) {
        case .nothing:
            stream.isDeferred = true
            return Int(CNGHTTP2_DEFERRED)
        case .bytes(let count, let isLast):
            if isLast {
                flags?.pointee |= CNGHTTP2_EOF
                let trailers = stream.takeTrailers()
                if !trailers.isEmpty {
                    flags?.pointee |= CNGHTTP2_NO_END_STREAM
                    session.submitTrailers(trailers, on: stream)
                }
            }
            return count
        }
    }
}
