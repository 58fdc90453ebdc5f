internal import CPlatform
internal import Glibc

/// An error number of the kernel (errno(3)).
public struct Errno: Error, Sendable, Equatable, Hashable, RawRepresentable, CustomStringConvertible
{
    public let rawValue: Int32

    public init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// EAGAIN.
    public static let wouldBlock = Errno(rawValue: EAGAIN)
    /// EINTR.
    public static let interrupted = Errno(rawValue: EINTR)
    /// EINPROGRESS.
    public static let inProgress = Errno(rawValue: EINPROGRESS)
    /// EMFILE: this process has no descriptor left.
    public static let tooManyOpenFiles = Errno(rawValue: EMFILE)
    /// ENFILE: the machine has no descriptor left.
    public static let tooManyOpenFilesInSystem = Errno(rawValue: ENFILE)
    /// ENOMEM.
    public static let noMemory = Errno(rawValue: ENOMEM)
    /// ENOBUFS.
    public static let noBufferSpace = Errno(rawValue: ENOBUFS)
    /// ECONNABORTED: the peer gave up before it was accepted.
    public static let connectionAborted = Errno(rawValue: ECONNABORTED)
    /// ECONNREFUSED.
    public static let connectionRefused = Errno(rawValue: ECONNREFUSED)
    /// ECONNRESET.
    public static let connectionReset = Errno(rawValue: ECONNRESET)
    /// EPIPE.
    public static let brokenPipe = Errno(rawValue: EPIPE)
    /// EADDRINUSE.
    public static let addressInUse = Errno(rawValue: EADDRINUSE)
    /// EADDRNOTAVAIL.
    public static let addressNotAvailable = Errno(rawValue: EADDRNOTAVAIL)
    /// EACCES.
    public static let permissionDenied = Errno(rawValue: EACCES)
    /// ENOENT.
    public static let noSuchFile = Errno(rawValue: ENOENT)
    /// ETIMEDOUT.
    public static let timedOut = Errno(rawValue: ETIMEDOUT)
    /// ENOSPC: the disk is full; of epoll_ctl(2): as many descriptors are watched as the user may.
    public static let noSpace = Errno(rawValue: ENOSPC)
    /// EIO.
    public static let inputOutput = Errno(rawValue: EIO)
    /// ENOTCONN.
    public static let notConnected = Errno(rawValue: ENOTCONN)
    /// EINVAL.
    public static let invalidArgument = Errno(rawValue: EINVAL)

    /// Of a call that makes a connection: this process or this machine has no descriptor or memory
    /// left for it. The peer has nothing to do with that.
    public var isExhaustion: Bool {
        switch self {
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace, .noSpace:
            true
        default: false
        }
    }

    /// Of accept(2): the connection that was to be accepted is gone, or is not let in. What else
    /// waits can be accepted all the same.
    var isOfAcceptedConnection: Bool {
        switch rawValue {
        case ECONNABORTED, EPERM, EPROTO, ENOPROTOOPT, ENETDOWN, EHOSTDOWN, ENONET, EHOSTUNREACH,
            ENETUNREACH, ETIMEDOUT:
            true
        default: false
        }
    }

    /// The kernel's own text, as strerror(3) has it.
    public var description: String {
        guard let text = CPlatform_strerror(rawValue) else { return "error \(rawValue)" }
        return String(cString: text)
    }
}
