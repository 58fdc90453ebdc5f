#if DEBUG
    import Reactor
    import Testing

    @Suite("Fault rules")
    struct FaultRuleTests {
        @Test(
            "texts are rules",
            arguments: [
                ("accept:EMFILE", FaultRule("accept", .tooManyOpenFiles)),
                ("accept:EMFILE:3", FaultRule("accept", .tooManyOpenFiles, times: 3)),
                ("send:short=7", FaultRule("send", .short(7))),
                ("recv:EAGAIN:1/3@10", FaultRule("recv", .wouldBlock, skipped: 10, period: 3)),
                (
                    "open[/state/a:b]:ENOSPC@2",
                    FaultRule("open", .noSpace, place: "/state/a:b", skipped: 2)
                ),
                ("write[1]:EPIPE:5", FaultRule("write", .brokenPipe, place: "1", times: 5)),
            ] as [(String, FaultRule)])
        func texts(text: String, rule: FaultRule) throws {
            #expect(try FaultRule.parse(text) == [rule])
            #expect(try FaultRule.parse("socket:EINTR,\(text)").last == rule)
        }

        @Test(
            "anything else is none",
            arguments: [
                "", "accept", "accept:", ":EMFILE", "accept:EWHAT", "accept:EMFILE:0",
                "accept:EMFILE:x", "accept:EMFILE:1/0", "accept:EMFILE@-1", "accept:EMFILE:1:2",
                "send:short=0", "send:short", "open[x:ENOSPC", "accept:EMFILE,,send:short=1",
            ])
        func refused(text: String) {
            #expect(throws: FaultTextError.self) { try FaultRule.parse(text) }
        }
    }
#endif
