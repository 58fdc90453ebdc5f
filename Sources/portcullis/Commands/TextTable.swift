/// Rows in columns that are as wide as their widest cell.
struct TextTable: CustomStringConvertible {
    private var rows: [[String]]

    /// A table with a heading for each column.
    init(_ header: [String]) {
        rows = [header.map { $0.uppercased() }]
    }

    /// Adds a row with as many cells.
    mutating func append(_ row: [String]) {
        rows.append(row)
    }

    /// The lines, indented by two, without spaces at their ends.
    var description: String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { $0.indices.contains(column) ? $0[column].count : 0 }.max() ?? 0
        }
        return rows.map { row in
            let cells = zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }
            let line = "  " + cells.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }
}
