internal import HTTP
internal import Reactor

/// What must hold for any bytes that a client of HTTP/2 sends. A fuzzer and the replay of its corpus
/// share it.
///
/// The first byte is the seed of everything that is not the client's: how its bytes arrive, and what
/// the application does with each request. Behind it come frames; the preface is there already,
/// unless the seed's highest bit is set.
public enum HTTP2ServerInvariants {
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        guard let seed = bytes.first else { return nil }
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        let sent = (seed & 0x80 == 0 ? preface : []) + bytes.dropFirst()
        guard let connection = HostileClient(seed: seed) else { return "no session" }
        return connection.run(sent)
    }
}

/// One connection: the session, the requests that came of it, and an application that answers them
/// in all the ways that there are.
private final class HostileClient {
    private static let limits = {
        var limits = HTTP2Limits()
        limits.concurrentStreams = 8
        limits.streamWindow = 65_535
        limits.head = HeadInvariants.limits
        limits.idleFrames = 100
        return limits
    }()
    /// Replies that a frame can call for, for each byte of it, at the most: a PING is answered by a
    /// frame of its size, nine bytes by a reset of thirteen.
    private static let gain = 4
    /// What a connection says of its own accord: settings, windows, a farewell.
    private static let greeting = 256

    private let session: HTTP2Session
    private var dice: SeededGenerator
    private let pieces: ClosedRange<Int>
    private var served: [ServedStream] = []
    private var now = MonotonicInstant(nanoseconds: 1)
    private var arrived = 0
    private var produced = 0
    private var found: String?

    init?(seed: UInt8) {
        guard let session = try? HTTP2Session(role: .server, limits: Self.limits, now: now) else {
            return nil
        }
        self.session = session
        dice = SeededGenerator(seed: UInt64(seed))
        pieces = [1...1, 1...64, 16_384...16_384].pick(using: &dice)
        session.onRequest = { [unowned self] in take($0) }
    }

    func run(_ bytes: [UInt8]) -> String? {
        var rest = bytes[...]
        while !rest.isEmpty && found == nil {
            let piece = Array(rest.prefix(Int.random(in: pieces, using: &dice)))
            rest = rest.dropFirst(piece.count)
            arrived += piece.count
            now = now.advanced(byNanoseconds: 1_000_000)
            do throws(HTTP2Failure) {
                try session.receive(piece.span, now: now)
            } catch {
                if session.failure == nil { found = "an end without a reason" }
                break
            }
            move()
        }
        move()
        session.dropLeftovers(patience: 1)
        session.finishShutdown()
        move()
        session.abandon()
        if session.hasStreams { found = found ?? "streams that outlive their connection" }
        for stream in served { found = found ?? stream.violationAtTheEnd }
        return found
    }

    private func take(_ stream: HTTP2Stream) {
        let answer = ServedStream(stream, limits: Self.limits.head, &dice)
        found = found ?? answer.violation
        served.append(answer)
    }

    /// The application's turn, and what goes out then.
    private func move() {
        for stream in served {
            stream.go()
            found = found ?? stream.violation
        }
        let output = ByteBuffer(capacity: 1024)
        var rounds = 0
        while session.produce(into: output, limit: 1 << 16) {
            produced += output.count
            output.removeAll()
            rounds += 1
            if rounds > 1000 { return found = "output without an end" }
        }
        produced += output.count
        if session.streamCount > Int(Self.limits.concurrentStreams) {
            found = found ?? "\(session.streamCount) streams"
        }
        let allowed =
            Self.greeting + Self.gain * arrived + served.reduce(0) { $0 + $1.mostOutput }
        if produced > allowed { found = found ?? "\(produced) bytes for \(arrived)" }
    }
}
