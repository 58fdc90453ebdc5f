/// A place in a configuration file. Lines and columns count from 1; a column is a Unicode scalar.
public struct SourcePosition: Sendable, Hashable, Comparable {
    /// From 1.
    public var line: Int
    /// From 1, in Unicode scalars.
    public var column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    public static func < (left: SourcePosition, right: SourcePosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// A run of text in a configuration file: from `start` up to, not including, `end`.
struct SourceRegion: Hashable {
    /// Of the first character.
    var start: SourcePosition
    /// Behind the last character.
    var end: SourcePosition

    init(start: SourcePosition, end: SourcePosition) {
        self.start = start
        self.end = end
    }

    init(at position: SourcePosition) {
        self.init(start: position, end: position)
    }

    /// How many columns to underline: at least one, and never past the line on which the region
    /// starts.
    var width: Int {
        end.line == start.line ? max(1, end.column - start.column) : 1
    }
}
