internal import Reactor

/// One loop's connection to one server, and the requests that wait for it. A task of the loop owns
/// the connection, keeps it up and serves the requests in batches: all that came since it last ran.
///
/// Safe to be Sendable: everything is touched by the loop's thread alone, which its task prefers
/// as executor and whose sessions call the methods.
final class RedisNode: @unchecked Sendable {
    /// Requests that may wait, sent or not.
    static let requestLimit = 1024
    static let firstPause = Duration.milliseconds(50)
    static let longestPause = Duration.seconds(2)
    /// A connection that lasted this long was a good one.
    static let shortLife = Duration.seconds(1)

    enum Phase {
        /// It is being connected to; requests wait.
        case connecting
        case serving
        /// It could not be connected to, and the next attempt has not succeeded yet.
        case failed(RedisFailure)
    }

    let loop: EventLoop
    let context: RedisContext
    /// What it is called in the log.
    let name: String
    let breaker: CircuitBreaker
    let waiter: Waiter
    /// Finds the server's address.
    let locator: RedisLocator
    /// Told when the server cannot be used, or is no master any more.
    var whenTroubled: () -> Void = {}

    private(set) var phase = Phase.connecting
    private(set) var isClosed = false
    /// The keys of the marker; the first is read with every batch.
    var markerKeys: [[UInt8]]
    /// The connection has to be set up anew once the requests under way are answered.
    private var needsSetUp = false
    private var watchers: [Waiter] = []
    private var queue: [RedisRequest] = []

    private var connection: RedisConnection?

    init(
        _ name: String, locator: RedisLocator, markerKeys: [[UInt8]], context: RedisContext,
        loop: EventLoop
    ) {
        self.name = name
        self.locator = locator
        self.markerKeys = markerKeys
        self.context = context
        self.loop = loop
        breaker = context.breaker(of: name)
        waiter = Waiter(loop: loop)
    }

    /// Starts the task.
    func start() {
        Task(executorPreference: loop) { await self.run() }
    }

    /// Takes a request over; it is answered in any case.
    func submit(_ request: RedisRequest) {
        if isClosed {
            request.finish(.failure(.disconnected))
        } else if case .failed(let failure) = phase {
            request.finish(.failure(failure.kind))
        } else if queue.count + (connection?.requestCount ?? 0) >= Self.requestLimit {
            request.finish(.failure(.overloaded))
        } else {
            queue.append(request)
            waiter.wake()
        }
    }

    /// Uses other keys for the marker from now on, because other slots are the server's.
    func adopt(_ keys: [[UInt8]], isOurs: ([UInt8]) -> Bool) {
        if Array(markerKeys.prefix(keys.count)) == keys { return }
        // A marker under an older key proves as well that the memory is whole.
        markerKeys = keys + markerKeys.filter { isOurs($0) && !keys.contains($0) }.prefix(4)
        needsSetUp = true
        waiter.wake()
    }

    /// Returns when it serves or has failed, or at `deadline`.
    func settle(waiter: Waiter, until deadline: MonotonicInstant) async {
        while case .connecting = phase, !isClosed {
            watchers.append(waiter)
            if await waiter.wait(until: deadline) == .timedOut { break }
        }
        watchers.removeAll { $0 === waiter }
    }

    /// Ends the task; requests under way are answered with `disconnected`.
    func close() {
        if isClosed { return }
        isClosed = true
        whenTroubled = {}
        connection?.fail(.disconnected)
        failQueue(.disconnected)
        wakeWatchers()
        waiter.wake()
    }

    // MARK: Task

    private func run() async {
        var failures = 0
        while !isClosed {
            let start = loop.now
            do throws(RedisFailure) {
                let connection = try await connect()
                self.connection = connection
                defer { end(connection) }
                enter(.serving)
                breaker.recovered()
                if try await serve(connection) { continue }
            } catch {
                if isClosed { break }
                let isLasting = start.advanced(by: Self.shortLife) <= loop.now
                let wasServing = if case .serving = phase { true } else { false }
                failures = wasServing && isLasting ? 0 : failures + 1
                enter(after: error, wasServing: wasServing)
                await pause(failures)
            }
        }
        waiter.invalidate()
    }

    private func enter(after failure: RedisFailure, wasServing: Bool) {
        if !wasServing || failure.kind == .evicting {
            context.notices.failed(name, failure)
            failQueue(failure.kind)
            enter(.failed(failure))
        } else {
            // What was not sent waits for the next connection.
            context.notices.remark(
                .warning, "the replay store lost a connection to a Redis server", server: name,
                [("error", failure.reason)])
            enter(.connecting)
        }
        whenTroubled()
    }

    private func enter(_ phase: Phase) {
        self.phase = phase
        wakeWatchers()
    }

    private func end(_ connection: RedisConnection) {
        connection.close()
        self.connection = nil
    }

    /// - Returns: true when the connection is to be made anew, without anything being wrong.
    private func serve(_ connection: RedisConnection) async throws(RedisFailure) -> Bool {
        let interval = context.settings.lookInterval
        var tick = loop.now.advanced(by: interval)
        do throws(RedisFailure) {
            while true {
                try connection.receive()
                if isClosed { return false }
                if !needsSetUp {
                    connection.send(queue, asksForInformation: tick <= loop.now)
                    queue.removeAll(keepingCapacity: true)
                    if tick <= loop.now { tick = loop.now.advanced(by: interval) }
                } else if connection.isIdle {
                    needsSetUp = false
                    return true
                }
                try connection.flush()
                let stall = connection.stall
                if stall <= loop.now {
                    throw RedisFailure(.timeout, "it does not answer any more")
                }
                // A look that is due waits for the new connection, and must not keep us awake.
                _ = await waiter.wait(until: needsSetUp ? stall : min(stall, tick))
            }
        } catch {
            connection.fail(error.kind)
            throw error
        }
    }

    private func pause(_ failures: Int) async {
        let doublings = min(failures, 8)
        let longest = min(Self.firstPause * (1 << doublings), Self.longestPause)
        let end = loop.now.advanced(by: longest * Double.random(in: 0.5...1))
        while !isClosed, await waiter.wait(until: end) == .ready {}
    }

    private func failQueue(_ failure: StoreFailure) {
        for request in queue { request.finish(.failure(failure)) }
        queue.removeAll()
    }

    private func wakeWatchers() {
        for waiter in watchers { waiter.wake() }
        watchers.removeAll()
    }
}
