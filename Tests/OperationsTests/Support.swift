import Attestation
import Configuration
import FoundationEssentials
import HTTP
import Policy
import Proxy
import TestKit
import Testing

@testable import Operations

/// What `body` writes into a line.
func render(_ body: (inout LineWriter) -> Void) -> String {
    var chunk = LogChunk()
    let fits = chunk.appendLine(body)
    #expect(fits)
    let bytes = chunk.bytes
    return String(decoding: (0..<(bytes.count - 1)).map { bytes[$0] }, as: UTF8.self)
}

extension LogChunk {
    var text: String {
        let bytes = bytes
        return String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self)
    }
}

/// A value of a log line.
enum LineValue: Decodable, Equatable {
    case text(String)
    case number(UInt64)
    case flag(Bool)

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else {
            self = .number(try container.decode(UInt64.self))
        }
    }

    var text: String? {
        if case .text(let text) = self { text } else { nil }
    }
}

/// Parses a line as one JSON object, strictly.
func parse(_ line: String) throws -> [String: LineValue] {
    try JSONDecoder().decode([String: LineValue].self, from: Data(line.utf8))
}

extension SeededGenerator {
    private static let awkward: [UInt8] = [0, 10, 13, 34, 92, 127, 0xC3, 0xE2, 0xED, 0xF0, 0xF4]

    /// Bytes among which the awkward ones are frequent.
    mutating func awkwardBytes(_ most: Int) -> [UInt8] {
        (0..<Int.random(in: 0...most, using: &self)).map { _ in
            switch Int.random(in: 0..<4, using: &self) {
            case 0: .random(in: .min ... .max, using: &self)
            case 1: Self.awkward[Int.random(in: 0..<Self.awkward.count, using: &self)]
            default: .random(in: 0x20...0x7E, using: &self)
            }
        }
    }
}

/// Two projects, two upstreams, three routes.
func exampleConfiguration(format: Log.Format = .json) throws -> Configuration {
    var configuration = Configuration(
        routes: try RouteTable([
            Route(name: "transfers", path: "/v1/transfers", upstream: 0),
            Route(name: "everything-else", path: "/*", upstream: 1),
            Route(name: "odd \"name\"\\\n", path: "/odd", upstream: 1),
        ]))
    configuration.log.format = format
    configuration.projects = [
        ProjectSource(
            project: Project(
                name: "production", number: "123456789012", id: nil, issuer: "issuer",
                apps: [(alias: "ios", id: "1:1:ios:1"), (alias: "android", id: "1:1:android:2")],
                leeway: 60),
            keys: .file("keys.json")),
        ProjectSource(
            project: Project(
                name: "staging", number: "210987654321", id: nil, issuer: "issuer",
                apps: [(alias: "ios", id: "1:2:ios:1"), (alias: "web", id: "1:2:web:2")],
                leeway: 60),
            keys: .file("keys.json")),
    ]
    configuration.upstreams = [
        Upstream(name: "api", servers: [.tcp(host: "127.0.0.1", port: 9000)]),
        Upstream(
            name: "legacy", servers: [.unix(path: "/run/l.sock"), .tcp(host: "::1", port: 1)]),
    ]
    return configuration
}

/// The claims of some verified token.
let exampleClaims = VerifiedToken(
    project: 1, appID: "1:2:web:3", app: 1, issuedAt: 1_796_019_000, expiresAt: 1_796_022_600,
    tokenID: nil, provider: nil, keyID: "key")

/// A token of the usual shape.
let exampleToken =
    "eyJraWQiOiJYcEhKU0EiLCJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9"
    + ".eyJzdWIiOiIxOjEyMzQ1Njc4OTAxMjppb3M6MGExYjJjM2Q0ZTVmIiwiYXVkIjpbInByb2plY3RzLzEyMyJdfQ"
    + ".c2lnbmF0dXJlLW9mLXRoZS10b2tlbi13aGljaC1pcy1zZWNyZXQtLS0tLS0tLS0tLS0tLS0tLS0tLS0t"

/// Whether 24 characters of `secret` in a row stand in `text`.
func leaks(_ secret: String, _ text: String) -> Bool {
    let secret = Array(secret.utf8)
    let text = Array(text.utf8)
    let length = min(24, secret.count)
    guard text.count >= length else { return false }
    let windows = Set((0...(secret.count - length)).map { secret[$0..<($0 + length)] })
    return (0...(text.count - length)).contains { windows.contains(text[$0..<($0 + length)]) }
}

extension RequestRecord {
    /// A record in which every field says something.
    static func example() -> RequestRecord {
        let record = RequestRecord()
        record.startedAt = 1_796_019_227_123_456
        record.listener = "0.0.0.0:8080"
        record.clientAddress = "192.0.2.7"
        record.requestID = Array("0af7651916cd43dd".utf8)
        record.method = .post
        record.methodName = Array("POST".utf8)
        record.target = Array("/v1/transfers".utf8)
        record.host = Array("api.example.com".utf8)
        record.userAgent = Array("app/1.0 (X; Y)".utf8)
        record.route = 1
        record.verdict = .invalid(.expired)
        record.action = .wouldReject
        record.code = .tokenExpired
        record.app = AppIndex(project: 1, app: 1)
        record.token = exampleClaims
        record.isShareKeyMissing = true
        record.isDebugSecret = true
        record.status = 200
        record.bytesIn = 12
        record.bytesOut = 34_567
        record.upstream = 1
        record.upstreamServer = "[::1]:1"
        record.failure = .upstreamReset
        record.malformed = .chunk
        record.totalMicroseconds = 2500
        record.verifyMicroseconds = 40
        record.upstreamMicroseconds = 2100
        record.isCachedVerdict = true
        return record
    }

    /// Puts awkward bytes into each field that a client can reach.
    func fillWithAwkwardBytes(_ generator: inout SeededGenerator, most: Int) {
        requestID = generator.awkwardBytes(most)
        methodName = generator.awkwardBytes(most)
        host = generator.awkwardBytes(most)
        target = generator.awkwardBytes(most)
        userAgent = generator.awkwardBytes(most)
        clientAddress = String(decoding: generator.awkwardBytes(most), as: UTF8.self)
        listener = String(decoding: generator.awkwardBytes(most), as: UTF8.self)
    }
}
