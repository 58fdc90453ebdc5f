import TestKit
import Testing

@testable import Attestation

@Suite("The cache of verified tokens")
struct TokenCacheTests {
    static let issuer = TestIssuer.standard
    static let now = TestIssuer.now
    static let verifier = TokenVerifier(projects: [TestIssuer.project])

    /// Looks a token up without verifying it.
    static func isCached(
        _ token: String, in cache: TokenCache, now: Int64 = now, keySet: KeySet?
    ) -> Bool {
        cache.lookup(Array(token.utf8).span, now: now) { _ in keySet } != nil
    }

    static func verify(
        _ token: String, in cache: TokenCache, now: Int64 = now, keySet: KeySet?
    ) -> Outcome {
        Outcome(
            verifier.verify(Array(token.utf8).span, now: now, cache: cache) { _ in keySet })
    }

    static func token(_ number: Int) -> String { issuer.token(claims: ["jti": "\"\(number)\""]) }

    @Test("finds a verified token again, the same object")
    func hit() throws {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let keySet = Self.issuer.keySet
        let token = Array(Self.token(1).utf8)
        let first = Self.verifier.verify(token.span, now: Self.now, cache: cache) { _ in keySet }
        let second = Self.verifier.verify(token.span, now: Self.now, cache: cache) { _ in keySet }
        guard case .verified(let left) = first, case .verified(let right) = second else {
            Issue.record("not verified")
            return
        }
        #expect(left === right)
        #expect(cache.count == 1)
    }

