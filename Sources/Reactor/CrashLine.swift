internal import CPlatform

/// The line that the log has when the process dies of a signal that nobody asked for: which one, on
/// which thread, and where in the program (docs/decisions/0086-crash-line.md).
public enum CrashLine {
    /// Has crashes of this process tell of themselves. Call it once, before other threads start.
    ///
    /// - Parameters:
    ///   - descriptor: The log's; standard error when that takes nothing.
    ///   - version: Of this program; needs no escaping.
    ///   - isJSON: Of the log; `name=value` otherwise.
    public static func install(descriptor: Int32 = 1, version: String, isJSON: Bool) {
        CPlatform_install_crash_line(descriptor, version, isJSON)
    }

    /// The log has another format from now on.
    public static func adopt(isJSON: Bool) { CPlatform_set_crash_format(isJSON) }

    /// Whether the log may have written half a line: a crash then begins one of its own.
    public static func setLogBusy(_ isBusy: Bool) { CPlatform_set_log_busy(isBusy) }
}
