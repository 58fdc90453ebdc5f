internal import COpenSSL

/// OpenSSL's queue of errors, one per thread.
enum OpenSSLErrors {
    /// Forgets what a failed call left behind.
    ///
    /// Whoever shares the thread asks the queue what went wrong with a connection; an old entry
    /// about a bad signature would be taken for the answer. So each failure here drains what it
    /// caused.
    static func drain() {
        ERR_clear_error()
    }
}
