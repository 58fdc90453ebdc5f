internal import Synchronization

/// Why a body is no key set.
public enum KeySetError: Error, Equatable, Sendable {
    /// More than ``KeySet/maximumByteCount`` bytes.
    case tooLong
    /// Not a JSON object, or one that is not safe to read; an HTML page, for example.
    case notJSON
    /// JSON without an array `keys` (RFC 7517, section 5.1).
    case notKeySet
    /// No key of it can verify a token.
    case noUsableKey(skipped: [SkippedKey])

    /// A word for metrics and logs.
    public var word: StaticString {
        switch self {
        case .tooLong: "too_long"
        case .notJSON: "not_json"
        case .notKeySet: "not_a_key_set"
        case .noUsableKey: "no_usable_key"
        }
    }
}

/// A key of a key set that was left out.
public struct SkippedKey: Equatable, Sendable {
    /// Why a key was left out. The raw value is for logs.
    public enum Reason: String, Sendable {
        case notObject = "not an object"
        case keyType = "not an RSA key"
        case keyID = "no usable kid"
        case duplicateKeyID = "another key has the same kid"
        case use = "not for signatures"
        case algorithm = "not for RS256"
        case privateKey = "its private half is in the key set"
        case modulus = "the modulus is not 2048 to 4096 bits"
        case exponent = "the exponent is not odd or out of range"
        case encoding = "its numbers are not base64url"
        case unusable = "OpenSSL refused it"
        case tooMany = "too many keys"
    }

    /// Position among the key set's `keys`, from 0.
    public let index: Int
    /// What is wrong with it.
    public let reason: Reason

    public init(index: Int, reason: Reason) {
        self.index = index
        self.reason = reason
    }
}

/// The keys that may sign a project's tokens at one time: an immutable snapshot of a JWK Set
/// (RFC 7517), shared by all event loops.
///
/// A hostile or half-broken set costs nothing but its bad keys (pitfall K5).
public final class KeySet: Sendable {
    /// A longer body is not parsed. Google's key set is about 4 KiB.
    public static let maximumByteCount = JSONLimits.textBytes
    /// Keys beyond this many are skipped.
    public static let maximumKeyCount = 100

    /// Different for every key set of the process: who remembers it need not keep the set.
    let generation: UInt64
    /// The usable keys, in the order of the set.
    public let keys: [VerificationKey]
    /// The keys that were left out, and why.
    public let skipped: [SkippedKey]

    private static let generations = Atomic<UInt64>(0)

    private init(keys: [VerificationKey], skipped: [SkippedKey]) {
        generation = Self.generations.add(1, ordering: .relaxed).newValue
        self.keys = keys
        self.skipped = skipped
    }

    /// The `kid` of each usable key.
    public var keyIDs: [String] { keys.map(\.keyID) }

    /// Reads a key set. Usable keys survive next to bad ones.
    public static func parse(_ json: Span<UInt8>) throws(KeySetError) -> KeySet {
        guard json.count <= maximumByteCount else { throw .tooLong }
        guard let document = try? JSONDocument(json.copied()), document.kind(of: 0) == .object
        else { throw .notJSON }
        guard let list = document.member("keys"), document.kind(of: list) == .array else {
            throw .notKeySet
        }
        let doubles = duplicateKeyIDs(in: list, of: document)
        var keys: [VerificationKey] = []
        var skipped: [SkippedKey] = []
        for (index, value) in document.elements(of: list).enumerated() {
            if index >= maximumKeyCount {
                skipped.append(SkippedKey(index: index, reason: .tooMany))
                break
            }
            // Two keys with one kid: a token does not say which, and trying both is guessing.
            if doubles.contains(value) {
                skipped.append(SkippedKey(index: index, reason: .duplicateKeyID))
                continue
            }
            switch JSONWebKey.read(value, of: document) {
            case .success(let key): keys.append(key)
            case .failure(let refusal):
                skipped.append(SkippedKey(index: index, reason: refusal.reason))
            }
        }
        if keys.isEmpty { throw .noUsableKey(skipped: skipped) }
        return KeySet(keys: keys, skipped: skipped)
    }

    /// The key with this `kid`. Allocates nothing.
    public func key(for keyID: Span<UInt8>) -> VerificationKey? {
        for key in keys where key.has(keyID: keyID) { return key }
        return nil
    }

    /// Whether a key is in the set, with the same `kid` and the same numbers.
    func contains(_ key: VerificationKey) -> Bool {
        keys.contains { $0 === key || $0.keyID == key.keyID && $0.material == key.material }
    }

    /// The values in `list` whose `kid` is not theirs alone. Of the same key written again the first
    /// one is enough, and stays.
    private static func duplicateKeyIDs(in list: Int, of document: JSONDocument) -> Set<Int> {
        var first: [String: Int] = [:]
        var doubles: Set<Int> = []
        for value in document.elements(of: list).prefix(maximumKeyCount) {
            guard let member = document.member("kid", of: value),
                let keyID = document.text(of: member)
            else { continue }
            guard let earlier = first[keyID] else {
                first[keyID] = value
                continue
            }
            doubles.insert(value)
            if !isSameKey(earlier, value, of: document) { doubles.insert(earlier) }
        }
        return doubles
    }

    private static func isSameKey(_ left: Int, _ right: Int, of document: JSONDocument) -> Bool {
        let names: [StaticString] = ["kty", "use", "alg", "n", "e"]
        return names.allSatisfy { name in
            let texts = [left, right].map { key in
                document.member(name, of: key).flatMap { document.text(of: $0) }
            }
            return texts[0] == texts[1]
        }
    }
}
