/// A point on the kernel's monotonic clock. Only differences mean anything.
public struct MonotonicInstant: Sendable, Comparable, Hashable {
    /// Nanoseconds on CLOCK_MONOTONIC.
    public var nanoseconds: Int64

    @inline(__always)
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than everything: no deadline.
    public static let never = MonotonicInstant(nanoseconds: .max)

    /// Reads the clock.
    public static var now: MonotonicInstant {
        MonotonicInstant(nanoseconds: Syscalls.monotonicNanoseconds())
    }

    /// The instant that lies `duration` later; saturates at `never`.
    public func advanced(by duration: Duration) -> MonotonicInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.nanoseconds)
        return overflow ? .never : MonotonicInstant(nanoseconds: sum)
    }

    /// As `advanced(by:)`, without the 128-bit arithmetic of `Duration`: for the hot path.
    @inline(__always)
    public func advanced(byNanoseconds span: Int64) -> MonotonicInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(span)
        return overflow ? .never : MonotonicInstant(nanoseconds: sum)
    }

    /// Microseconds from `earlier` to this instant.
    public func microseconds(since earlier: MonotonicInstant) -> Int64 {
        (nanoseconds &- earlier.nanoseconds) / 1000
    }

    @inline(__always)
    public static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// Whole nanoseconds, saturating.
    public var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? .max : sum
    }
}
