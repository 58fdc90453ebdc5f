import Policy

/// The rules of route choice once more, as slow and plain as they are written down, to compare
/// with.
struct RouteOracle {
    let routes: [Route]

    func match(_ method: String, _ host: String, _ path: String) -> RouteMatch? {
        guard path.hasPrefix("/") else { return nil }
        let asWritten = candidates(host, path, isFolding: false)
        guard let (found, best) = choose(method, asWritten) else { return nil }
        var result = RouteMatch(
            route: best.index, reason: best.index == found.index ? .mostSpecific : .unknownMethod)
        let lookAlikes = candidates(host, path, isFolding: true)
        if let (_, strict) = choose(method, lookAlikes),
            strict.host != found.host || strict.specificity > found.specificity,
            strictness(strict.index).lexicographicallyPrecedes(strictness(best.index)) == false,
            strictness(strict.index) != strictness(best.index)
        {
            result = RouteMatch(route: strict.index, reason: .lookAlike)
        }
        return result
    }

    private struct Candidate {
        var index: Int
        /// Labels of the host, plus one when exact; 0 without host.
        var host: Int
        var specificity: Int
        var isLonger: Int
        var methods: [String]
    }

    /// All routes of host and path whatever their methods, most specific first.
    private func candidates(_ host: String, _ path: String, isFolding: Bool) -> [Candidate] {
        var all: [Candidate] = []
        for (index, route) in routes.enumerated() {
            let hosts = route.hosts.isEmpty ? [0] : route.hosts.compactMap { rank($0, host) }
            guard let host = hosts.max(), let rank = rank(route.path, path, isFolding) else {
                continue
            }
            all.append(
                Candidate(
                    index: index, host: host, specificity: rank.folded, isLonger: rank.written,
                    methods: route.methods))
        }
        return all.sorted {
            ($0.host, $0.isLonger, $0.methods.isEmpty ? 0 : 1)
                > ($1.host, $1.isLonger, $1.methods.isEmpty ? 0 : 1)
        }
    }

    private func choose(
        _ method: String, _ candidates: [Candidate]
    ) -> (found: Candidate, best: Candidate)? {
        let method = method == "HEAD" ? "GET" : method
        let standard = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"]
        guard
            let place = candidates.firstIndex(where: {
                $0.methods.isEmpty || $0.methods.contains(method)
            })
        else { return nil }
        var found = candidates[place]
        // Look-alikes that tie: the strictest.
        for other in candidates
        where other.host == found.host && other.isLonger == found.isLonger
            && other.methods.isEmpty == found.methods.isEmpty
            && (other.methods.isEmpty || other.methods.contains(method))
            && strictness(found.index).lexicographicallyPrecedes(strictness(other.index))
        {
            found = other
        }
        guard !standard.contains(method), found.methods.isEmpty else { return (found, found) }
        var best = found
        for other in candidates[..<place]
        where strictness(best.index).lexicographicallyPrecedes(strictness(other.index)) {
            best = other
        }
        return (found, best)
    }

    private func rank(_ pattern: String, _ host: String) -> Int? {
        let labels = pattern.split(separator: ".").count * 2
        if pattern.hasPrefix("*.") {
            return host.hasSuffix(pattern.dropFirst()) ? labels - 2 : nil
        }
        return pattern == host ? labels + 1 : nil
    }

    private func rank(
        _ pattern: String, _ path: String, _ isFolding: Bool
    ) -> (written: Int, folded: Int)? {
        let isPrefix = pattern.hasSuffix("/*")
        let base = isPrefix ? String(pattern.dropLast(2)) : pattern
        let (foldedBase, folded) = (fold(base), fold(path))
        let isMatch =
            if isFolding {
                isPrefix ? folded.starts(with: foldedBase) : folded == foldedBase
            } else {
                isPrefix ? path == base || path.hasPrefix(base + "/") : path == base
            }
        guard isMatch else { return nil }
        let specificity = foldedBase.count * 2 + (isPrefix ? 0 : 1)
        let written = base.split(separator: "/", omittingEmptySubsequences: false).count * 2
        return (isFolding ? specificity : written + (isPrefix ? 0 : 1), specificity)
    }

    private func fold(_ path: String) -> [String] {
        path.lowercased().split(separator: "/").compactMap {
            let name = $0.prefix { $0 != ";" }
            return name.isEmpty ? nil : String(name)
        }
    }

    private func strictness(_ index: Int) -> [Int] {
        let route = routes[index]
        let place = { (mode: Route.Mode) in Route.Mode.allCases.firstIndex(of: mode) ?? 0 }
        let replay = min(place(route.replay), place(route.mode))
        let reliability = [WhenUnavailable.allow: 0, .reject: 2]
        return [
            place(route.mode),
            route.mode == .enforce ? Int(route.enforcedShare) : 0,
            replay,
            replay == 0 ? 0 : route.whenUnavailable.flatMap { reliability[$0] } ?? 1,
            route.apps.map { 1_000 - $0.count } ?? 0,
        ]
    }
}
