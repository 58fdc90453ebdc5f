import HTTP
import Reactor

/// One side of a connection that is fed bytes.
protocol SessionUnderTest: AnyObject {
    var session: HTTP2Session { get }
    var now: MonotonicInstant { get }
}

extension SessionUnderTest {
    /// Sends bytes to it, and returns the frames that it answers with.
    @discardableResult
    func exchange(_ bytes: [UInt8]) -> [SentFrame] {
        do throws(HTTP2Failure) {
            try session.receive(bytes.span, now: now)
        } catch {}
        return sent()
    }

    /// The frames that it has to send.
    func sent() -> [SentFrame] {
        let output = ByteBuffer(capacity: 1024)
        while session.produce(into: output, limit: 1 << 24) {}
        return SentFrame.read(output.array)
    }
}
