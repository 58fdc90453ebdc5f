internal import COpenSSL

/// Lets OpenSSL read bytes as if they were a file.
///
/// - Parameter body: Gets the BIO, which lives as long as the call.
/// - Returns: nil when there is no memory.
func withBIO<R, E: Error>(
    of bytes: [UInt8], _ body: (OpaquePointer) throws(E) -> R
) throws(E) -> R? {
    // Safe: the BIO reads the array's memory and is freed before the closure ends.
    try bytes.withUnsafeBufferPointer { buffer throws(E) -> R? in
        guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count)) else {
            return nil
        }
        defer { BIO_free(bio) }
        return try body(bio)
    }
}
