internal import Reactor

/// Requests that wait until a server of their upstream takes one more, first come, first served. For
/// one upstream in one loop; its pools hand it on to each other.
final class WaitingLine {
    /// One request that waits.
    final class Place {
        fileprivate let waiter: Waiter
        /// It is its turn.
        fileprivate(set) var isCalled = false

        fileprivate init(_ waiter: Waiter) {
            self.waiter = waiter
        }
    }

    private var places: [Place] = []
    private var called = 0

    /// Who comes now has to wait behind others.
    var isOccupied: Bool { !places.isEmpty || called > 0 }

    /// Requests that wait for their turn.
    var count: Int { places.count }

    /// Takes a place at the end.
    ///
    /// - Parameters:
    ///   - waiter: Is woken when it is the request's turn.
    ///   - limit: How many may wait.
    /// - Returns: nil when as many wait already.
    func join(_ waiter: Waiter, limit: Int) -> Place? {
        if places.count >= limit { return nil }
        let place = Place(waiter)
        places.append(place)
        return place
    }

    /// A server takes one more.
    func callNext() {
        if places.isEmpty { return }
        let place = places.removeFirst()
        place.isCalled = true
        called += 1
        place.waiter.wake()
    }

    /// A server takes this many more.
    func callNext(max count: Int) {
        for _ in 0..<min(count, places.count) { callNext() }
    }

    /// The request does not wait any more.
    ///
    /// - Parameter isGivenUp: It makes no use of its turn, so another one may.
    func leave(_ place: Place, isGivenUp: Bool) {
        if place.isCalled {
            called -= 1
            if isGivenUp { callNext() }
        } else if let index = places.firstIndex(where: { $0 === place }) {
            // Who came first gives up first, so the search is short.
            places.remove(at: index)
        }
    }
}
