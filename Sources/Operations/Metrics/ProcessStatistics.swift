internal import FoundationEssentials
internal import Reactor

/// What the kernel says about this process, under the names that every Prometheus client uses.
///
/// What cannot be read is left out of the page: half a page is better than none.
enum ProcessStatistics {
    /// What /proc/self/stat and /proc/stat say.
    struct Usage: Equatable {
        /// User and system time, in clock ticks.
        var cpuTicks: UInt64
        /// Start of the process, in clock ticks since the machine's.
        var startTicks: UInt64
        /// Resident memory, in pages.
        var residentPages: UInt64
    }

    /// Appends the metrics of this process; what cannot be read is left out.
    static func append(to text: inout MetricsText) {
        let ticksPerSecond = Double(Syscalls.clockTicksPerSecond())
        if let usage = read("/proc/self/stat").flatMap(parse) {
            text.family(
                "process_cpu_seconds_total", .counter,
                "Total user and system CPU time spent in seconds.")
            text.sample([], measured: Double(usage.cpuTicks) / ticksPerSecond)
            text.family(
                "process_resident_memory_bytes", .gauge, "Resident memory size in bytes.")
            text.sample(
                [],
                usage.residentPages.multipliedReportingOverflow(by: Syscalls.pageSize())
                    .partialValue)
            if let boot = read("/proc/stat").flatMap(bootTime) {
                text.family(
                    "process_start_time_seconds", .gauge,
                    "Start time of the process since unix epoch in seconds.")
                text.sample([], measured: Double(boot) + Double(usage.startTicks) / ticksPerSecond)
            }
        }
        if let count = openDescriptors {
            text.family("process_open_fds", .gauge, "Number of open file descriptors.")
            text.sample([], UInt64(count))
        }
    }

    /// Descriptors that are open; nil when nobody tells.
    static var openDescriptors: Int? {
        let entries = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        // Listing the descriptors takes one itself.
        return entries.map { max(0, $0.count - 1) }
    }

    /// Resident memory; nil when nobody tells.
    static var residentBytes: UInt64? {
        read("/proc/self/stat").flatMap(parse).map {
            $0.residentPages.multipliedReportingOverflow(by: Syscalls.pageSize()).partialValue
        }
    }

    /// Reads /proc/PID/stat (proc(5)). The program's name, in parentheses, may hold anything.
    static func parse(_ stat: String) -> Usage? {
        guard let nameEnd = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: nameEnd)...].split(whereSeparator: \.isWhitespace)
        // Field 3, the state, is the first one behind the name.
        guard fields.count > 21, let user = UInt64(fields[11]), let system = UInt64(fields[12]),
            let start = UInt64(fields[19]), let resident = UInt64(fields[21])
        else { return nil }
        return Usage(cpuTicks: user &+ system, startTicks: start, residentPages: resident)
    }

    /// Seconds since 1970 at which the machine started, from /proc/stat (proc(5)).
    static func bootTime(_ stat: String) -> UInt64? {
        for line in stat.split(separator: "\n") where line.hasPrefix("btime ") {
            return UInt64(line.dropFirst(6))
        }
        return nil
    }

    private static func read(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
