import Policy
import Testing

@Suite("W3C Trace Context")
struct TraceContextTests {
    private static let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    private static let parent = TraceParent(
        traceID: TraceID(high: 0x0af7_6519_16cd_43dd, low: 0x8448_eb21_1c80_319c),
        spanID: 0xb7ad_6b71_6920_3331, isSampled: true)

    private func parse(_ text: String) -> TraceParent? {
        TraceParent(text: Array(text.utf8).span)
    }

    @Test("traceparent of version 00 is read, and of its flags one")
    func reads() {
        #expect(parse(Self.good) == Self.parent)
        for (flags, isSampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            #expect(parse(Self.good.dropLast(2) + flags)?.isSampled == isSampled)
        }
    }

    @Test("a later version is read as far as 00 goes, if a hyphen follows")
    func laterVersions() {
        for version in ["01", "cc", "fe"] {
            let later = version + Self.good.dropFirst(2)
            #expect(parse(later) == Self.parent)
            #expect(parse(later + "-") == Self.parent)
            #expect(parse(later + "-more") == Self.parent)
            #expect(parse(later + "more") == nil)
        }
    }

    @Test("any byte of a wrong kind makes it none")
    func refuses() {
        let good = Array(Self.good.utf8)
        #expect(parse(Self.good + "-") == nil)
        #expect(parse(Self.good + " ") == nil)
        for count in 0..<good.count {
            #expect(TraceParent(text: Array(good[..<count]).span) == nil)
        }
        for index in good.indices {
            for byte in "gGA_ \0\u{7f}".utf8 {
                var bad = good
                bad[index] = byte
                #expect(TraceParent(text: bad.span) == nil, "\(byte) at \(index)")
            }
        }
        #expect(parse("ff" + Self.good.dropFirst(2)) == nil)
        #expect(parse("00-\(String(repeating: "0", count: 32))-b7ad6b7169203331-01") == nil)
        #expect(parse("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01") == nil)
    }

    private func mayPass(_ lines: String...) -> Bool {
        var check = TraceStateCheck()
        return lines.allSatisfy { check.take(Array($0.utf8).span) }
    }

    @Test(
        "tracestate is a list of keys and values",
        arguments: [
            "a=b", "a=b,c=d", "a=b , c=d", "a=b,\tc=d", "", ",", "a=b,", "a0_-*/=x y!", "0t@s=1",
            "a= b",
        ])
    func states(text: String) {
        #expect(mayPass(text))
    }

    @Test(
        "and is dropped as a whole for one mistake",
        arguments: [
            "a", "a=", "=b", "A=b", "0=b", "_a=b", "a=b=c", "a=\u{7f}", "a=b;c=d\u{1}", "a@=b",
            "@a=b",
            "a@0=b", "a@b@c=d", "a b=c", "a =b", "a=b,C=d", "ä=b",
        ])
    func badStates(text: String) {
        #expect(!mayPass(text))
        #expect(!mayPass("x=y", text))
    }

    @Test("lengths of keys and values have their limits, and so has the whole")
    func limits() {
        let key = String(repeating: "k", count: 256)
        #expect(mayPass("\(key)=v"))
        #expect(!mayPass("k\(key)=v"))
        let tenant = String(repeating: "t", count: 241)
        #expect(mayPass("\(tenant)@\(String(repeating: "s", count: 14))=v"))
        #expect(!mayPass("t\(tenant)@s=v"))
        #expect(!mayPass("t@\(String(repeating: "s", count: 15))=v"))
        let value = String(repeating: "v", count: 256)
        #expect(mayPass("k=\(value)"))
        #expect(!mayPass("k=\(value)v"))
        #expect(mayPass("a=\(value.dropFirst(2))", "b=\(value.dropFirst(3))"))
        #expect(!mayPass("a=\(value.dropFirst(2))", "b=\(value.dropFirst(2))"))
        let many = (0..<32).map { "k\($0)=v" }.joined(separator: ",")
        #expect(mayPass(many))
        #expect(!mayPass(many, "l=v"))
    }

    @Test("a share of 0 takes no trace, one of 1 takes all, and others that share of the names")
    func sampler() {
        let names = (0..<1000).map { TraceID(high: 1, low: UInt64($0) << 54 | 0x3F) }
        let all = names + [TraceID(high: 0, low: .max), TraceID(high: 1, low: 0)]
        #expect(all.allSatisfy { TraceSampler(share: 1).includes($0) })
        #expect(!all.contains { TraceSampler(share: 0).includes($0) })
        let half = names.filter { TraceSampler(share: 0.5).includes($0) }
        #expect(half.count == 512)
        // Who is in a share is in each larger one.
        #expect(half.allSatisfy { TraceSampler(share: 0.6).includes($0) })
        #expect(TraceSampler(share: 1.0.nextDown).includes(names[0]))
    }
}
