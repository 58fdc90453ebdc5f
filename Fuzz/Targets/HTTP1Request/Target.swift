internal import HTTP

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    var parser = RequestParser(limits: HeadLimits())
    var head = RequestHead()
    _ = try? parser.parse(bytes.span, into: &head)
    return 0
}
