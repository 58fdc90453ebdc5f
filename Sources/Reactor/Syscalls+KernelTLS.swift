internal import CPlatform
internal import Glibc

/// TLS that the kernel does for a socket. `keys` is a `tls12_crypto_info_…` structure of the kernel.
extension Syscalls {
    /// setsockopt(2), TCP_ULP: prepares a socket. `notConnected` says that the kernel could.
    static func attachTLS(_ descriptor: Int32) throws(Errno) {
        _ = try checked(.attachTLS(descriptor)) { CPlatform_attach_tls(descriptor) }
    }

    /// setsockopt(2), TLS_TX: the kernel seals what is sent from now on.
    static func startTLS(_ descriptor: Int32, keys: UnsafeRawPointer) throws(Errno) {
        _ = try checked(.startTLS(descriptor)) { CPlatform_start_tls(descriptor, keys) }
    }

    /// sendmsg(2), TLS_SET_RECORD_TYPE: sends bytes as a record of a type, without SIGPIPE.
    static func sendRecord(_ descriptor: Int32, type: UInt8, _ bytes: UnsafeRawBufferPointer)
        throws(Errno) -> Int
    {
        try checked(.sendRecord(descriptor, type: type, bytes)) {
            CPlatform_send_record(descriptor, type, bytes.baseAddress, bytes.count)
        }
    }

    /// getsockopt(2), TLS_TX: the number of the record that the kernel seals next.
    static func nextRecord(_ descriptor: Int32) throws(Errno) -> UInt64 {
        var sequence: UInt64 = 0
        let result = try checked(.nextRecord(descriptor)) {
            Int(CPlatform_tls_sequence(descriptor, &sequence))
        }
        return sequence &+ UInt64(clamping: result)
    }

    /// TCP_INFO of getsockopt(2), SIOCOUTQ of ioctl(2): how many bytes TCP was given since the
    /// connection began, but for a constant. `wouldBlock` when it is changing.
    static func streamPosition(_ descriptor: Int32) throws(Errno) -> UInt64 {
        var position: UInt64 = 0
        let result = try checked(.streamPosition(descriptor)) {
            Int(CPlatform_stream_position(descriptor, &position))
        }
        return position &+ UInt64(clamping: result)
    }
}
