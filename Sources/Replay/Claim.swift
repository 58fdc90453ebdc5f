public import Attestation
public import Reactor

/// A moment on both clocks: what a wall clock says can be stepped, and a monotonic one says nothing
/// about tokens.
public struct ClaimInstant: Sendable, Equatable {
    /// Microseconds since 1970.
    public var wallMicroseconds: Int64
    /// The monotonic clock at the same moment.
    public var monotonic: MonotonicInstant

    public init(wallMicroseconds: Int64, monotonic: MonotonicInstant) {
        self.wallMicroseconds = wallMicroseconds
        self.monotonic = monotonic
    }

    /// Whole seconds since 1970.
    public var wallSeconds: Int64 { wallMicroseconds / 1_000_000 }
}

/// The wish to spend a verified limited-use token.
public struct Claim: Sendable {
    /// Which token.
    public var key: ClaimKey
    /// Claim `iat`, seconds since 1970.
    public var issuedAt: Int64
    /// The first second at which nobody accepts the token any more, whatever leeway he has, seconds
    /// since 1970. The claim is remembered until then.
    public var retainedUntil: Int64
    /// When the request asks.
    public var at: ClaimInstant
    /// The token itself, for stores whose `needsToken` is true; empty for all others.
    public var token: [UInt8]
    /// Number or id of the token's Firebase project, for stores whose `needsToken` is true; empty
    /// for all others.
    public var project: String

    public init(
        key: ClaimKey, issuedAt: Int64, retainedUntil: Int64, at: ClaimInstant,
        token: [UInt8] = [], project: String = ""
    ) {
        self.key = key
        self.issuedAt = issuedAt
        self.retainedUntil = retainedUntil
        self.at = at
        self.token = token
        self.project = project
    }

    /// The claim of a verified token, for stores that do not need the token itself.
    ///
    /// - Parameters:
    ///   - issuer: Its claim `iss`.
    ///   - text: The whole token as it was sent.
    ///   - at: When the request asks.
    public init(
        of token: VerifiedToken, issuer: String, text: Span<UInt8>, at: ClaimInstant
    ) {
        self.init(
            key: ClaimKey(of: token, issuer: issuer, text: text), issuedAt: token.issuedAt,
            retainedUntil: token.rememberedUntil, at: at)
    }
}

/// What a store says to a claim.
public enum ClaimOutcome: Sendable, Equatable {
    /// The token was never claimed before, and now it is.
    case claimed
    /// It was claimed before.
    case reused
    /// The token is older than what the store can remember (a new store, a reboot, a flushed
    /// server), so nobody can tell whether it was claimed. It is claimed now.
    case predates
    /// Claims as old as this one were forgotten already: the clock went back.
    case expired
    /// The store holds as many unexpired claims as it may.
    case full
    /// The store could not be asked.
    case unavailable(StoreFailure)
    /// Only Google's: it does not accept the token (`verifyAppCheckToken`, 403).
    case refused
    /// Only Google's: a genuine token that it cannot spend (`verifyAppCheckToken`, 400).
    case unsupported
}

/// Why a store could not be asked. The raw values are the words of logs.
public enum StoreFailure: String, Sendable, CaseIterable {
    /// No answer in time. The claim may have been made.
    case timeout
    /// No connection.
    case unreachable
    /// The connection broke before the answer. The claim may have been made.
    case disconnected
    /// TLS failed.
    case tls
    /// It wants other credentials, or does not permit the command.
    case denied
    /// It answered what makes no sense, or an error of its own.
    case protocolError = "protocol"
    /// It may drop claims that have not expired (an eviction policy).
    case evicting
    /// It failed again and again a moment ago and is left alone for a while.
    case breakerOpen = "breaker_open"
    /// Too many requests wait for it already.
    case overloaded
    /// The operating system failed: a full disk, a missing file.
    case system
}
