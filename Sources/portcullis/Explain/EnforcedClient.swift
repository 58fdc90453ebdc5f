internal import HTTP
internal import Policy

/// Who a request's client is for the enforced share of a route, and whether it is inside.
struct EnforcedClient: CustomStringConvertible {
    /// Nil when the request has nothing to tell its client by: such clients are outside.
    private let key: [UInt8]?
    private let route: Route

    init(_ request: SentRequest, _ route: Route, _ judgement: TokenJudgement, clientIP: String) {
        self.route = route
        switch route.stickyBy {
        case .clientIP:
            var text: [UInt8] = []
            IPAddress(clientIP)?.appendShareKey(to: &text)
            key = text.isEmpty ? nil : text
        case .field(let name):
            key = request.value(of: name).flatMap { $0.isEmpty ? nil : $0 }
        case .app:
            key = judgement.appID.map { Array($0.utf8) }
        }
    }

    /// Nobody without a key is inside, save where everybody is.
    var isInside: Bool {
        guard route.enforcedShare < EnforcedShare.everybody else { return true }
        return key.map { route.share.isInside($0.span) } ?? false
    }

    var description: String {
        guard route.mode == .enforce else { return "does not matter, nothing is enforced" }
        if route.enforcedShare == EnforcedShare.everybody {
            return "does not matter, all are enforced"
        }
        let share = formatShare(route.enforcedShare)
        guard let key else {
            return "has no \(RouteWording.stickyBy(route)), so it is outside the enforced \(share)"
        }
        let name = String(decoding: key, as: UTF8.self)
        let place = formatShare(route.share.place(of: key.span))
        let side = isInside ? "inside" : "outside"
        return
            "\(RouteWording.stickyBy(route)) \(name) is at \(place), \(side) the enforced \(share)"
    }
}
