extension KnownField {
    /// Finds the field of a name that consists of letters, digits and "-".
    ///
    /// The length picks the candidates; each costs one or two compares of eight bytes.
    @inline(__always)
    init(plainName name: Span<UInt8>) {
        switch name.count {
        case 2: self = name.hasPrefix("te") ? .te : .other
        case 3: self = name.hasPrefix("via") ? .via : .other
        case 4: self = Self.ofLength4(name)
        case 6: self = Self.ofLength6(name)
        case 7: self = Self.ofLength7(name)
        case 9: self = Self.ofLength9(name)
        case 10: self = Self.ofLength10(name)
        case 11: self = Self.ofLength11(name)
        case 12: self = Self.ofLength12(name)
        case 13: self = Self.ofLength13(name)
        case 14: self = Self.ofLength14(name)
        case 15: self = name.hasPrefix("x-forwarded-for") ? .forwardedFor : .other
        case 16: self = Self.ofLength16(name)
        case 17: self = Self.ofLength17(name)
        case 18: self = Self.ofLength18(name)
        case 19: self = Self.ofLength19(name)
        case 20: self = name.hasPrefix("sec-websocket-accept") ? .webSocketAccept : .other
        case 21: self = name.hasPrefix("sec-websocket-version") ? .webSocketOther : .other
        case 22: self = name.hasPrefix("sec-websocket-protocol") ? .webSocketProtocol : .other
        case 24: self = name.hasPrefix("sec-websocket-extensions") ? .webSocketOther : .other
        case 29:
            self =
                name.hasPrefix("access-control-request-method")
                ? .accessControlRequestMethod : .other
        case 30:
            self =
                name.hasPrefix("access-control-request-headers")
                ? .accessControlRequestHeaders : .other
        default: self = .other
        }
        if self == .other, name.count >= 9, name.hasPrefix("x-") {
            self = Self.ofFamily(name)
        }
    }

    /// Finds the field of a name that also has other token characters.
    ///
    /// Gateways that turn names into variables (CGI, WSGI, PHP) read `X_AppCheck_Verdict` or
    /// `Content.Length` as the name with "-". Such look-alikes of a known field are `reserved` in
    /// requests, so that they are removed; in responses nobody can gain from them.
    init(unusualName name: Span<UInt8>, in kind: MessageKind) {
        self = .other
        if kind == .response { return }
        var folded = InlineArray<32, UInt8>(repeating: 0x2D)
        let count = min(name.count, folded.count)
        for index in 0..<count where name[index].isAlphanumeric {
            folded[index] = name[index]
        }
        // Of a longer name the copy holds enough: no single field's name is that long, and the
        // prefixes of families are shorter.
        if KnownField(plainName: folded.span.extracting(0..<count)) != .other { self = .reserved }
    }

    @inline(__always)
    private static func ofLength4(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("host") { return .host }
        return name.hasPrefix("date") ? .date : .other
    }

    @inline(__always)
    private static func ofLength6(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("cookie") { return .cookie }
        if name.hasPrefix("origin") { return .origin }
        if name.hasPrefix("server") { return .server }
        return name.hasPrefix("expect") ? .expect : .other
    }

    @inline(__always)
    private static func ofLength7(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("upgrade") { return .upgrade }
        return name.hasPrefix("trailer") ? .trailer : .other
    }

    @inline(__always)
    private static func ofLength9(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("forwarded") { return .forwarded }
        return name.hasPrefix("x-real-ip") ? .forwardedOther : .other
    }

    @inline(__always)
    private static func ofLength10(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("user-agent") { return .userAgent }
        if name.hasPrefix("connection") { return .connection }
        if name.hasPrefix("keep-alive") { return .keepAlive }
        return name.hasPrefix("tracestate") ? .tracestate : .other
    }

    @inline(__always)
    private static func ofLength11(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("traceparent") { return .traceparent }
        if name.hasPrefix("client-cert") { return .forwardedOther }
        return name.hasPrefix("x-client-ip") ? .forwardedOther : .other
    }

    @inline(__always)
    private static func ofLength12(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("content-type") { return .contentType }
        return name.hasPrefix("x-request-id") ? .requestID : .other
    }

    @inline(__always)
    private static func ofLength13(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("authorization") { return .authorization }
        if name.hasPrefix("fly-client-ip") { return .forwardedOther }
        return name.hasPrefix("x-rewrite-url") ? .forwardedOther : .other
    }

    @inline(__always)
    private static func ofLength14(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("content-length") { return .contentLength }
        if name.hasPrefix("http2-settings") { return .http2Settings }
        return name.hasPrefix("true-client-ip") ? .forwardedOther : .other
    }

    @inline(__always)
    private static func ofLength16(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("x-forwarded-host") { return .forwardedHost }
        if name.hasPrefix("cf-connecting-ip") { return .forwardedOther }
        if name.hasPrefix("fastly-client-ip") { return .forwardedOther }
        return name.hasPrefix("proxy-connection") ? .proxyConnection : .other
    }

    @inline(__always)
    private static func ofLength17(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("transfer-encoding") { return .transferEncoding }
        if name.hasPrefix("client-cert-chain") { return .forwardedOther }
        if name.hasPrefix("x-forwarded-proto") { return .forwardedProto }
        return name.hasPrefix("sec-websocket-key") ? .webSocketKey : .other
    }

    @inline(__always)
    private static func ofLength18(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("cf-connecting-ipv6") { return .forwardedOther }
        return name.hasPrefix("proxy-authenticate") ? .proxyAuthenticate : .other
    }

    @inline(__always)
    private static func ofLength19(_ name: Span<UInt8>) -> KnownField {
        if name.hasPrefix("x-firebase-appcheck") { return .appCheckToken }
        return name.hasPrefix("proxy-authorization") ? .proxyAuthorization : .other
    }

    /// Fields that are known by how their names begin, and the rarer ones of the `X-` kind.
    private static func ofFamily(_ name: Span<UInt8>) -> KnownField {
        if name.count >= 11, name.hasPrefix("x-appcheck-") { return .reserved }
        if name.count >= 14, name.hasPrefix("x-client-cert-") { return .reserved }
        if name.count >= 11, name.hasPrefix("x-forwarded") { return .forwardedOther }
        if name.count >= 11, name.hasPrefix("x-original-") { return .forwardedOther }
        if name.count == 19, name.hasPrefix("x-cluster-client-ip") { return .forwardedOther }
        if name.count == 16, name.hasPrefix("x-azure-clientip") { return .forwardedOther }
        return .other
    }
}
