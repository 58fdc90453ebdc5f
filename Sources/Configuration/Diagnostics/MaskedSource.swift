/// The lines of a configuration file as diagnostics may quote them: wherever a secret may stand,
/// only its shape shows.
///
/// The file may be broken in any way, so this goes by lines, not by the parsed document, and by
/// what is known to be harmless, not by what is known to be secret: in `[project.*]`, `[admin]`,
/// `[tracing]` and `[replay]` a line is shown only when its key is one that never holds a secret. A misspelt
/// `jwks_headers` stays masked.
struct MaskedSource {
    private var lines: [String] = []
    private var masked: Set<Int> = []

    init(_ text: String) {
        var section: [String] = []
        var isSecret = false
        let isLineEnd = { (character: Character) in character == "\n" || character == "\r\n" }
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: isLineEnd) {
            let trimmed = line.drop { $0 == " " || $0 == "\t" }
            if trimmed.isEmpty {
                lines.append("")
                continue
            }
            if let header = Self.header(trimmed) {
                section = header
                isSecret = false
                lines.append(printable(Self.maskBehindHeader(line)))
                continue
            }
            if let equals = line.firstIndex(of: "=") {
                isSecret =
                    Self.isSecret(section + Self.parts(of: line[..<equals]))
                    || Self.mayHoldCredentials(line[equals...], in: section)
            } else {
                isSecret = isSecret || Self.isSecret(section + Self.parts(of: trimmed))
            }
            if isSecret { masked.insert(lines.count + 1) }
            let start = line.firstIndex(of: "=") ?? line.startIndex
            lines.append(printable(isSecret ? Self.mask(line, from: start) : String(line)))
        }
    }

    /// A line, counted from 1, or nil where the file has none.
    func line(_ number: Int) -> String? {
        lines.indices.contains(number - 1) ? lines[number - 1] : nil
    }

    /// Whether letters of a line were replaced. Counted from 1.
    func isMasked(_ number: Int) -> Bool { masked.contains(number) }

    /// The parts of a table header's name; nil for a line that is none, or only looks like one (an
    /// element of an array).
    private static func header(_ line: Substring) -> [String]? {
        if line.first != "[" { return nil }
        let name = line.drop { $0 == "[" }.prefix { $0 != "]" }
        let isName = name.allSatisfy { $0 != "," && $0 != "=" && $0 != "{" }
        return isName ? parts(of: name) : nil
    }

    /// What stands behind a header is a mistake, and might be anything.
    private static func maskBehindHeader(_ line: Substring) -> String {
        let end = line.lastIndex(of: "]") ?? line.endIndex
        let rest = line[end...].dropFirst().drop { $0 == " " || $0 == "\t" || $0 == "]" }
        if rest.isEmpty || rest.first == "#" { return String(line) }
        return mask(line, from: line.firstIndex(of: "]") ?? line.startIndex)
    }

    private static func parts(of key: Substring) -> [String] {
        key.split(separator: ".", omittingEmptySubsequences: false).map { part in
            String(part.filter { $0 != " " && $0 != "\t" && $0 != "\"" && $0 != "'" })
        }
    }

    private static func isSecret(_ path: [String]) -> Bool {
        switch path.first {
        case "project":
            let harmless = Schema.project.keys.filter { $0 != "jwks_headers" }
            return path.count < 3 || !harmless.contains(path[2])
        case "tracing":
            let harmless = Schema.tracing.keys.filter { $0 != "headers" }
            return path.count < 2 || !harmless.contains(path[1])
        case "admin": return path.count < 2 || !Schema.admin.keys.contains(path[1])
        case "replay":
            let harmless = Schema.replay.keys.filter {
                !["redis", "redis_password", "redis_sentinel_password"].contains($0)
            }
            return path.count < 2 || !harmless.contains(path[1])
        case .some(let table): return !Schema.root.keys.contains(table)
        case nil: return false
        }
    }

    /// URLs with a user or a query, where people put passwords and API keys.
    private static func mayHoldCredentials(_ value: Substring, in section: [String]) -> Bool {
        ["project", "replay", "tracing"].contains(section.first)
            && value.contains { $0 == "@" || $0 == "?" }
    }

    /// Replaces every letter and digit from `start`, so that columns stay what they were.
    private static func mask(_ line: Substring, from start: Substring.Index) -> String {
        let structure: Set<Character> = ["=", "\"", "'", "{", "}", "[", "]", ",", " ", "\t"]
        var masked = String.UnicodeScalarView(line[..<start].unicodeScalars)
        for scalar in line[start...].unicodeScalars {
            masked.append(structure.contains(Character(scalar)) ? scalar : "*")
        }
        return String(masked)
    }
}
