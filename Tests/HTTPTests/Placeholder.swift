import HTTP
import Testing

@Test("smoke") func smoke() throws {
    var parser = RequestParser(limits: HeadLimits())
    var head = RequestHead()
    let text =
        "POST /v1/%61b?x=1 HTTP/1.1\r\nHost: EXAMPLE.com.:443\r\nContent-Length: 5\r\nX_AppCheck_App: 1\r\nX-Firebase-AppCheck: abc\r\nConnection: foo, close\r\nFoo: 1\r\n\r\nhello"
    let bytes = Array(text.utf8)
    let done = try parser.parse(bytes.span, into: &head)
    #expect(done)
    #expect(head.target.host == Array("example.com".utf8))
    #expect(head.target.rewritten == Array("/v1/ab".utf8))
    #expect(head.framing == .length(5))
    #expect(head.fields.contains(.reserved) && head.fields.contains(.appCheckToken))
    #expect(!head.isPersistent)
    #expect(head.fields.lines.map(\.isHopByHop) == [false, false, false, false, true, true])
}
