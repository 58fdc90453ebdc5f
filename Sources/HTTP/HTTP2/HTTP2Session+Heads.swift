internal import CNGHTTP2

/// Header blocks that go out (RFC 9113, section 8.1).
extension HTTP2Session {
    func submitInterim(_ head: OutgoingHead, on stream: HTTP2Stream) {
        head.withFields(isSecure: isSecure) { fields, count in
            nghttp2_submit_headers(pointer, 0, stream.id, nil, fields, count, nil)
        }
        hasOutput()
    }

    func submit(_ head: OutgoingHead, on stream: HTTP2Stream, hasContent: Bool) {
        if isAbandoned { return stream.ended(HTTP2ErrorCode.refusedStream.rawValue) }
        var provider = nghttp2_data_provider(
            source: nghttp2_data_source(), read_callback: HTTP2Callbacks.readContent)
        head.withFields(isSecure: isSecure) { fields, count in
            withUnsafePointer(to: &provider) { provider in
                let provider = hasContent ? provider : nil
                if role == .server {
                    nghttp2_submit_response(pointer, stream.id, fields, count, provider)
                } else {
                    let id = nghttp2_submit_request(pointer, nil, fields, count, provider, nil)
                    if id > 0 {
                        began(stream, id: id)
                    } else {
                        stream.ended(HTTP2ErrorCode.refusedStream.rawValue)
                    }
                }
            }
        }
        hasOutput()
    }

    func submitTrailers(_ trailers: [(name: [UInt8], value: [UInt8])], on stream: HTTP2Stream) {
        let head = memory.takeHead()
        head.withTrailers(trailers) { fields, count in
            nghttp2_submit_trailer(pointer, stream.id, fields, count)
        }
        memory.giveBack(head)
    }
}
