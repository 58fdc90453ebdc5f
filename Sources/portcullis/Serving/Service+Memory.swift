internal import Configuration
internal import Glibc
internal import Operations
internal import Proxy
internal import Reactor

/// Sheds load before the kernel ends the process for want of memory.
extension Service {
    /// Often enough for a flood to take less than what is left, and seldom enough to cost nothing:
    /// a reading takes some ten microseconds of the control loop.
    private static let readingInterval = Duration.milliseconds(100)
    /// Without a limit, for the metrics.
    private static let idleInterval = Duration.seconds(1)
    /// While load is shed, what was freed is given back to the system, and the log told.
    private static let releaseInterval = Duration.seconds(1)
    private static let reminderInterval = Duration.seconds(60)

    /// Reads the process's memory until it ends.
    func watchMemory() async {
        let waiter = Waiter(loop: loop)
        var setting: MemoryLimit?
        var governor: MemoryGovernor?
        var releasesAt = loop.now
        var remindsAt = loop.now
        while !isDraining {
            if serving.configuration.server.memoryLimit != setting {
                setting = serving.configuration.server.memoryLimit
                governor = await renewed(governor)
            }
            let used = MemoryMeter.used() ?? 0
            if governor?.note(used: used) == true, let governor {
                await change(governor, used: used)
                remindsAt = loop.now.advanced(by: Self.reminderInterval)
            }
            memory.note(
                MemoryStatus(
                    used: used, limit: governor?.limit, isShedding: governor?.isShedding ?? false))
            if let governor, governor.isShedding {
                if loop.now >= releasesAt {
                    Memory.releaseFreePages()
                    releasesAt = loop.now.advanced(by: Self.releaseInterval)
                }
                if loop.now >= remindsAt {
                    report(.warning, "memory is still short: load is shed", governor, used: used)
                    remindsAt = loop.now.advanced(by: Self.reminderInterval)
                }
            }
            let interval = governor == nil ? Self.idleInterval : Self.readingInterval
            _ = await waiter.wait(until: loop.now.advanced(by: interval))
        }
        waiter.invalidate()
    }

    /// The limit of the configuration in use, which may be another one after a reload.
    private func renewed(_ before: MemoryGovernor?) async -> MemoryGovernor? {
        let limit = MemoryMeter.limit(serving.configuration.server.memoryLimit)
        if limit == before?.limit { return before }
        if before?.isShedding == true { await server.shed(false) }
        guard let limit else {
            log.log(.info, "no memory limit", [])
            return nil
        }
        if MemoryMeter.used() == nil {
            log.log(
                .error, "memory cannot be measured, so no load is shed for want of it",
                [("file", "/proc/self/status"), ("memory_limit", String(limit))])
        }
        let governor = MemoryGovernor(limit: limit)
        report(.info, "memory limit", governor, used: MemoryMeter.used() ?? 0)
        let caches =
            UInt64(serving.configuration.server.tokenCacheBytes) * UInt64(serving.workerCount)
        if caches >= limit / 2 {
            log.log(
                .warning, "the caches alone may take half of the memory limit",
                [("token_cache_total", String(caches)), ("memory_limit", String(limit))])
        }
        return governor
    }

    private func change(_ governor: MemoryGovernor, used: UInt64) async {
        if governor.isShedding {
            report(
                .error, "memory is short: requests and connections are refused", governor,
                used: used)
        } else {
            report(.info, "memory is enough again", governor, used: used)
        }
        await server.shed(governor.isShedding)
        if governor.isShedding { Memory.releaseFreePages() }
    }

    private func report(
        _ level: Log.Level, _ message: String, _ governor: MemoryGovernor, used: UInt64
    ) {
        log.log(
            level, message,
            [
                ("limit", Limit.memoryLimit.rawValue), ("used_bytes", String(used)),
                ("limit_bytes", String(governor.limit)),
                ("sheds_above_bytes", String(governor.highMark)),
                ("until_below_bytes", String(governor.lowMark)),
            ])
    }
}
