/// One sample of a metrics page.
struct Sample: Hashable {
    var name: String
    var labels: [String: String]
}

/// Why a page is not what Prometheus wants.
struct MetricsFault: Error, CustomStringConvertible {
    var description: String
}

/// Reads the text format 0.0.4 and insists on what promtool would complain about.
struct MetricsParser {
    private(set) var samples: [Sample: Double] = [:]
    private(set) var kinds: [String: String] = [:]
    private var helped: Set<String> = []
    private var family = ""

    init(_ bytes: [UInt8]) throws {
        guard let page = String(validating: bytes, as: UTF8.self) else {
            throw MetricsFault(description: "not UTF-8")
        }
        guard page.hasSuffix("\n") else { throw MetricsFault(description: "no final line feed") }
        for line in page.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
            try readLine(line)
        }
        try checkHistograms()
    }

    /// The value of a sample, or nil.
    subscript(name: String, labels: [String: String]) -> Double? {
        samples[Sample(name: name, labels: labels)]
    }

    /// The sum of a family's samples.
    func sum(_ name: String) -> Double {
        samples.filter { $0.key.name == name }.map(\.value).reduce(0, +)
    }

    private mutating func readLine(_ line: Substring) throws {
        let words = line.split(separator: " ", maxSplits: 3)
        if line.hasPrefix("# HELP ") {
            guard words.count == 4, helped.insert(String(words[2])).inserted else {
                throw MetricsFault(description: "HELP without text, or twice: \(line)")
            }
            family = String(words[2])
        } else if line.hasPrefix("# TYPE ") {
            guard words.count == 4, words[2] == family, kinds[family] == nil,
                ["counter", "gauge", "histogram"].contains(words[3])
            else { throw MetricsFault(description: "TYPE out of place: \(line)") }
            kinds[family] = String(words[3])
            guard (words[3] == "counter") == family.hasSuffix("_total") else {
                throw MetricsFault(description: "a counter's name ends in _total: \(line)")
            }
        } else {
            try readSample(line)
        }
    }

    private mutating func readSample(_ line: Substring) throws {
        guard let kind = kinds[family] else {
            throw MetricsFault(description: "a sample before its TYPE: \(line)")
        }
        let name = line.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        let suffixes = kind == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { family + $0 == name }) else {
            throw MetricsFault(description: "a sample outside its family: \(line)")
        }
        var rest = line.dropFirst(name.count)
        let labels = rest.first == "{" ? try Self.readLabels(&rest) : [:]
        guard rest.first == " ", let value = Double(rest.dropFirst()), value.isFinite, value >= 0
        else { throw MetricsFault(description: "no proper value: \(line)") }
        guard samples.updateValue(value, forKey: Sample(name: String(name), labels: labels)) == nil
        else { throw MetricsFault(description: "twice: \(line)") }
    }

    private static func readLabels(_ rest: inout Substring) throws -> [String: String] {
        var labels: [String: String] = [:]
        repeat {
            rest.removeFirst()
            let name = rest.prefix { $0.isASCII && ($0.isLetter || $0 == "_") }
            rest.removeFirst(name.count)
            guard !name.isEmpty, rest.hasPrefix("=\"") else {
                throw MetricsFault(description: "no proper label: \(rest)")
            }
            rest.removeFirst(2)
            var value = ""
            while let character = rest.popFirst(), character != "\"" {
                if character != "\\" {
                    value.append(character)
                    continue
                }
                switch rest.popFirst() {
                case "n": value.append("\n")
                case "\\": value.append("\\")
                case "\"": value.append("\"")
                default: throw MetricsFault(description: "no proper escape: \(rest)")
                }
            }
            guard labels.updateValue(value, forKey: String(name)) == nil else {
                throw MetricsFault(description: "label \(name) twice")
            }
        } while rest.first == ","
        guard rest.popFirst() == "}" else { throw MetricsFault(description: "no }: \(rest)") }
        return labels
    }

    private func checkHistograms() throws {
        for (sample, count) in samples where sample.name.hasSuffix("_count") {
            let name = sample.name.dropLast("_count".count)
            let buckets = samples.filter { entry in
                var labels = entry.key.labels
                return entry.key.name == name + "_bucket" && labels.removeValue(forKey: "le") != nil
                    && labels == sample.labels
            }
            let inOrder = buckets.sorted {
                Double($0.key.labels["le"] ?? "") ?? 0 < Double($1.key.labels["le"] ?? "") ?? 0
            }.map(\.value)
            guard inOrder == inOrder.sorted(), inOrder.last == count,
                samples[Sample(name: name + "_sum", labels: sample.labels)] != nil,
                buckets.keys.contains(where: { $0.labels["le"] == "+Inf" })
            else { throw MetricsFault(description: "no proper histogram: \(sample)") }
        }
    }
}
