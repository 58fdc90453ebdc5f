import HTTP
import TestKit
import Testing

/// The bytes of text whose characters are all below U+0100.
func bytes(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self)
}

/// The first characters of text, where CRLF counts as two.
func start(of text: String, _ count: Int) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(count)))
}

/// A request head from its start line and field lines, with a `Host` in front of them.
func head(_ startLine: String, _ fields: String...) -> String {
    ([startLine, "Host: api.example"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
}

/// What the parser says about a request, having made sure that it says the same wherever the bytes
/// are cut in two, and when they come one by one.
func verdict(
    _ text: String, limits: HeadLimits = HeadLimits(),
    sourceLocation: SourceLocation = #_sourceLocation
) -> MessageOutcome<RequestCopy> {
    let input = bytes(text)
    let whole = outcomeOfRequest(input, limits: limits, arrivals: [input.count])
    for arrivals in waysToCut(input.count) {
        let pieces = outcomeOfRequest(input, limits: limits, arrivals: arrivals)
        #expect(pieces == whole, "cut at \(arrivals.prefix(2))", sourceLocation: sourceLocation)
    }
    return whole
}

/// The same for a response.
func responseVerdict(
    _ text: String, to method: HTTP.Method = .get, limits: HeadLimits = HeadLimits(),
    sourceLocation: SourceLocation = #_sourceLocation
) -> MessageOutcome<ResponseCopy> {
    let input = bytes(text)
    let whole = outcomeOfResponse(input, to: method, limits: limits, arrivals: [input.count])
    for arrivals in waysToCut(input.count) {
        let pieces = outcomeOfResponse(input, to: method, limits: limits, arrivals: arrivals)
        #expect(pieces == whole, "cut at \(arrivals.prefix(2))", sourceLocation: sourceLocation)
    }
    return whole
}

private func waysToCut(_ count: Int) -> [[Int]] {
    // Long inputs are about limits: cuts around every byte of them would only cost time.
    let cuts = count <= 600 ? Array(0...count) : Array(stride(from: 0, to: count, by: 97))
    return cuts.map { [$0, count] } + [Array(0...count)]
}

extension MessageOutcome {
    /// The message, or a failed test.
    func accepted(sourceLocation: SourceLocation = #_sourceLocation) throws -> Message {
        guard case .message(let message) = self else {
            Issue.record("not accepted: \(self)", sourceLocation: sourceLocation)
            throw NotAccepted()
        }
        return message
    }

    private struct NotAccepted: Error {}
}

extension RequestCopy {
    func line(_ name: String) -> FieldCopy? {
        fields.first { text($0.name).lowercased() == name.lowercased() }
    }
}

/// Input and expectation of one row of a table; its name is what the test log shows.
struct Case<Expected: Sendable>: CustomTestStringConvertible, Sendable {
    var input: String
    var expected: Expected

    init(_ input: String, _ expected: Expected) {
        self.input = input
        self.expected = expected
    }

    var testDescription: String {
        "\(start(of: input, 70).debugDescription) → \(expected)"
    }
}
