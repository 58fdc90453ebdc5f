internal import Attestation
internal import Configuration
internal import HTTP
internal import Reactor
internal import TLS

/// Why a project's keys could not be had.
struct KeyFetchFailure: Error {
    /// In which phase it failed.
    let result: KeyRefreshResult
    /// What failed, where, and what to do.
    let reason: String
}

/// Where a project's keys come from: asks for the bytes and knows what to advise when there are
/// none.
final class KeyOrigin {
    /// What an attempt brought.
    enum Delivery {
        /// The file is still the version that was read last.
        case unchanged
        /// - freshness: For how long a URL says that the keys stay fresh.
        case content(bytes: [UInt8], type: String?, freshness: Duration?)
    }

    /// Longest time for a whole attempt.
    private static let patience: Duration = .seconds(15)

    /// The project, and where its keys come from.
    let source: ProjectSource
    private let loop: EventLoop
    private let client: HTTPClient
    /// The version of the file that was read last and was good.
    private var knownVersion: FileStatus?
    private var readVersion: FileStatus?

    /// An origin that nothing was read from yet.
    init(_ source: ProjectSource, loop: EventLoop, version: String) {
        self.source = source
        self.loop = loop
        client = HTTPClient(loop: loop, version: version)
    }

    /// The source for logs: without the query, which may hold an API key.
    var place: String {
        switch source.keys {
        case .file(let path): path
        case .url(let url): String(url.prefix { $0 != "?" })
        }
    }

    /// Gives up an attempt under way.
    func cancel() {
        client.cancel()
    }

    /// Asks for the keys.
    func fetch() async throws(KeyFetchFailure) -> Delivery {
        switch source.keys {
        case .file(let path): try read(path)
        case .url(let url): try await get(url)
        }
    }

    /// What was delivered last is good: a file is not read again before it changes.
    func accepted() {
        knownVersion = readVersion
    }

    /// The failure of content that is no usable key set.
    func failure(_ error: KeySetError, type: String?) -> KeyFetchFailure {
        var what =
            switch error {
            case .tooLong: "is too long for a key set"
            case .notJSON: "is not JSON"
            case .notKeySet: "is JSON, but no key set (RFC 7517)"
            case .noUsableKey(let skipped): Self.describe(skipped)
            }
        if let type { what += " (content type \(Self.printable(type)))" }
        switch source.keys {
        case .file:
            return KeyFetchFailure(
                result: .file, reason: "the content of \(place) \(what); \(advice)")
        case .url:
            return KeyFetchFailure(
                result: .content, reason: "what came from \(place) \(what); \(advice)")
        }
    }

    private func read(_ path: String) throws(KeyFetchFailure) -> Delivery {
        do throws(KeyFile.Failure) {
            let content = try KeyFile.read(
                path, unless: knownVersion, maximumBytes: KeySet.maximumByteCount)
            guard let content else { return .unchanged }
            // Until somebody accepts it, a broken file is read again and again: it may be half
            // written.
            knownVersion = nil
            readVersion = content.version
            return .content(bytes: content.bytes, type: nil, freshness: nil)
        } catch {
            knownVersion = nil
            throw KeyFetchFailure(
                result: .file, reason: "cannot read \(path): \(error.reason); \(advice)")
        }
    }

    private func get(_ text: String) async throws(KeyFetchFailure) -> Delivery {
        let url: HTTPURL
        do throws(HTTPURLError) {
            url = try HTTPURL(text)
        } catch {
            throw KeyFetchFailure(
                result: .resolve, reason: "the URL of the key set \(error.description); \(advice)")
        }
        var request = HTTPGetRequest(url, deadline: loop.now.advanced(by: Self.patience))
        request.fields = source.keysHeaders
        if let file = source.keysCA { request.trust = .certificates(inFile: file) }
        switch source.egressProxy {
        case .tcp(let host, let port): request.egressProxy = .tcp(host: host, port: port)
        case .unix(let path): request.egressProxy = .unix(path: path)
        case nil: break
        }
        do throws(HTTPClientError) {
            let response = try await client.get(request)
            return .content(
                bytes: response.body, type: response.value(of: "content-type"),
                freshness: response.freshness)
        } catch {
            throw KeyFetchFailure(
                result: KeyRefreshResult(error.phase), reason: "\(error); \(advice(on: error))")
        }
    }

    private var advice: String { "check jwks of [project.\(source.project.name)]" }

    private func advice(on error: HTTPClientError) -> String {
        let table = "[project.\(source.project.name)]"
        return switch error.phase {
        case .proxy: "check egress_proxy of \(table)"
        case .tls: "jwks_ca of \(table) names the certificates to trust"
        case .connect where source.egressProxy != nil: "check egress_proxy of \(table)"
        case .status where [401, 403, 429].contains(error.status):
            "jwks_headers of \(table) can carry an API key"
        default: advice
        }
    }

    private static func describe(_ skipped: [SkippedKey]) -> String {
        if skipped.isEmpty { return "is a key set without keys" }
        let reasons = skipped.prefix(3).map { "key \($0.index + 1): \($0.reason.rawValue)" }
        return "has no usable key: \(reasons.joined(separator: "; "))"
    }

    /// Somebody else chose this text: keep it short, and out of any terminal's reach.
    private static func printable(_ text: String) -> String {
        String(decoding: text.utf8.prefix(60).filter { 0x20...0x7E ~= $0 }, as: UTF8.self)
    }
}

extension KeyRefreshResult {
    /// The label of a failed request.
    init(_ phase: HTTPClientError.Phase) {
        self =
            switch phase {
            case .resolve: .resolve
            case .connect: .connect
            case .proxy: .proxy
            case .tls: .tls
            case .send: .send
            case .receive: .receive
            case .status: .status
            case .body: .body
            }
    }
}
