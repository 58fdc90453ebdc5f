/// What waits for the next turn, while what waited for this one is worked off. Two runs of memory take
/// turns, so neither is allocated anew.
public struct Backlog<Element> {
    private var waiting: [Element] = []
    private var spare: [Element] = []

    /// Nothing waits.
    public init() {}

    /// Nothing waits.
    public var isEmpty: Bool { waiting.isEmpty }

    /// Something waits, behind the others.
    public mutating func append(_ element: consuming Element) {
        waiting.append(element)
    }

    /// Takes all that waits. What comes meanwhile is for the next turn.
    public mutating func take() -> [Element] {
        var taken: [Element] = []
        swap(&taken, &spare)
        swap(&taken, &waiting)
        return taken
    }

    /// The turn is over: the memory of what `take` gave serves again.
    public mutating func reuse(_ taken: consuming [Element]) {
        taken.removeAll(keepingCapacity: true)
        spare = taken
    }

    /// Forgets what waits.
    public mutating func removeAll() {
        waiting.removeAll()
    }
}
