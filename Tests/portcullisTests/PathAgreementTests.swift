import TestKit
import Testing

@testable import Configuration
@testable import portcullis

@Suite("Paths of routes and of requests")
struct PathAgreementTests {
    private static let pieces = [
        "/", "a", "Z", "9", ".", "..", "-", "~", ":", "@", "+", "*", ";", "=", "{", " ", "\\", "é",
        "%", "%41", "%2e", "%2E", "%2F", "%5C", "%3B", "%3b", "%2B", "%20", "%40", "%25", "%2541",
        "%C3%A9", "%c3%a9", "%C0%AE", "%E0%80%AF", "%F0%80%80%AF", "%00", "%7F",
    ]

    @Test(
        "P1: a path that a route may have is one that a request can arrive with", arguments: 1...4)
    func agreement(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var accepted = 0
        for _ in 0..<5_000 {
            let length = Int.random(in: 0...6, using: &random)
            let rest = (0..<length).compactMap { _ in Self.pieces.randomElement(using: &random) }
            let path = "/" + rest.joined()
            guard let pattern = try? PathText.pattern(path), !pattern.hasSuffix("/*") else {
                continue
            }
            accepted += 1
            let options = try ParsedOptions(
                ["-c", "x", "GET", "http://x" + pattern], known: [.config])
            let request = try? SentRequest(ExplainRequest(options), token: nil)
            #expect(request.map { String(decoding: $0.path, as: UTF8.self) } == pattern)
        }
        #expect(accepted > 200)
    }
}
