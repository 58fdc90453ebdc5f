internal import Configuration

/// Turns the results of checks into a verdict that does not follow each of them. Pure.
struct HealthVerdict {
    /// Healthy until checks say otherwise: a proxy that starts serves at once.
    private(set) var isHealthy: Bool
    /// Checks in a row that speak against the verdict.
    private var contrary = 0
    private let healthyAfter: Int
    private let unhealthyAfter: Int

    /// The verdict on a server that was never checked.
    ///
    /// - Parameter isHealthy: What somebody else found out.
    init(_ check: HealthCheck, isHealthy: Bool = true) {
        self.isHealthy = isHealthy
        healthyAfter = check.healthyAfter
        unhealthyAfter = check.unhealthyAfter
    }

    /// A check ended.
    ///
    /// - Returns: whether the verdict is another one now.
    mutating func note(passed: Bool) -> Bool {
        if passed == isHealthy {
            contrary = 0
            return false
        }
        contrary += 1
        if contrary < (isHealthy ? unhealthyAfter : healthyAfter) { return false }
        isHealthy.toggle()
        contrary = 0
        return true
    }
}
