/// Objects that nobody uses now, for whoever needs one next. What a burst made and nobody needed since
/// is let go at the second look.
public struct Spares<Element: AnyObject> {
    /// What is kept even if nobody needs it.
    private static var kept: Int { 8 }

    private let limit: Int
    private var list: [Element] = []
    /// The fewest at any time since the last sweep: that many were not needed.
    private var fewest = 0

    /// None yet.
    ///
    /// - Parameter limit: What is given back beyond so many is let go.
    public init(limit: Int) {
        self.limit = limit
    }

    /// There is no room for another one.
    public var isFull: Bool { list.count >= limit }

    /// The one that was used last; nil when there is none.
    public mutating func take() -> Element? {
        guard let element = list.popLast() else { return nil }
        fewest = min(fewest, list.count)
        return element
    }

    /// Takes one back, unless there are too many.
    public mutating func giveBack(_ element: consuming Element) {
        if list.count < limit { list.append(element) }
    }

    /// Lets go of what was not needed since the last call.
    ///
    /// - Parameter end: Is told of each.
    /// - Returns: how many those were.
    public mutating func sweep(_ end: (Element) -> Void = { _ in }) -> Int {
        let surplus = min(max(0, fewest - Self.kept), list.count)
        // The ones used last are at the end, and warm.
        for element in list.prefix(surplus) { end(element) }
        list.removeFirst(surplus)
        fewest = list.count
        return surplus
    }

    /// Lets go of all.
    ///
    /// - Parameter end: Is told of each.
    public mutating func removeAll(_ end: (Element) -> Void = { _ in }) {
        let elements = list
        list.removeAll()
        fewest = 0
        for element in elements { end(element) }
    }
}
