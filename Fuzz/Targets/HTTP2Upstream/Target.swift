internal import TestKit

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // Safe: libFuzzer passes `count` readable bytes, which are copied before it takes them back.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = HTTP2UpstreamInvariants.violation(of: bytes) { fatalError(violation) }
    return 0
}
