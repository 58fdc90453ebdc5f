#if DEBUG
    /// Bits of poll(2) and epoll(7).
    enum Readiness {
        static let input: UInt32 = 0x001
        static let output: UInt32 = 0x004
        static let error: UInt32 = 0x008
        static let end: UInt32 = 0x010
        static let peerEnd: UInt32 = 0x2000
        static let edgeTriggered: UInt32 = 1 << 31
        static let all = input | output | error | end | peerEnd
    }
#endif
