/// Looks for a JWT in decoded bytes that come one by one: base64url text that begins with "eyJ"
/// (which is `{"`), or three segments as long as those of a JWT. Finds the first and takes all up
/// to the last.
struct TokenRun {
    /// Where tokens were found, in the raw bytes.
    private(set) var token: Range<Int>?

    /// Characters from "eyJ" on that make it more than a coincidence.
    static let shortestToken = 20

    /// The last three decoded bytes, and where they began.
    private var window: UInt32 = 0
    private var starts = (oldest: 0, middle: 0, newest: 0)
    /// Where "eyJ" began in this run, and how many characters came since.
    private var head: Int?
    private var sinceHead = 0
    /// Where this run began, nil outside a run.
    private var start: Int?
    /// Characters of this segment and of the two before it.
    private var segments = (last: 0, middle: 0, first: 0)
    private var hasThreeSegments = false

    /// - Parameters:
    ///   - byte: Decoded.
    ///   - position: Where its raw form begins.
    @inline(__always)
    mutating func append(_ byte: UInt8, from position: Int) {
        let isDot = byte == UInt8(ascii: ".")
        guard isDot || isBase64URL(byte) else {
            if start != nil { finish(at: position) }
            return
        }
        if start == nil { start = position }
        starts = (starts.middle, starts.newest, position)
        window = window << 8 | UInt32(byte)
        if head == nil, window & 0xff_ffff == 0x65_794a {
            head = starts.oldest
            sinceHead = 2
        }
        sinceHead += 1
        if isDot {
            segments = (0, segments.last, segments.middle)
        } else {
            segments.last += 1
            if segments.last >= 40, segments.middle >= 16, segments.first >= 16 {
                hasThreeSegments = true
            }
        }
    }

    /// Ends a run.
    ///
    /// - Parameter end: Where the raw bytes behind it begin.
    mutating func finish(at end: Int) {
        if hasThreeSegments, let start {
            token = (token?.lowerBound ?? start)..<end
        } else if let head, sinceHead >= Self.shortestToken {
            token = (token?.lowerBound ?? head)..<end
        }
        window = 0
        head = nil
        sinceHead = 0
        start = nil
        segments = (0, 0, 0)
        hasThreeSegments = false
    }
}
