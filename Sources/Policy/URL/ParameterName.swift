/// The name of a URL parameter, taken in byte by byte and reduced to what careless readers tell
/// apart: decoded, small letters, without `_`, `-`, `.` and spaces. `a[b]` is read as the name "a"
/// with a second part "b".
struct ParameterName {
    /// What a name says about tokens.
    enum Kind {
        case ordinary
        /// App Check tokens travel under it.
        case token
        /// "ac", under which the Realtime Database's browser SDK sends them: a token unless empty.
        case shortToken
    }

    /// The last 24 bytes, newest in the lowest byte of `last`.
    private var last: UInt64 = 0
    private var middle: UInt64 = 0
    private var first: UInt64 = 0
    private var count = 0
    /// Nothing was left out.
    private var isWhole = true
    /// Of the part before the first "[", once that is over.
    private var firstKind: Kind?
    /// A part that is over was a word that secrets go by.
    private var hadSecretPart = false
    private var holdsSecretWord = false
    /// How often "auth" came that was not part of "author".
    private var auths = 0

    /// Adds the next decoded byte.
    @inline(__always)
    mutating func append(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "["), UInt8(ascii: "]"): beginPart()
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: " "),
            UInt8(ascii: "+"):
            isWhole = false
        default:
            first = first << 8 | middle >> 56
            middle = middle << 8 | last >> 56
            last = last << 8 | UInt64(lowercased(byte))
            count += 1
        }
    }

    /// Looks for words that secrets go by; to be called after each byte where `isSecret` is wanted.
    @inline(__always)
    mutating func noteWords() {
        let isWord: Bool
        switch last & 0xffff_ffff {
        case packed("oken"): isWord = ends("token")
        case packed("cret"): isWord = ends("secret")
        case packed("assw"): isWord = ends("passw")
        case packed("assp"): isWord = ends("passp")
        case packed("assc"): isWord = ends("passc")
        case packed("ture"): isWord = ends("ignature")
        case packed("sion"): isWord = ends("session")
        case packed("tial"): isWord = ends("edential")
        case packed("heck"): isWord = ends("appcheck")
        case packed("okie"): isWord = ends("cookie")
        case packed("tion"): isWord = ends("ssertion") || ends("estation")
        case packed("ikey"): isWord = ends("apikey")
        case packed("skey"): isWord = ends("cesskey")
        case packed("ekey"): isWord = ends("ivatekey")
        case packed("code"): isWord = ends("vicecode") || ends("usercode")
        case packed("saml"): isWord = true
        case packed("auth"):
            auths += 1
            return
        case packed("thor"):
            if ends("author") { auths -= 1 }
            return
        case packed("hori"):
            if ends("authori") { auths += 1 }
            return
        default: isWord = ends("jwt") || ends("pwd")
        }
        if isWord { holdsSecretWord = true }
    }

    private mutating func beginPart() {
        hadSecretPart = isSecret
        firstKind = kind
        (last, middle, first, count) = (0, 0, 0, 0)
    }

    var kind: Kind {
        if let firstKind { return firstKind }
        return switch count {
        case 2: isWhole && last == packed("ac") ? .shortToken : .ordinary
        case 13:
            last == packed("ecktoken") && middle == packed("appch") ? .token : .ordinary
        case 17:
            last == packed("appcheck") && middle == packed("firebase") && first == packed("x")
                ? .token : .ordinary
        case 21:
            last == packed("ecktoken") && middle == packed("aseappch") && first == packed("fireb")
                ? .token : .ordinary
        default: .ordinary
        }
    }

    /// Whether the value is nobody's business: the name is, or contains, a word that secrets go by.
    var isSecret: Bool {
        if holdsSecretWord || hadSecretPart || auths > 0 || ends("key") { return true }
        if kind != .ordinary { return true }
        return switch count {
        case 2: last == packed("pw")
        case 3: ends("sig") || ends("sid") || ends("otp") || ends("pin")
        case 4: ends("code") || ends("pass") || ends("hmac")
        default: false
        }
    }

    /// Whether the name so far ends with a word of at most eight bytes.
    @inline(__always)
    private func ends(_ word: StaticString) -> Bool {
        let unused = UInt64(64 - 8 * word.utf8CodeUnitCount)
        return last << unused == packed(word) << unused
    }
}
