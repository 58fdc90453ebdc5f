extension FieldSection {
    /// The first line whose name is `name`, whatever the case; for names that come from a
    /// configuration.
    public func line(named name: String, in bytes: Span<UInt8>) -> FieldLine? {
        let wanted = name.utf8Span.span
        for line in lines
        where line.name.count == wanted.count
            && bytes.slice(line.name).equalsIgnoringCase(wanted)
        {
            return line
        }
        return nil
    }
}
