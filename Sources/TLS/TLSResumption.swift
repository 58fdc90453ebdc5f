internal import COpenSSL

/// Sessions with one peer, so that another connection to it costs no full handshake (RFC 8446,
/// section 2.2; RFC 5077).
///
/// A resumed handshake does not look at the peer's certificate again. So a session is used for the
/// context and the name alone that it began with, which stands for whom we believe and who we are;
/// and whatever tickets follow each other, after an hour, or when the certificate expires, there is
/// a handshake in full.
///
/// It belongs to one event loop and is not thread-safe.
public final class TLSResumption {
    /// More are of no use to connections that are opened in a moment, and each costs some KiB.
    static let capacity = 16
    /// Seconds for which a look at the certificate is good.
    static let longestTrust: Int64 = 3600

    /// What the sessions began with; sessions with another one are not kept.
    private weak var context: TLSContext?
    private var host = ""
    /// The newest is the last.
    private var sessions: [Session] = []
    private let now: () -> Int64

    /// No session yet.
    ///
    /// - Parameter now: Seconds since 1970.
    public init(now: @escaping () -> Int64 = { wallSeconds() }) {
        self.now = now
    }

    /// How many sessions wait to be used.
    public var count: Int { sessions.count }

    /// Lets `stream` go on with a session, where there is one.
    ///
    /// - Returns: what takes the sessions that the handshake brings.
    func attempt(_ stream: OpaquePointer, _ context: TLSContext, host: String) -> Attempt {
        if self.context !== context || self.host != host {
            sessions.removeAll()
            self.context = context
            self.host = host
        }
        let session = take()
        if let session, SSL_set_session(stream, session.pointer) == 1 {
            return Attempt(self, context, host, trustedUntil: session.trustedUntil)
        }
        ErrorQueue.clear()
        return Attempt(self, context, host, trustedUntil: nil)
    }

    private func take() -> Session? {
        let now = now()
        sessions.removeAll { $0.expiresAt <= now }
        guard let session = sessions.last else { return nil }
        // A ticket of TLS 1.3 that comes twice would tell onlookers that both connections are ours
        // (RFC 8446, appendix C.4).
        if session.isUsedOnce { sessions.removeLast() }
        return session
    }

    /// One handshake, which may go on with a session and may bring others.
    final class Attempt {
        private let store: TLSResumption
        private let context: TLSContext
        private let host: String
        /// How long the certificate of the session that was offered is believed.
        private let trustedUntil: Int64?

        init(
            _ store: TLSResumption, _ context: TLSContext, _ host: String, trustedUntil: Int64?
        ) {
            self.store = store
            self.context = context
            self.host = host
            self.trustedUntil = trustedUntil
        }

        /// Takes over a reference to a session that the peer offers.
        ///
        /// - Returns: false when the reference stays the caller's.
        func keep(_ session: OpaquePointer, of stream: OpaquePointer) -> Bool {
            // Meanwhile another context may have taken the place of this one.
            guard store.context === context, store.host == host,
                SSL_SESSION_is_resumable(session) == 1,
                SSL_get_verify_result(stream) == Int(X509_V_OK)
            else { return false }
            let now = store.now()
            let trustedUntil: Int64
            if SSL_session_reused(stream) == 1 {
                guard let inherited = self.trustedUntil else { return false }
                trustedUntil = inherited
            } else {
                guard let certificate = SSL_get0_peer_certificate(stream) else { return false }
                trustedUntil = min(
                    now + TLSResumption.longestTrust,
                    Certificate.validitySeconds(of: certificate).to)
            }
            let lifetime = min(Int64(SSL_SESSION_get_timeout(session)), TLSResumption.longestTrust)
            store.sessions.append(
                Session(
                    owning: session, trustedUntil: trustedUntil,
                    expiresAt: min(trustedUntil, now + lifetime),
                    isUsedOnce: SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION))
            if store.sessions.count > TLSResumption.capacity { store.sessions.removeFirst() }
            return true
        }
    }

    /// Owns one reference to a session of OpenSSL.
    private final class Session {
        let pointer: OpaquePointer
        /// Seconds since 1970 until which the certificate is believed.
        let trustedUntil: Int64
        /// The same for the session, which the peer may keep for less long.
        let expiresAt: Int64
        let isUsedOnce: Bool

        init(owning pointer: OpaquePointer, trustedUntil: Int64, expiresAt: Int64, isUsedOnce: Bool)
        {
            self.pointer = pointer
            self.trustedUntil = trustedUntil
            self.expiresAt = expiresAt
            self.isUsedOnce = isUsedOnce
        }

        deinit {
            SSL_SESSION_free(pointer)
        }
    }
}
