/// Names with small numbers in their place. A name keeps its number for good.
struct NumberedNames {
    /// By their numbers.
    private(set) var names: [String] = []
    private var numbers: [String: UInt32] = [:]

    /// - Parameter names: Those that are numbered from the beginning, in their order.
    init(_ names: [String] = []) {
        for name in names { _ = number(of: name) }
    }

    /// The number of a name, the next free one when it is new.
    mutating func number(of name: String) -> UInt32 {
        if let number = numbers[name] { return number }
        let number = UInt32(clamping: names.count)
        names.append(name)
        numbers[name] = number
        return number
    }
}
