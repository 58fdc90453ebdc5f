internal import COpenSSL
internal import Reactor
internal import Synchronization

/// The keys that session tickets are sealed with (RFC 5077, RFC 8446 section 4.6.1): shared by all
/// loops and listeners of a process, so that a client may resume anywhere, and replaced regularly,
/// so that a key that leaks opens only a day of recorded sessions.
public final class TicketKeys: Sendable {
    /// How long a key seals; it opens tickets for as long again.
    static let rotation = Duration.seconds(12 * 3600)

    /// Looked up once: OpenSSL would search its providers for each ticket.
    ///
    /// Safe to be unchecked: it is only read, and OpenSSL counts its references atomically.
    private nonisolated(unsafe) static let cipher = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil)

    private let keys = Mutex<[Key]>([])

    /// Keys that nobody else has.
    public init() {}

    /// One key, in the layout of its 80 bytes: name, cipher, MAC.
    private struct Key {
        static let nameBytes = 16
        static let cipherBytes = 32
        static let macBytes = 32

        let bytes: [UInt8]
        let madeAt: MonotonicInstant

        /// Nil when the system has no randomness.
        init?(at now: MonotonicInstant) {
            var bytes = [UInt8](
                repeating: 0, count: Self.nameBytes + Self.cipherBytes + Self.macBytes)
            if RAND_priv_bytes(&bytes, Int32(bytes.count)) != 1 { return nil }
            self.bytes = bytes
            madeAt = now
        }

        func isNamed(_ name: UnsafePointer<UInt8>) -> Bool {
            UnsafeBufferPointer(start: name, count: Self.nameBytes)
                .elementsEqual(bytes.prefix(Self.nameBytes))
        }
    }

    /// What OpenSSL asks for each ticket, through `SSL_CTX_set_tlsext_ticket_key_evp_cb`.
    static let callback:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?,
            OpaquePointer?, OpaquePointer?, Int32
        ) -> Int32 = { stream, name, vector, cipher, mac, isSealing in
            guard let stream, let name, let vector, let cipher, let mac,
                let context = ServerContext.of(stream)
            else { return -1 }
            if isSealing == 1 {
                return context.tickets.seal(name, vector, cipher, mac, at: .now)
            }
            // TLS 1.3 tickets are for one use: whoever brought one gets another.
            let isForOneUse = SSL_version(stream) == TLS1_3_VERSION
            return context.tickets.open(
                name, vector, cipher, mac, at: .now, alwaysRenews: isForOneUse)
        }

    private func seal(
        _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer, _ mac: OpaquePointer, at now: MonotonicInstant
    ) -> Int32 {
        guard let key = newest(at: now), Self.cipher != nil,
            RAND_bytes(vector, EVP_CIPHER_get_iv_length(Self.cipher)) == 1
        else { return -1 }
        name.update(from: key.bytes, count: Key.nameBytes)
        return prepare(key, mac) { EVP_EncryptInit_ex(cipher, Self.cipher, nil, $0, vector) }
            ? 1 : -1
    }

    /// - Returns: 0 when the key is gone, 1 when the ticket is good, 2 when it should be replaced.
    private func open(
        _ name: UnsafePointer<UInt8>, _ vector: UnsafePointer<UInt8>, _ cipher: OpaquePointer,
        _ mac: OpaquePointer, at now: MonotonicInstant, alwaysRenews: Bool
    ) -> Int32 {
        let known = keys.withLock { keys in
            keys.enumerated().first { index, key in
                key.isNamed(name) && now < key.madeAt.advanced(by: Self.rotation * 2)
            }
        }
        guard let (index, key) = known else { return 0 }
        let isReady = prepare(key, mac) {
            EVP_DecryptInit_ex(cipher, Self.cipher, nil, $0, vector)
        }
        if !isReady { return -1 }
        return index > 0 || alwaysRenews ? 2 : 1
    }

    private func newest(at now: MonotonicInstant) -> Key? {
        keys.withLock { keys in
            if let key = keys.first, now < key.madeAt.advanced(by: Self.rotation) { return key }
            guard let key = Key(at: now) else { return nil }
            keys.insert(key, at: 0)
            if keys.count > 2 { keys.removeLast() }
            return key
        }
    }

    private func prepare(
        _ key: Key, _ mac: OpaquePointer, _ cipher: (UnsafePointer<UInt8>) -> Int32
    ) -> Bool {
        // Safe: the array holds all three parts one behind the other.
        key.bytes.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return false }
            let cipherKey = start + Key.nameBytes
            return cipher(cipherKey) == 1
                && COpenSSL_EVP_MAC_CTX_set_HMAC_SHA256(
                    mac, cipherKey + Key.cipherBytes, Key.macBytes) == 1
        }
    }
}
