/// The name that `text` was most likely meant to be, or nil when none is near.
///
/// Near means a third of the letters or fewer differ, or one is the start of the other ("warn"); of
/// equally near names the first in `known` wins.
public func nearest(to text: String, among known: some Sequence<String>) -> String? {
    let letters = Array(text.lowercased().utf8)
    let longest = 64
    if letters.isEmpty || letters.count > longest { return nil }
    var best: (name: String, distance: Int)?
    for name in known where name != text {
        let candidate = Array(name.lowercased().utf8)
        if candidate.count > longest { continue }
        let isStart =
            min(letters.count, candidate.count) >= 3
            && (letters.starts(with: candidate) || candidate.starts(with: letters))
        let difference = abs(candidate.count - letters.count)
        let limit = isStart ? difference : min(max(letters.count, candidate.count) / 3, 3)
        if difference > limit { continue }
        let distance = isStart ? difference : editDistance(letters, candidate)
        if distance <= limit, distance < best?.distance ?? .max { best = (name, distance) }
    }
    return best?.name
}

/// How many insertions, deletions, replacements and swaps of neighbours turn one text into the
/// other (optimal string alignment).
private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast = [Int](repeating: 0, count: right.count + 1)
    var last = Array(0...right.count)
    for row in 0..<left.count {
        var current = [row + 1]
        current.reserveCapacity(right.count + 1)
        for column in 0..<right.count {
            let isSame = left[row] == right[column]
            var cost = min(
                last[column] + (isSame ? 0 : 1), last[column + 1] + 1, current[column] + 1)
            let isSwap =
                row > 0 && column > 0 && left[row] == right[column - 1]
                && left[row - 1] == right[column]
            if isSwap { cost = min(cost, beforeLast[column - 1] + 1) }
            current.append(cost)
        }
        beforeLast = last
        last = current
    }
    return last[right.count]
}
