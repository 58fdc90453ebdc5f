import Testing

/// A message on stream 1 that RFC 9113 calls malformed, with the frames that say so.
///
/// The content that counts is `12345`, in whole or in part; what goes beyond is made of other digits.
struct Malformation: CustomTestStringConvertible {
    let what: String
    let frames: [UInt8]
    /// The head is in order, so that an application hears of the message before it is refused.
    var hasHead = false
    /// The last frame ends the stream.
    var isOver = false
    var method = "GET"

    var testDescription: String { what }

    typealias Fields = [(String, String)]

    static func head(_ what: String, _ fields: Fields) -> Malformation {
        Malformation(what: what, frames: RawFrames.headers(fields, endsStream: false))
    }

    static func trailers(_ what: String, _ fields: Fields) -> (String, [UInt8], Bool) {
        (what, RawFrames.headers(fields), true)
    }

    /// Behind a head that says nothing of a length.
    static let badTrailers: [(String, [UInt8], Bool)] = [
        ("trailers that do not end it", RawFrames.headers([("x", "1")], endsStream: false), false),
        trailers("a pseudo-field among trailers", [(":path", "/")]),
        trailers("a status among trailers", [(":status", "200")]),
        trailers("a capital among trailers", [("X", "1")]),
        trailers("a trailer without a name", [("", "1")]),
        trailers("a trailer with a line break", [("x", "a\nb: c")]),
        trailers("a trailer with a blank in front", [("x", " a")]),
        trailers("connection among trailers", [("connection", "close")]),
        trailers("keep-alive among trailers", [("keep-alive", "1")]),
        trailers("proxy-connection among trailers", [("proxy-connection", "close")]),
        trailers("transfer-encoding among trailers", [("transfer-encoding", "chunked")]),
        trailers("upgrade among trailers", [("upgrade", "h2c")]),
        trailers("te among trailers", [("te", "gzip")]),
    ]

    /// Behind a head that announces five bytes.
    static let badContent: [(String, [UInt8], Bool)] = [
        ("more content in one frame", data("123456", ends: false), false),
        ("more content and the end", data("123456"), true),
        (
            "more content in another frame", data("12345", ends: false) + data("6", ends: false),
            false
        ),
        (
            "more content than padding hides",
            RawFrames.frame(0, flags: 8, stream: 1, [3] + Array("123456".utf8) + [0, 0, 0]), false
        ),
        ("less content", data("1234"), true),
        ("no content", data(""), true),
        ("nothing but padding", RawFrames.frame(0, flags: 9, stream: 1, [5, 0, 0, 0, 0, 0]), true),
        (
            "less content and trailers",
            data("1234", ends: false) + RawFrames.headers([("x", "1")]),
            true
        ),
        ("no content and trailers", RawFrames.headers([("x", "1")]), true),
    ]

    static func data(_ text: String, ends: Bool = true) -> [UInt8] {
        RawFrames.data(Array(text.utf8), endsStream: ends)
    }

    /// Fields that no message may have (RFC 9113, sections 8.2.1 and 8.2.2), nor with such values.
    static let badFields: [(String, String)] =
        [
            ("Upper", "1"), ("x y", "1"), ("", "1"), ("a:b", "1"), ("a\u{0}", "1"),
            ("a\u{7F}", "1"),
            ("\u{E9}", "1"), ("x", "a\u{0}"), ("x", "a\nb: c"), ("x", "a\rb"), ("x", " a"),
            ("x", "a "), ("x", "\ta"), ("x", "a\u{1}"), ("x", "a\u{7F}"), ("x", "\n"),
            ("connection", "close"), ("connection", "te"), ("keep-alive", "1"),
            ("proxy-connection", "close"), ("transfer-encoding", "chunked"), ("upgrade", "h2c"),
            ("http2-settings", ""), ("te", "gzip"), ("te", "trailers, gzip"), ("te", ""),
            (":unknown", "1"),
        ]
        + ["", "x", "-1", "+1", "1x", "0x1", "5, 5", "18446744073709551616"].map {
            ("content-length", $0)
        }

    static let requests: [Malformation] =
        requestHeads
        + badFields.map {
            head("\($0.0.debugDescription): \($0.1.debugDescription)", RawFrames.get + [$0])
        }
        + (badContent.map { content($0, of: RawFrames.get(adding: ("content-length", "5"))) })
        + (badTrailers.map { content($0, of: RawFrames.get) })
        + [
            content(
                ("content where none is", data("6", ends: false), false),
                of: RawFrames.get(adding: ("content-length", "0"))),
            content(("another head", RawFrames.headers(RawFrames.get), true), of: RawFrames.get),
            Malformation(
                what: "a length, and the end with the head",
                frames: RawFrames.headers(RawFrames.get(adding: ("content-length", "5"))),
                isOver: true),
        ]

    private static func content(
        _ bad: (what: String, frames: [UInt8], isOver: Bool), of fields: Fields,
        method: String = "GET"
    ) -> Malformation {
        Malformation(
            what: bad.what, frames: RawFrames.headers(fields, endsStream: false) + bad.frames,
            hasHead: true, isOver: bad.isOver, method: method)
    }

