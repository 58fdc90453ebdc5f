public import Configuration

/// The operations log: what went wrong, where, and what to do. Never a token, never a query.
public protocol EventLog: Sendable {
    /// Writes one line when `level` is enabled. `fields` become JSON members.
    func log(_ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)])
}
