/// `token_file` of `[admin]`: read with the configuration, so that `check` knows what is wrong, and
/// a reload takes a new token over.
extension ConfigurationLoader {
    private static let fileType: UInt32 = 0o170000
    private static let regularFile: UInt32 = 0o100000
    private static let othersMayReadOrWrite: UInt32 = 0o006

    /// The token in a file; nil, and a warning or an error, when there is none to be used.
    func readAdminToken(_ path: String, _ setting: Setting) -> AdminToken? {
        let mode = surroundings.mode(path)
        // A named pipe would keep whoever reads it waiting.
        if let mode, mode & Self.fileType != Self.regularFile {
            setting.error("names something that is no regular file")
            return nil
        }
        guard let bytes = surroundings.file(path) else {
            warnIfUnreadable(path, setting)
            return nil
        }
        // Editors and `echo` end files with a line feed that is no part of the token.
        let isLineEnd = { (byte: UInt8) in byte == 0x0A || byte == 0x0D }
        let text = Array(bytes.reversed().drop(while: isLineEnd).reversed())
        let word = String(decoding: text, as: UTF8.self)
        if let mistake = AdminToken.whatIsWrong(with: word) {
            setting.error(
                "names a file that \(mistake)",
                hint: "write a random one with: (umask 077; openssl rand -hex 32 > FILE)")
            return nil
        }
        if let mode, mode & Self.othersMayReadOrWrite != 0 {
            setting.warning(
                "names a file that every user of this machine may read or write",
                hint: "take that away with chmod o-rwx: whoever has the token may change what is "
                    + "served")
        }
        return AdminToken(word)
    }
}
