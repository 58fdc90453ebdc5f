internal import COpenSSL
internal import Reactor

/// A stream whose records the kernel seals.
extension TLSStream {
    /// The kernel encrypts what is sent; OpenSSL decrypts what comes.
    public var isSealedByKernel: Bool { transport.records != nil }

    /// Closing the socket loses nothing that was written: the kernel holds nothing above TCP. Asks
    /// the kernel; where OpenSSL encrypts, `flush` tells.
    public var isHandedOver: Bool {
        guard let records = transport.records else { return true }
        transport.flush()
        return transport.failure != nil || records.isEmpty && records.tls.isHandedOver
    }

    /// The peer wants new keys (RFC 8446, section 4.6.3), which the kernel cannot take: the
    /// connection should end when it can. Until then we send under the old ones: nobody can tell
    /// that from an answer that is on its way.
    public var isDueToEnd: Bool {
        transport.records != nil && SSL_get_key_update_type(stream) != SSL_KEY_UPDATE_NONE
    }

    /// Takes some of both; see `write(_:_:)`. The kernel cuts records.
    func write(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, by kernel: KernelTLS
    ) throws(TLSError) -> TransferResult {
        do throws(Errno) {
            return try kernel.write(first, second)
        } catch {
            transport.fail(error)
            throw fail(during: "the transfer")
        }
    }
}
