internal import Reactor

/// What was sent on a connection, and what the replies belong to: they come in the same order.
///
/// Requests are sent in batches. Behind each batch the server is asked for the marker of its memory
/// and for its time, so both are known of a moment after the requests were executed: memory that was
/// lost before one of them shows.
struct RedisPipeline {
    /// What a reply is the answer to.
    enum Expectation {
        /// Something whose outcome shows elsewhere.
        case acknowledgement
        case request(RedisRequest)
        case marker
        case information
        /// The end of a batch.
        case time(sent: MonotonicInstant)
    }

    /// All replies to a batch.
    struct Batch {
        var answers: [(RedisRequest, RedisReply)] = []
        /// Reply to GET of the marker.
        var marker: RedisReply?
        /// Reply to INFO, where it was asked for.
        var information: RedisReply?
        /// Reply to TIME.
        var time: RedisReply
        var sent: MonotonicInstant
    }

    private var expected: [Expectation] = []
    /// How many of `expected` were answered.
    private var first = 0
    private var answers: [(RedisRequest, RedisReply)] = []
    private var marker: RedisReply?
    private var information: RedisReply?
    /// Requests that are not answered yet.
    private(set) var requestCount = 0

    /// Whether every command was answered.
    var isEmpty: Bool { first == expected.count }

    /// When the oldest batch was sent that is not answered.
    var oldest: MonotonicInstant? {
        for expectation in expected[first...] {
            if case .time(let sent) = expectation { return sent }
        }
        return nil
    }

    /// A command was sent.
    mutating func expect(_ expectation: Expectation) {
        expected.append(expectation)
        if case .request = expectation { requestCount += 1 }
    }

    /// A reply came.
    ///
    /// - Returns: the batch that it completes.
    /// - Throws: when nothing was asked.
    mutating func receive(_ reply: RedisReply) throws(RedisFailure) -> Batch? {
        if isEmpty {
            throw RedisFailure(.protocolError, "it sends a reply that nobody asked for")
        }
        let expectation = expected[first]
        first += 1
        if first == expected.count || first > 1024 {
            expected.removeFirst(first)
            first = 0
        }
        switch expectation {
        case .acknowledgement: return nil
        case .request(let request):
            answers.append((request, reply))
            return nil
        case .marker:
            marker = reply
            return nil
        case .information:
            information = reply
            return nil
        case .time(let sent):
            let batch = Batch(
                answers: answers, marker: marker, information: information, time: reply,
                sent: sent)
            requestCount -= answers.count
            answers.removeAll(keepingCapacity: true)
            marker = nil
            information = nil
            return batch
        }
    }

    /// Gives up: whoever waits is told why.
    mutating func fail(_ failure: StoreFailure) {
        for (request, _) in answers { request.finish(.failure(failure)) }
        for case .request(let request) in expected[first...] { request.finish(.failure(failure)) }
        self = RedisPipeline()
    }
}