    @Test("keeps nothing that was not verified")
    func onlyVerified() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let forged = TestIssuer(key: TestIssuer.other.mint.key, keyID: "k1").token()
        let keySet = Self.issuer.keySet
        #expect(Self.verify(forged, in: cache, keySet: keySet) == .invalid(.signature))
        #expect(
            Self.verify("eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==", in: cache, keySet: keySet)
                == .attestationFailed)
        #expect(Self.verify("", in: cache, keySet: keySet) == .invalid(.malformed))
        #expect(
            Self.verify(
                Self.issuer.token(claims: ["exp": "1", "iat": "0"]), in: cache, keySet: keySet)
                == .invalid(.expired))
        #expect(cache.count == 0)
        #expect(cache.byteCount == 0)
        let invented = VerifiedToken(
            project: 0, appID: "a", app: nil, issuedAt: 0, expiresAt: .max, tokenID: nil,
            provider: nil, keyID: "k1")
        cache.insert(Array(forged.utf8).span, invented, now: 0)
        #expect(cache.count == 0)
    }

    @Test("T16: finds a token by all of its bytes, not by some")
    func exactBytes() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let keySet = Self.issuer.keySet
        let token = Array(Self.token(1).utf8)
        #expect(Self.verify(Self.token(1), in: cache, keySet: keySet) == .verified)
        var found: [Int] = []
        for index in token.indices {
            var changed = token
            changed[index] ^= 1
            if cache.lookup(changed.span, now: Self.now, keys: { _ in keySet }) != nil {
                found.append(index)
            }
        }
        #expect(found == [])
        for other in [
            token + [0x41], Array(token.dropLast()), Array(token.dropFirst()), [], [0x41],
        ] {
            #expect(cache.lookup(other.span, now: Self.now) { _ in keySet } == nil)
        }
        #expect(cache.lookup(token.span, now: Self.now) { _ in keySet } != nil)
    }

    @Test("T16: finds no token past its end and leeway, and forgets it then")
    func expiry() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let keySet = Self.issuer.keySet
        let token = Self.token(1)
        #expect(Self.verify(token, in: cache, keySet: keySet) == .verified)
        let end = Self.now + 3600 + 60
        #expect(Self.isCached(token, in: cache, now: end - 1, keySet: keySet))
        #expect(Self.verify(token, in: cache, now: end, keySet: keySet) == .invalid(.expired))
        #expect(cache.count == 0)
        #expect(cache.byteCount == 0)
    }

    @Test("K7: finds no token whose key has left the key set")
    func rotation() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let token = Self.token(1)
        #expect(Self.verify(token, in: cache, keySet: Self.issuer.keySet) == .verified)
        // Refreshed sets that still have the key are no reason to verify again.
        #expect(Self.isCached(token, in: cache, keySet: Self.issuer.keySet))
        #expect(
            Self.isCached(token, in: cache, keySet: TestIssuer.keySet(of: [.other, .standard])))
        #expect(Self.verify(token, in: cache, keySet: TestIssuer.other.keySet) == .unknownKey)
        #expect(cache.count == 0)
    }

    @Test("K7: another key under the same kid is another key")
    func sameKeyID() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let token = Self.token(1)
        #expect(Self.verify(token, in: cache, keySet: Self.issuer.keySet) == .verified)
        let imposter = TestIssuer(key: TestIssuer.other.mint.key, keyID: "k1")
        #expect(Self.verify(token, in: cache, keySet: imposter.keySet) == .invalid(.signature))
        #expect(cache.count == 0)
    }

    @Test(
        "K7: finds no token while the project has no key set, and finds it when there is one again")
    func noKeySet() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let token = Self.token(1)
        let keySet = Self.issuer.keySet
        #expect(Self.verify(token, in: cache, keySet: keySet) == .verified)
        #expect(Self.verify(token, in: cache, keySet: nil) == .keysUnavailable)
        #expect(Self.isCached(token, in: cache, keySet: keySet))
    }

    @Test("forgets everything when told")
    func removeAll() {
        let cache = TokenCache(capacityBytes: 1 << 20)
        let keySet = Self.issuer.keySet
        for number in 0..<10 { _ = Self.verify(Self.token(number), in: cache, keySet: keySet) }
        #expect(cache.count == 10)
        cache.removeAll()
        #expect(cache.count == 0)
        #expect(cache.byteCount == 0)
        #expect(!Self.isCached(Self.token(1), in: cache, keySet: keySet))
        #expect(Self.verify(Self.token(1), in: cache, keySet: keySet) == .verified)
        #expect(cache.count == 1)
    }

    @Test("stays inside its bytes, and keeps what is asked for again")
    func eviction() {
        let keySet = Self.issuer.keySet
        let cost = Self.token(1000).utf8.count + TokenCache.overheadBytes
        let cache = TokenCache(capacityBytes: cost * 10)
        let favourite = Self.token(0)
        #expect(Self.verify(favourite, in: cache, keySet: keySet) == .verified)
        for number in 1000..<1200 {
            _ = Self.verify(Self.token(number), in: cache, keySet: keySet)
            #expect(cache.byteCount <= cache.capacityBytes)
            #expect(Self.isCached(favourite, in: cache, keySet: keySet))
        }
        #expect(9...10 ~= cache.count)
        #expect(Self.isCached(Self.token(1199), in: cache, keySet: keySet))
    }

    @Test("makes room with expired tokens before good ones, although they were asked for")
    func expiredFirst() {
        let keySet = Self.issuer.keySet
        let cost = Self.token(1000).utf8.count + TokenCache.overheadBytes
        let cache = TokenCache(capacityBytes: cost * 4)
        let short = (1...3).map {
            Self.issuer.token(claims: ["jti": "\"100\($0)\"", "exp": "\(Self.now + 1000)"])
        }
        for token in short {
            _ = Self.verify(token, in: cache, keySet: keySet)
            #expect(Self.isCached(token, in: cache, keySet: keySet))
        }
        let good = Self.token(1000)
        _ = Self.verify(good, in: cache, keySet: keySet)
        #expect(Self.isCached(good, in: cache, keySet: keySet))
        let later = Self.now + 2000
        for number in 1001...1003 {
            _ = Self.verify(Self.token(number), in: cache, now: later, keySet: keySet)
            #expect(Self.isCached(good, in: cache, now: later, keySet: keySet))
        }
    }

    @Test("keeps nothing when there is no room for it", arguments: [0, -1, 100])
    func noRoom(capacity: Int) {
        let cache = TokenCache(capacityBytes: capacity)
        let keySet = Self.issuer.keySet
        #expect(Self.verify(Self.token(1), in: cache, keySet: keySet) == .verified)
        #expect(cache.count == 0)
    }

    @Test("its index finds exactly what is in it, whatever was put in and taken out")
    func index() {
        var index = SlotIndex()
        var model: [Int: UInt64] = [:]
        var random = SystemRandomNumberGenerator()
        for step in 0..<20_000 {
            if model.count > 40, step % 3 != 0, let (slot, hash) = model.randomElement() {
                index.remove(hash, slot: slot)
                model[slot] = nil
            } else {
                // Few different hashes: they meet in the same buckets all the time.
                let hash = UInt64.random(in: 0..<50, using: &random) << 1 | 1
                index.insert(hash, slot: step)
                model[step] = hash
            }
            if step % 50 == 0 {
                #expect(model.allSatisfy { slot, hash in index.first(hash) { $0 == slot } == slot })
                #expect(index.first(1001) { _ in true } == nil)
            }
        }
        for (slot, hash) in model { index.remove(hash, slot: slot) }
        #expect(model.allSatisfy { _, hash in index.first(hash) { _ in true } == nil })
    }
}
