/// The verified tokens of one event loop, by their exact bytes: a client sends the same session
/// token for an hour, and verifying its signature costs a hundred times what finding it here does.
///
/// A token is found only as long as a verification would find the same: not past `exp` and leeway,
/// and not once its key has left the project's key set (pitfalls T16, K7). Who changes the
/// configuration empties the cache. The memory is bounded; what nobody asked for again leaves first
/// (CLOCK).
///
/// It belongs to one event loop and is not thread-safe.
public final class TokenCache {
    /// What a token takes beside its own bytes: entry, claims with their strings, bucket, slot.
    static let overheadBytes = 640

    /// The bytes that all entries together may take.
    public let capacityBytes: Int
    /// How many tokens are here.
    public private(set) var count = 0
    /// What the entries take, in bytes.
    public private(set) var byteCount = 0

    private var slots: [CachedToken?] = []
    private var freeSlots: [Int] = []
    private var index = SlotIndex()
    /// The slot that is looked at next when room is needed.
    private var hand = 0
    private let hash = TokenHash()

    /// - Parameter capacityBytes: The bytes that all entries together may take; 0 keeps nothing.
    public init(capacityBytes: Int) {
        self.capacityBytes = max(capacityBytes, 0)
    }

    /// The verified token with exactly these bytes, or nil when it has to be verified. Allocates
    /// nothing.
    ///
    /// - Parameters:
    ///   - now: Unix seconds.
    ///   - keys: As for ``TokenVerifier/verify(_:now:keys:admits:)``.
    public func lookup(
        _ token: Span<UInt8>, now: Int64, keys: (Int) -> KeySet?
    ) -> VerifiedToken? {
        guard let hash = hash.value(of: token), let slot = slot(of: token, hash: hash),
            let entry = slots[slot]
        else { return nil }
        guard now < entry.verified.acceptedUntil else {
            remove(slot)
            return nil
        }
        // No key set is no word about the key: the entry may stay, but it does not count now.
        guard let keySet = keys(entry.verified.project) else { return nil }
        if entry.generation != keySet.generation {
            guard keySet.contains(entry.key) else {
                remove(slot)
                return nil
            }
            entry.generation = keySet.generation
        }
        entry.isRecent = true
        return entry.verified
    }

    /// Keeps a token that ``TokenVerifier/verify(_:now:keys:admits:)`` has just verified; does
    /// nothing for a value that no verifier made.
    ///
    /// - Parameter now: Unix seconds: what is past its time makes room first.
    public func insert(_ token: Span<UInt8>, _ verified: VerifiedToken, now: Int64) {
        guard let key = verified.key, let hash = hash.value(of: token) else { return }
        if let earlier = slot(of: token, hash: hash) { remove(earlier) }
        let entry = CachedToken(token, verified, key: key, hash: hash)
        guard entry.cost <= capacityBytes else { return }
        makeRoom(for: entry.cost, now: now)
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[slot] = entry
        } else {
            slot = slots.count
            slots.append(entry)
        }
        index.insert(hash, slot: slot)
        count += 1
        byteCount += entry.cost
    }

    /// Forgets everything: with another configuration the same token may have another verdict.
    public func removeAll() {
        slots = []
        freeSlots = []
        index = SlotIndex()
        hand = 0
        count = 0
        byteCount = 0
    }

    private func slot(of token: Span<UInt8>, hash: UInt64) -> Int? {
        index.first(hash) { slot in
            slots[slot]?.isOf(token) ?? false
        }
    }

    private func remove(_ slot: Int) {
        guard let entry = slots[slot] else { return }
        index.remove(entry.hash, slot: slot)
        slots[slot] = nil
        freeSlots.append(slot)
        count -= 1
        byteCount -= entry.cost
    }

    /// Removes entries until `cost` more bytes fit: those past their time, and those that were not
    /// found since the hand came by last. The second round removes whatever it meets, so this ends.
    private func makeRoom(for cost: Int, now: Int64) {
        while byteCount + cost > capacityBytes, count > 0 {
            hand = hand + 1 < slots.count ? hand + 1 : 0
            guard let entry = slots[hand] else { continue }
            if entry.isRecent, now < entry.verified.acceptedUntil {
                entry.isRecent = false
            } else {
                remove(hand)
            }
        }
    }
}

/// A token in the cache.
private final class CachedToken {
    let verified: VerifiedToken
    let key: VerificationKey
    let hash: UInt64
    /// The last key set that the key was found in; none at first.
    var generation: UInt64 = 0
    /// Whether it was found since the hand came by.
    var isRecent = false

    private let bytes: [UInt8]

    init(_ token: Span<UInt8>, _ verified: VerifiedToken, key: VerificationKey, hash: UInt64) {
        self.verified = verified
        self.key = key
        self.hash = hash
        bytes = token.copied()
    }

    var cost: Int { bytes.count + TokenCache.overheadBytes }

    @inline(__always)
    func isOf(_ token: Span<UInt8>) -> Bool {
        let bytes = bytes
        return bytes.span.equals(token)
    }
}
