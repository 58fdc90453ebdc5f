internal import Attestation
internal import HTTP
internal import Reactor
internal import Synchronization
internal import TLS

/// Fetches access tokens before the sessions need them, on a thread of its own: no claim pays for
/// it, and there is never more than one fetch under way.
actor AccessTokenKeeper {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// How often to do what; other than the defaults only in tests.
    struct Intervals: Sendable {
        /// So long before its end a token is renewed, at most a quarter of its life.
        var margin: Duration = .seconds(300)
        /// First pause after a failure; it doubles.
        var firstPause: Duration = .seconds(1)
        var longestPause: Duration = .seconds(60)
        /// One fetch, from the look-up to the answer's end.
        var patience: Duration = .seconds(10)
    }

    private let settings: GoogleSettings
    private let tokens: AccessTokens
    private let notices: GoogleNotices
    private let intervals: Intervals
    private let waiter: Waiter
    private var account: ServiceAccount
    private var failures = 0
    private var isStopped = false
    private nonisolated let isStarted = Atomic(false)

    /// - Parameter account: From the settings' key file, which is read again for each token: keys
    ///   are rotated.
    init(
        _ account: ServiceAccount, settings: GoogleSettings, tokens: AccessTokens,
        notices: GoogleNotices, intervals: Intervals
    ) throws(Errno) {
        self.account = account
        self.settings = settings
        self.tokens = tokens
        self.notices = notices
        self.intervals = intervals
        loop = try EventLoop()
        waiter = Waiter(loop: loop)
    }

    /// Starts to fetch, the first time it is called. From any thread.
    nonisolated func start() {
        if isStarted.exchange(true, ordering: .acquiringAndReleasing) { return }
        let loop = loop
        if !Thread.start(named: "google tokens", { loop.run() }) {
            tokens.failed(.system)
            return
        }
        Task { await self.work() }
    }

    /// The token was thrown away: a new one is wanted now. From any thread.
    nonisolated func renew() {
        Task { await self.hurry() }
    }

    /// Ends the thread. From any thread.
    nonisolated func stop() {
        if !isStarted.load(ordering: .acquiring) { return }
        Task { await self.end() }
    }

    private func hurry() {
        waiter.wake()
    }

    private func end() {
        isStopped = true
        waiter.wake()
    }

    private func work() async {
        while !isStopped {
            let pause = await fetch()
            let next = loop.now.advanced(by: pause)
            // Woken for a token that another fetch has replaced already: nothing to do.
            while !isStopped, await waiter.wait(until: next) == .ready,
                tokens.isReady(at: loop.now)
            {}
        }
        waiter.invalidate()
        loop.stop()
    }

    /// - Returns: when to fetch again.
    private func fetch() async -> Duration {
        rereadAccount()
        switch await exchange() {
        case .token(let text, let lifetime):
            failures = 0
            let life = Duration.seconds(lifetime)
            // What is sent in its last moments arrives too late.
            let reserve = min(Duration.seconds(30), life / 8)
            tokens.succeeded(text, usableUntil: loop.now.advanced(by: life - reserve))
            notices.recovered(.accessToken, "access tokens of Google are available again")
            return life - max(min(intervals.margin, life / 4), reserve)
        case .failure(let failure, let reason, let hint):
            failures = min(failures + 1, 16)
            // Before anybody is answered so: the reason is in the log when the refusal is.
            notices.failed(
                .accessToken, "no access token for Google's replay protection",
                [
                    ("source", account.tokenURL.endpoint.description), ("reason", reason),
                    ("hint", hint),
                ])
            tokens.failed(failure)
            let pause = intervals.firstPause * Double(1 << (failures - 1))
            return min(pause, intervals.longestPause) * Double.random(in: 0.8...1.2)
        }
    }

    private func rereadAccount() {
        do throws(StoreOpenError) {
            account = try ServiceAccount.read(file: settings.credentials)
            notices.recovered(.keyFile, "the service account's key file can be read again")
        } catch {
            notices.failed(
                .keyFile, "\(error.message); the key that was read before stays in use",
                [("hint", error.hint)])
        }
    }

    private func exchange() async -> TokenExchange.Outcome {
        let body: [UInt8]
        do throws(SigningKeyError) {
            body = try TokenExchange.form(
                account, wallSeconds: loop.wallMicroseconds / 1_000_000)
        } catch {
            return .failure(
                .system, reason: "OpenSSL could not sign", hint: "check this machine's memory")
        }
        var limits = HTTPPool.Limits()
        limits.rest = .zero
        let pool = HTTPPool(
            loop: loop,
            origin: HTTPOrigin(
                account.tokenURL, trust: settings.trust, egressProxy: settings.egressProxy),
            version: settings.version, limits: limits)
        defer { pool.close() }
        let request = HTTPPostRequest(
            account.tokenURL.target, contentType: "application/x-www-form-urlencoded", body: body,
            deadline: loop.now.advanced(by: intervals.patience))
        do throws(HTTPClientError) {
            return TokenExchange.read(try await pool.post(request), account)
        } catch {
            return .failure(
                StoreFailure(error), reason: error.description, hint: "it is tried again soon")
        }
    }
}

extension GoogleSettings {
    var trust: TLSTrust { authority.map { .certificates(inFile: $0) } ?? .system }
}
