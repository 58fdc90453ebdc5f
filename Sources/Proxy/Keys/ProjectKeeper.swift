internal import Attestation
internal import Configuration
internal import Reactor

/// Keeps the keys of one project: asks its schedule what to do, does it, and remembers how it went.
///
/// It has one task, so there is never more than one fetch under way.
final class ProjectKeeper {
    /// The project, and where its keys come from.
    let source: ProjectSource
    private let loop: EventLoop
    private let log: any EventLog
    private let origin: KeyOrigin
    private let waiter: Waiter
    private let savedPath: String?
    private var schedule: KeySchedule
    private var random = SystemRandomNumberGenerator()
    private var isStopped = false

    private var keySet: KeySet?
    private var digest: SHA256Digest?
    private var generation: UInt64 = 0
    private var attempts: UInt64 = 0
    private var counts: [KeyRefreshResult: UInt64] = [:]
    private var lastError: String?
    private var notice = FailureNotice()
    private var isExpirySaid = false
    private var isSavingBroken = false
    /// Somebody waits for the end of the next attempt, even when it changes nothing.
    private var isRefetchAwaited = false

    /// A keeper that has asked for nothing yet.
    init(
        _ source: ProjectSource, loop: EventLoop, intervals: KeySchedule.Intervals,
        stateDirectory: String?, version: String, log: any EventLog
    ) {
        self.source = source
        self.loop = loop
        self.log = log
        origin = KeyOrigin(source, loop: loop, version: version)
        waiter = Waiter(loop: loop)
        schedule = KeySchedule(intervals, now: loop.now)
        savedPath =
            if case .url = source.keys, let stateDirectory {
                SavedKeySet.path(in: stateDirectory, project: source.project.name)
            } else {
                nil
            }
    }

    /// The keys as they are now.
    var keys: ProjectKeys {
        ProjectKeys(
            project: source.project.name, keySet: keySet, fetchedAt: schedule.fetchedAt ?? loop.now,
            usableUntil: schedule.usableUntil ?? .never, generation: generation, attempts: attempts)
    }

    /// How it goes.
    var status: KeySetStatus {
        KeySetStatus(
            project: source.project.name, isUsable: schedule.isUsable(at: loop.now),
            ageSeconds: schedule.fetchedAt.map { Double(loop.now.microseconds(since: $0)) / 1e6 },
            keyCount: keySet?.keys.count ?? 0, skippedCount: keySet?.skipped.count ?? 0,
            refreshes: KeyRefreshResult.allCases.map { ($0, counts[$0] ?? 0) },
            lastError: lastError,
            nextAttemptSeconds: schedule.nextFetchAt.map {
                Double(max(0, $0.microseconds(since: loop.now))) / 1e6
            })
    }

    /// Works until something changes that others have to know: an attempt ended, or the keys
    /// became too old.
    ///
    /// - Returns: false once `stop()` was called.
    func advance() async -> Bool {
        while !isStopped {
            if hasJustExpired() { return true }
            switch schedule.step(at: loop.now) {
            case .fetch:
                if await fetch() { return !isStopped }
            case .wait(let until):
                _ = await waiter.wait(until: until)
            }
        }
        return false
    }

    /// A token names a key that is not in the set.
    func requestRefetch() {
        isRefetchAwaited = true
        schedule.refetchRequested(at: loop.now)
        waiter.wake()
    }

    /// Ends the work for good; an attempt under way is given up.
    func stop() {
        isStopped = true
        origin.cancel()
        waiter.invalidate()
        waiter.wake()
    }

    // MARK: One attempt

    /// - Returns: whether others have to know about it.
    private func fetch() async -> Bool {
        do throws(KeyFetchFailure) {
            switch try await origin.fetch() {
            case .unchanged:
                succeeded(freshness: nil)
                if !isRefetchAwaited { return false }
            case .content(let bytes, let type, let freshness):
                if isStopped { return true }
                try adopt(bytes, type: type)
                succeeded(freshness: freshness)
                count(.success)
                save(bytes)
            }
        } catch {
            if !isStopped { failed(error) }
        }
        isRefetchAwaited = false
        return true
    }

    private func adopt(_ bytes: [UInt8], type: String?) throws(KeyFetchFailure) {
        let digest = SHA256.hash(bytes.span)
        // The same bytes are the same keys: whatever was verified with them stays verified.
        if digest == self.digest {
            origin.accepted()
            return
        }
        do throws(KeySetError) {
            keySet = try KeySet.parse(bytes.span)
        } catch {
            throw origin.failure(error, type: type)
        }
        self.digest = digest
        generation += 1
        origin.accepted()
        sayLoaded()
    }

