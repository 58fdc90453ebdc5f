internal import Proxy

/// Decides when certificate files that changed are worth a look: once they have stopped changing,
/// and once for each version of them.
struct CertificateWatch {
    private var seen: FileVersions?
    private var tried: FileVersions?

    /// Call it regularly.
    ///
    /// - Parameter loaded: The versions in use.
    /// - Returns: whether the files as they are now should be loaded.
    mutating func isDue(_ loaded: FileVersions) -> Bool {
        let now = loaded.now
        // A certificate and its key are rarely replaced at the same moment.
        let isStable = seen == now
        seen = now
        if now == loaded {
            tried = nil
            return false
        }
        if !isStable || tried == now { return false }
        tried = now
        return true
    }
}
