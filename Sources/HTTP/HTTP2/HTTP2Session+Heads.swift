internal import CNGHTTP2
internal import Reactor

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
        let text = ByteBuffer(capacity: 256)
        var lengths: [(name: Int, value: Int)] = []
        for field in trailers {
            text.append(field.name)
            text.append(field.value)
            lengths.append((field.name.count, field.value.count))
        }
        text.withUnsafeBytes { bytes in
            // Safe: the memory of `text`, which is ours alone, is mutable.
            let bytes = UnsafeMutableRawBufferPointer(mutating: bytes)
            var list: [nghttp2_nv] = []
            var start = 0
            for (name, value) in lengths {
                for index in start..<(start + name) { bytes[index] = bytes[index].lowercased }
                // Safe: both runs lie in `bytes`, which the library copies before it returns.
                let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                list.append(
                    nghttp2_nv(
                        name: base.map { $0 + start }, value: base.map { $0 + start + name },
                        namelen: name, valuelen: value, flags: 0))
                start += name + value
            }
            nghttp2_submit_trailer(pointer, stream.id, list, list.count)
        }
    }
}
