/// How much a route asks of a request, to find the strictest of several (pitfalls P2, P8).
///
/// Ordered by what an adversary would want to get around first: the mode, then the enforced share,
/// then whether a token is good for one use, then how few apps and projects are accepted.
struct Strictness: Comparable, Hashable {
    private let order: [UInt32]

    init(_ route: Route) {
        order = [
            route.mode.rank, route.mode == .enforce ? route.enforcedShare : 0,
            min(route.replay, route.mode).rank, Self.reliability(route),
            Self.narrowness(route.apps?.count),
            Self.narrowness(route.projects?.count),
        ]
    }

    /// What holds while the claim store is away. Where the route does not say, `[replay]` does, and
    /// that is `reject` or `allow`: never stricter than the one, never more lenient than the other.
    private static func reliability(_ route: Route) -> UInt32 {
        if min(route.replay, route.mode) == .off { return 0 }
        return switch route.whenUnavailable {
        case .allow: 0
        case nil: 1
        case .reject: 2
        }
    }

    /// The fewer are accepted the higher; nil accepts all.
    private static func narrowness(_ accepted: Int?) -> UInt32 {
        guard let accepted else { return 0 }
        return UInt32.max - UInt32(truncatingIfNeeded: min(accepted, 1 << 30))
    }

    static func < (left: Strictness, right: Strictness) -> Bool {
        left.order.lexicographicallyPrecedes(right.order)
    }

    /// The place of each route among all, 0 for the most lenient; equal routes have equal ranks.
    static func ranks(_ routes: [Route]) -> [UInt32] {
        let each = routes.map(Strictness.init)
        var ranks: [Strictness: UInt32] = [:]
        for (rank, strictness) in Set(each).sorted().enumerated() {
            ranks[strictness] = UInt32(truncatingIfNeeded: rank)
        }
        return each.map { ranks[$0] ?? 0 }
    }
}
