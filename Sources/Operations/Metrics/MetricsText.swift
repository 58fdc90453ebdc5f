/// Writes metrics in Prometheus' text format, version 0.0.4.
struct MetricsText {
    /// What a family's numbers mean.
    enum Kind: String {
        case counter, gauge, histogram
    }

    /// The media type of the page.
    static let contentType: StaticString = "text/plain; version=0.0.4; charset=utf-8"

    /// The page so far.
    private(set) var bytes: [UInt8] = []
    private var family = ""

    /// Starts a family: what follows are its samples.
    mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        family = name
        append("# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n")
    }

    /// Appends a sample that counts something.
    mutating func sample(_ labels: [(String, String)], _ value: UInt64) {
        sample(labels, suffix: "", value: String(value))
    }

    /// Appends a sample that measures something. `value` must be finite.
    mutating func sample(_ labels: [(String, String)], measured value: Double) {
        sample(labels, suffix: "", value: String(value))
    }

    /// Appends the samples of a histogram.
    mutating func samples(_ labels: [(String, String)], _ totals: HistogramTotals) {
        var cumulative: UInt64 = 0
        let bounds = totals.scale.bounds
        for (index, count) in totals.counts.enumerated() {
            cumulative &+= count
            let bound = index < bounds.count ? bounds[index].label : "+Inf"
            sample(labels + [("le", bound)], suffix: "_bucket", value: String(cumulative))
        }
        let (seconds, rest) = totals.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let fraction = String(String(1_000_000 + rest).dropFirst())
        sample(labels, suffix: "_sum", value: "\(seconds).\(fraction)")
        sample(labels, suffix: "_count", value: String(cumulative))
    }

    private mutating func sample(_ labels: [(String, String)], suffix: String, value: String) {
        append(family)
        append(suffix)
        for (index, (name, value)) in labels.enumerated() {
            append(index == 0 ? "{" : ",")
            append(name)
            append("=\"")
            appendEscaped(value)
            append("\"")
        }
        append(labels.isEmpty ? " " : "} ")
        append(value)
        append("\n")
    }

    private mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func appendEscaped(_ value: String) {
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): append("\\\\")
            case UInt8(ascii: "\""): append("\\\"")
            case UInt8(ascii: "\n"): append("\\n")
            default: bytes.append(byte)
            }
        }
    }
}
