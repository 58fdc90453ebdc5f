internal import Policy

extension Setting {
    /// A share such as 25, 0.5 or "25%", in millionths of a percent.
    func share() -> UInt32? {
        let share: UInt32?
        switch node.kind {
        case .integer: share = node.integer.flatMap { parseShare(Double($0)) }
        case .float: share = node.float.flatMap(parseShare)
        case .string: share = node.string.flatMap(parseShare)
        default:
            wrongType("a share", hint: "write 25, 0.5 or \"25%\"")
            return nil
        }
        if share == nil {
            let spelling =
                node.string.map(quoted) ?? node.integer.map(String.init)
                ?? node.float.map { String($0) } ?? ""
            error(
                "must be from 0 to 100 with at most six decimals, not \(spelling)",
                hint: "write 25, 0.5 or \"25%\"")
        }
        return share
    }

    /// The same in percent.
    func percentage() -> Double? { share().map { Double($0) / 1_000_000 } }
}
