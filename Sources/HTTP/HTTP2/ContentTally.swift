/// How much content a message has, beside what its head says: a message where the two differ is
/// malformed (RFC 9113, section 8.1.1).
struct ContentTally {
    /// Content-Length; nil where the head says nothing.
    private let declared: UInt64?
    private var counted: UInt64 = 0

    /// The tally of a message whose head is there.
    init(declared: UInt64? = nil) {
        self.declared = declared
    }

    /// Content came.
    ///
    /// - Returns: false when it is more than the head says.
    mutating func add(_ count: Int) -> Bool {
        guard let declared else { return true }
        counted += UInt64(clamping: count)
        return counted <= declared
    }

    /// The message may end here.
    var isComplete: Bool { declared == nil || declared == counted }
}