    private func succeeded(freshness: Duration?) {
        schedule.succeeded(at: loop.now, freshness: freshness, using: &random)
        attempts += 1
        lastError = nil
        isExpirySaid = false
        if notice.succeeded() {
            log.log(
                .info, "keys of project \(source.project.name) are available again",
                fields(place: origin.place))
        }
    }

    private func failed(_ failure: KeyFetchFailure) {
        let now = loop.now
        schedule.failed(at: now, using: &random)
        attempts += 1
        count(failure.result)
        lastError = failure.reason
        let isBridged = schedule.isUsable(at: now)
        if !notice.failed(.init(result: failure.result, isBridged: isBridged), at: now) { return }
        log.log(
            isBridged ? .warning : .error,
            "keys of project \(source.project.name) could not be "
                + (keySet == nil ? "loaded: " : "renewed: ") + failure.reason + ". "
                + (isBridged
                    ? "The last good keys stay in use\(bridgeText(at: now))." : Self.outage),
            fields(place: origin.place) + [("result", failure.result.rawValue)])
    }

    private func count(_ result: KeyRefreshResult) {
        counts[result, default: 0] += 1
    }

    // MARK: Age

    private func hasJustExpired() -> Bool {
        if keySet == nil || isExpirySaid || schedule.isUsable(at: loop.now) { return false }
        isExpirySaid = true
        let reason = lastError.map { ": \($0)" } ?? ""
        log.log(
            .error,
            "keys of project \(source.project.name) are too old to be used\(reason). \(Self.outage)",
            fields(place: origin.place))
        return true
    }

    private func bridgeText(at now: MonotonicInstant) -> String {
        guard let until = schedule.usableUntil, until != .never else { return "" }
        return ", for another \(until.microseconds(since: now) / 60_000_000) minutes at most"
    }

    private static let outage =
        "Until there are good keys, its tokens are \"unavailable/keys\": enforced routes answer 503"

    // MARK: Earlier runs

    /// Takes over the keys that an earlier run kept, when they are young enough.
    func restore() {
        guard let savedPath, case .url(let url) = source.keys,
            let saved = SavedKeySet.read(savedPath), saved.source == url,
            let age = saved.age(atWallSeconds: wallSeconds),
            let usable = schedule.intervals.usable, age < usable,
            let keySet = try? KeySet.parse(saved.body.span)
        else { return }
        self.keySet = keySet
        digest = SHA256.hash(saved.body.span)
        generation += 1
        schedule.restored(fetchedAt: loop.now.advanced(by: .zero - age))
        log.log(
            .info,
            "keys of project \(source.project.name), fetched \(age.components.seconds / 60) minutes ago, "
                + "were read from \(savedPath)", fields(place: origin.place))
    }

    private func save(_ body: [UInt8]) {
        guard let savedPath, case .url(let url) = source.keys else { return }
        let saved = SavedKeySet(source: url, fetchedAt: wallSeconds, body: body)
        do throws(Errno) {
            try saved.write(to: savedPath)
            isSavingBroken = false
        } catch {
            if isSavingBroken { return }
            isSavingBroken = true
            log.log(
                .warning,
                "cannot write \(savedPath): \(error). A restart while the key set is out of reach "
                    + "will have no keys; check state_directory in [server]",
                fields(place: origin.place))
        }
    }

    private var wallSeconds: Int64 { loop.wallMicroseconds / 1_000_000 }

    // MARK: Log

    private func sayLoaded() {
        guard let keySet else { return }
        log.log(
            .info,
            "keys of project \(source.project.name) loaded: \(keySet.keys.count) usable, "
                + "\(keySet.skipped.count) skipped",
            fields(place: origin.place)
                + [("keys", keySet.keyIDs.prefix(10).joined(separator: " "))])
        if keySet.skipped.isEmpty { return }
        let reasons = keySet.skipped.prefix(5).map { "key \($0.index + 1): \($0.reason.rawValue)" }
        log.log(
            .warning,
            "keys of project \(source.project.name) were skipped: "
                + reasons.joined(separator: "; "), fields(place: origin.place))
    }

    private func fields(place: String) -> [(name: String, value: String)] {
        [("project", source.project.name), ("source", place)]
    }
}