    private static var requestHeads: [Malformation] {
        let get = RawFrames.get
        let connect = [(":method", "CONNECT"), (":authority", "a.example:443")]
        let handshake = [(":method", "CONNECT"), (":protocol", "websocket")] + get[1...]
        return get.map { field in head("no \(field.0)", get.filter { $0.0 != field.0 }) }
            + get.map { field in head("\(field.0) twice", [field] + get) }
            + get.map { field in head("\(field.0) of nothing", with(get, field.0, "")) }
            + get.map { field in
                head("\(field.0) too late", get.filter { $0.0 != field.0 } + [("x", "1"), field])
            }
            + handshake.indices.dropFirst().map { index in
                var fields = Array(handshake)
                let (name, _) = fields.remove(at: index)
                return head("a handshake without \(name)", fields)
            }
            + [
                head("a status", [(":status", "200")] + get),
                head("a status behind", get + [(":status", "200")]),
                head("a capital", with(get, ":path", nil) + [(":Path", "/")]),
                head("another scheme", with(get, ":scheme", "ftp")),
                head("a path without a slash", with(get, ":path", "a")),
                head("a whole target", with(get, ":path", "http://b/")),
                head("an asterisk for GET", with(get, ":path", "*")),
                head("another host", get + [("host", "b.example")]),
                head("a host of nothing", with(get, ":authority", nil) + [("host", "")]),
                head("two hosts", get + [("host", "a.example"), ("host", "a.example")]),
                head("two lengths", get + [("content-length", "5"), ("content-length", "5")]),
                head("CONNECT with a path", connect + [(":path", "/")]),
                head("CONNECT with a scheme", connect + [(":scheme", "https")]),
                head("CONNECT with a host alone", [connect[0], ("host", "a.example:443")]),
                head("CONNECT to nothing", [connect[0], (":authority", "")]),
                head("a handshake that is no CONNECT", get + [(":protocol", "websocket")]),
                head("another protocol", with(Array(handshake), ":protocol", "x")),
                head("a protocol of nothing", with(Array(handshake), ":protocol", "")),
                head("a handshake with a length", handshake + [("content-length", "5")]),
            ]
    }

    /// The fields with another value for a name, or without it.
    private static func with(_ fields: Fields, _ name: String, _ value: String?) -> Fields {
        fields.compactMap { $0.0 == name ? value.map { (name, $0) } : $0 }
    }
}

extension Malformation {
    private static let ok = (":status", "200")
    private static let hints = RawFrames.headers([(":status", "103")], endsStream: false)

    static let responses: [Malformation] =
        responseHeads
        + badFields.map { head("\($0.0.debugDescription): \($0.1.debugDescription)", [ok, $0]) }
        + (badContent.map { content($0, of: [ok, ("content-length", "5")]) })
        + (badContent.map {
            let late = content($0, of: [ok, ("content-length", "5")])
            return Malformation(
                what: "behind hints, \($0.0)", frames: hints + late.frames, hasHead: true,
                isOver: $0.2)
        })
        + (badTrailers.map { content($0, of: [ok]) })
        + [
            content(("another head", RawFrames.headers([ok], endsStream: false), false), of: [ok]),
            content(("another head and the end", RawFrames.headers([ok]), true), of: [ok]),
            content(("hints behind the head", hints, false), of: [ok]),
            content(("content of 204", data("6", ends: false), false), of: [(":status", "204")]),
            content(("content of 304", data("6", ends: false), false), of: [(":status", "304")]),
            content(
                ("content of 304 as long as it says", data("12345"), true),
                of: [(":status", "304"), ("content-length", "5")]),
            content(("content for HEAD", data("6", ends: false), false), of: [ok], method: "HEAD"),
            content(
                ("content for HEAD as long as it says", data("12345"), true),
                of: [ok, ("content-length", "5")], method: "HEAD"),
            Malformation(
                what: "a length, and the end with the head",
                frames: RawFrames.headers([ok, ("content-length", "5")]), isOver: true),
            Malformation(
                what: "hints and the end", frames: RawFrames.headers([(":status", "103")]),
                isOver: true),
            Malformation(what: "content behind hints", frames: hints + data("6", ends: false)),
            Malformation(what: "the end behind hints", frames: hints + data(""), isOver: true),
            Malformation(
                what: "trailers behind hints", frames: hints + RawFrames.headers([("x", "1")]),
                isOver: true),
        ]

    private static var responseHeads: [Malformation] {
        [
            head("no status", [("x", "1")]), head("nothing", []),
            head("a status of nothing", [(":status", "")]), head("two statuses", [ok, ok]),
            head("a status too late", [("x", "1"), ok]),
            head("a status behind a field", [ok, ("x", "1"), ok]),
            head("two digits", [(":status", "20")]), head("four digits", [(":status", "2000")]),
            head("letters", [(":status", "2xx")]), head("a sign", [(":status", "+20")]),
            head("letters of an interim answer", [(":status", "1ab")]),
            head("101", [(":status", "101")]), head("a capital", [(":Status", "200")]),
            head("a length of 204", [(":status", "204"), ("content-length", "5")]),
            head(
                "two lengths of 204",
                [(":status", "204"), ("content-length", "0"), ("content-length", "0")]),
            head("two lengths", [ok, ("content-length", "5"), ("content-length", "5")]),
            head("a length of hints", [(":status", "103"), ("content-length", "0")]),
            head("connection in hints", [(":status", "103"), ("connection", "close")]),
        ]
            + [":method", ":path", ":scheme", ":authority", ":protocol"].map {
                head("\($0) of a request", [ok, ($0, "/")])
            }
    }
}
