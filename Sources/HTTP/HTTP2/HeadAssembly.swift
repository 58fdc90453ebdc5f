internal import Reactor

/// Collects the fields of one header block and writes them as the text of an HTTP/1.1 head, so that
/// one parser and one normalisation judge both protocols.
///
/// What could mean something else as text is refused here: a line break or blank in a pseudo-header
/// field, two authorities that differ, fields that are about a connection (RFC 9113, section 8.2;
/// pitfall W3). Only one block is under way on a connection at a time, so one assembly serves it.
package final class HeadAssembly {
    private static let kept = 16 << 10

    /// What a head may be.
    var limits: HeadLimits
    /// What the ranges below refer to: the values of pseudo-header fields and of `Host`.
    let special = ByteBuffer(capacity: 512)
    var method = ByteRange.empty
    var path = ByteRange.empty
    var authority = ByteRange.empty
    var host = ByteRange.empty
    var status = ByteRange.empty
    private var tunnelled = ByteRange.empty
    var cookie: [UInt8] = []
    var hasHost = false
    var pseudoFields: PseudoFields = []
    var hasScheme = false
    /// What Content-Length says; nil where it is not there.
    private(set) var contentLength: UInt64?
    /// A field that is no pseudo-header field has come, behind which none may.
    private var hasPlainField = false
    private var answersHandshake = false
    let lines = ByteBuffer(capacity: 1024)
    private var count = 0
    private var size = 0
    /// Fields of a block behind the content; those that must not pass are not among them.
    package private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []
    private var isTrailing = false
    /// A field has no meaning that is safe: the stream is to be reset.
    package private(set) var isMalformed = false

    /// An assembly for one block after the other.
    package init(limits: HeadLimits) {
        self.limits = limits
    }

    /// A header block begins.
    ///
    /// - Parameters:
    ///   - isTrailing: It comes after the content.
    ///   - answersHandshake: It answers an extended CONNECT of ours.
    package func begin(isTrailing: Bool, answersHandshake: Bool = false) {
        special.shrink(above: Self.kept, to: 512)
        lines.shrink(above: Self.kept, to: 1024)
        (method, path, authority) = (.empty, .empty, .empty)
        (host, status, tunnelled) = (.empty, .empty, .empty)
        if !cookie.isEmpty { cookie.removeAll(keepingCapacity: cookie.capacity <= Self.kept) }
        hasHost = false
        pseudoFields = []
        hasScheme = false
        contentLength = nil
        hasPlainField = false
        self.answersHandshake = answersHandshake
        count = 0
        size = 0
        if !trailers.isEmpty { trailers = [] }
        self.isTrailing = isTrailing
        isMalformed = false
    }

    /// Takes the next field of the block.
    ///
    /// - Returns: false when the block is so much too long that not even a refusal is due.
    package func add(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        size += name.count + value.count + 4
        count += 1
        if isTooLong {
            // The parser refuses a head by its length: what is behind the limit need not be kept.
            // Of trailer fields no part may pass for all.
            if isTrailing { isMalformed = true }
            return size < 16 * limits.bytes && count < 16 * limits.fields
        }
        guard isValue(value) else {
            isMalformed = true
            return true
        }
        if isTrailing {
            addTrailer(name, value)
        } else if !name.isEmpty, name[0] == UInt8(ascii: ":") {
            addPseudoField(name, value)
        } else {
            addField(name, value)
        }
        return true
    }

    var isTooLong: Bool { size > limits.bytes || count > limits.fields + 8 }

    private func addPseudoField(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        // Blanks would end the target or the method in the text; no other character can.
        if !isUnbroken(value) || hasPlainField { isMalformed = true }
        if name.equals(exactly: ":method") {
            method = take(.method, value)
        } else if name.equals(exactly: ":path") {
            path = take(.path, value)
        } else if name.equals(exactly: ":authority") {
            authority = take(.authority, value)
        } else if name.equals(exactly: ":scheme") {
            _ = take(.scheme, value)
            hasScheme = value.equals("https") || value.equals("http")
        } else if name.equals(exactly: ":status") {
            status = take(.status, value)
        } else if name.equals(exactly: ":protocol") {
            tunnelled = take(.tunnelled, value)
        } else {
            isMalformed = true
        }
    }

    /// RFC 9113, section 8.3: each is there once. None has a meaning when it is empty.
    private func take(_ field: PseudoFields, _ value: Span<UInt8>) -> ByteRange {
        if !pseudoFields.insert(field).inserted || value.isEmpty { isMalformed = true }
        return keep(value)
    }

    private func keep(_ value: Span<UInt8>) -> ByteRange {
        let start = special.count
        special.append(value)
        return ByteRange(start: start, count: value.count)
    }

    func isKept(_ range: ByteRange, _ literal: StaticString) -> Bool {
        let special = special
        return special.bytes.slice(range).equals(exactly: literal)
    }

    private func addField(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        hasPlainField = true
        let known = KnownField(plainName: name)
        guard isName(name), isProper(known, value) else {
            isMalformed = true
            return
        }
        switch known {
        // What a handshake of HTTP/1.1 consists of, or makes impossible (RFC 8441, section 5).
        case .webSocketKey where isTunnel, .webSocketAccept where isTunnel || answersHandshake:
            return
        case .contentLength where isTunnel: isMalformed = true
        // An empty answer needs none, and some servers send it all the same.
        case .contentLength where isNoContent:
            if contentLength != nil || !value.equals("0") { isMalformed = true }
            contentLength = 0
        // What opens a tunnel has no content, whatever it says (RFC 9110, section 9.3.6).
        case .contentLength where answersHandshake && isSuccess: return
        case .contentLength:
            guard contentLength == nil, let length = value.decimalValue else {
                isMalformed = true
                return
            }
            contentLength = length
            lines.appendField(name, value)
        case .host:
            if hasHost || value.isEmpty { isMalformed = true }
            hasHost = true
            host = keep(value)
        case .cookie:
            // RFC 9113, section 8.2.3: crumbs are one field outside of HTTP/2.
            if !cookie.isEmpty { cookie.append(contentsOf: [0x3B, 0x20]) }
            value.withUnsafeBufferPointer { cookie.append(contentsOf: $0) }
        default: lines.appendField(name, value)
        }
    }

    /// RFC 9113, section 8.2.1.
    private func isName(_ name: Span<UInt8>) -> Bool {
        var index = 0
        while index < name.count, ByteSet.smallToken.contains(name[index]) { index &+= 1 }
        return index > 0 && index == name.count
    }

    /// RFC 9113, section 8.2.2: a message says nothing about its connection.
    private func isProper(_ field: KnownField, _ value: Span<UInt8>) -> Bool {
        switch field {
        case .connection, .keepAlive, .proxyConnection, .transferEncoding, .upgrade,
            .http2Settings:
            false
        case .te: value.equals("trailers")
        default: true
        }
    }

    private func addTrailer(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        guard isName(name), isProper(KnownField(plainName: name), value) else {
            isMalformed = true
            return
        }
        if !TrailerReader.mayPass(name) { return }
        var field: (name: [UInt8], value: [UInt8]) = ([], [])
        name.withUnsafeBufferPointer { field.name.append(contentsOf: $0) }
        value.withUnsafeBufferPointer { field.value.append(contentsOf: $0) }
        trailers.append(field)
    }

    /// The block is the head of an interim response.
    var isInterim: Bool { statusClass == UInt8(ascii: "1") }

    var isSuccess: Bool { statusClass == UInt8(ascii: "2") }

    private var statusClass: UInt8? {
        let special = special
        return status.isEmpty ? nil : special.bytes[Int(status.start)]
    }

    /// The block is the head of an answer that has no content (RFC 9110, section 6.4.1).
    var saysNothing: Bool { isNoContent || isKept(status, "304") }

    private var isNoContent: Bool { isKept(status, "204") }

    /// The block is the head of a HEAD request.
    var isHeadRequest: Bool { isKept(method, "HEAD") }

    /// The block is the head of a request for a WebSocket (RFC 8441, section 5).
    var isWebSocket: Bool { isKept(tunnelled, "websocket") }

    /// Extended CONNECT (RFC 8441, section 4); pseudo-header fields come before all others.
    var isTunnel: Bool { pseudoFields.contains(.tunnelled) }

    var hasAuthority: Bool { pseudoFields.contains(.authority) }

    // MARK: Characters

    /// RFC 9113, section 8.2.1, and no other control character either. A line feed would be the end
    /// of the line in the text; blanks at the ends would be lost.
    private func isValue(_ value: Span<UInt8>) -> Bool {
        value.isEmpty || !value[0].isBlank && !value[value.count - 1].isBlank && value.isText
    }

    private func isUnbroken(_ value: Span<UInt8>) -> Bool {
        var index = 0
        while index < value.count {
            index = value.endOfVisible(from: index)
            // The parser knows what to say about a fragment.
            if index < value.count && value[index] != UInt8(ascii: "#") { return false }
            index += 1
        }
        return true
    }
}

/// Which pseudo-header fields a block has.
struct PseudoFields: OptionSet {
    let rawValue: UInt8
    static let method = Self(rawValue: 1)
    static let path = Self(rawValue: 2)
    static let authority = Self(rawValue: 4)
    static let scheme = Self(rawValue: 8)
    static let status = Self(rawValue: 16)
    static let tunnelled = Self(rawValue: 32)
}
