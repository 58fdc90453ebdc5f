public import HTTP

/// What must hold for any bytes that arrive as a chunked body.
public enum ChunkedInvariants {
    /// What became of a body.
    public enum Outcome: Equatable {
        case incomplete(content: [UInt8])
        case malformed
        /// `length` counts every byte up to the end of the body.
        case complete(content: [UInt8], trailers: [[[UInt8]]], length: Int)

        /// Names and values.
        public var trailers: [[[UInt8]]] {
            if case .complete(_, let trailers, _) = self { trailers } else { [] }
        }

        var withoutTrailers: Self {
            guard case .complete(let content, _, let length) = self else { return self }
            return .complete(content: content, trailers: [], length: length)
        }
    }

    /// The decoder agrees with a model that looks at the whole body at once, however the bytes
    /// arrive.
    ///
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        let model = ChunkedModel(bytes).outcome
        for piece in [1, 3, max(bytes.count, 1)] {
            let outcome = decode(bytes, pieces: piece)
            if let trailer = outcome.trailers.first(where: isForbidden) {
                return "trailer \(trailer) passed"
            }
            // The model keeps every trailer field: what may pass is checked above.
            if outcome.withoutTrailers != model.withoutTrailers
                || !outcome.trailers.allSatisfy(model.trailers.contains)
            {
                return "in pieces of \(piece) \(outcome), model \(model)"
            }
        }
        return nil
    }

    /// Some of the names that must not come after the body, however they are spelled (pitfall W8).
    private static func isForbidden(_ trailer: [[UInt8]]) -> Bool {
        let name = String(decoding: trailer[0], as: UTF8.self).lowercased()
        return [
            "content-length", "transfer-encoding", "host", "authorization", "cookie", "via",
            "x-firebase-appcheck", "x-forwarded-for", "x-appcheck-verdict", "set-cookie", "te",
        ].contains(String(name.map { $0.isLetter || $0.isNumber ? $0 : "-" }))
    }

    /// Runs a decoder over bytes that arrive `pieces` at a time, as a connection does: what was not
    /// consumed is offered again together with what came.
    public static func decode(
        _ bytes: [UInt8], framing: BodyFraming = .chunked, pieces: Int
    ) -> Outcome {
        var decoder = BodyDecoder(framing)
        var content: [UInt8] = []
        var start = 0
        var end = 0
        while true {
            let step: BodyStep
            do throws(MalformedMessage) {
                step = try decoder.next(bytes.span.extracting(start..<end))
            } catch {
                return .malformed
            }
            switch step {
            case .content(let skip, let count):
                start += skip
                content += bytes[start..<(start + count)]
                start += count
                decoder.consumed(count)
            case .end(let skip):
                let trailers = decoder.trailers.map { [$0.name, $0.value] }
                return .complete(content: content, trailers: trailers, length: start + skip)
            case .needsMore(let skip):
                start += skip
                if end == bytes.count { return .incomplete(content: content) }
                end = min(end + pieces, bytes.count)
            }
        }
    }
}
