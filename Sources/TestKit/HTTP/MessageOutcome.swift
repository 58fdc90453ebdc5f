public import HTTP

/// What a parser made of some bytes, copied out of them so that outcomes can be compared.
public enum MessageOutcome<Message: Equatable>: Equatable {
    case incomplete
    case malformed(MalformedMessage.Kind)
    case message(Message)
}

/// A field line with its bytes.
public struct FieldCopy: Equatable {
    public var name: [UInt8]
    public var value: [UInt8]
    public var known: KnownField
    public var isHopByHop: Bool

    init(host: [UInt8]) {
        name = Array("Host".utf8)
        value = host
        known = .host
        isHopByHop = false
    }

    init(_ line: FieldLine, in bytes: [UInt8]) {
        name = bytes.copy(line.name)
        value = bytes.copy(line.value)
        known = line.known
        isHopByHop = line.isHopByHop
    }
}

/// Everything that a request head says, without the bytes it lies in.
public struct RequestCopy: Equatable {
    public var method: [UInt8]
    public var version: Version
    public var path: [UInt8]
    public var query: [UInt8]?
    public var host: [UInt8]
    public var port: UInt16?
    public var fields: [FieldCopy]
    public var framing: BodyFraming
    public var isPersistent: Bool
    public var expectsContinue: Bool
    public var wantsWebSocket: Bool
    public var acceptsTrailers: Bool
    public var isPreflight: Bool
    public var length: Int

    init(_ head: RequestHead, in bytes: [UInt8]) {
        method = bytes.copy(head.methodName)
        version = head.version
        path = (head.target.isRewritten ? head.target.rewritten : bytes).copy(head.target.path)
        query = head.target.hasQuery ? bytes.copy(head.target.query) : nil
        host = head.target.host
        port = head.target.port
        fields = head.fields.lines.map { FieldCopy($0, in: bytes) }
        framing = head.framing
        isPersistent = head.isPersistent
        expectsContinue = head.expectsContinue
        wantsWebSocket = head.wantsWebSocket
        acceptsTrailers = head.acceptsTrailers
        isPreflight = head.isPreflight
        length = head.length
    }
}

/// Everything that a response head says, without the bytes it lies in.
public struct ResponseCopy: Equatable {
    public var status: UInt16
    public var version: Version
    public var reason: [UInt8]
    public var fields: [FieldCopy]
    public var framing: BodyFraming
    public var isPersistent: Bool
    public var length: Int

    init(_ head: ResponseHead, in bytes: [UInt8]) {
        status = head.status
        version = head.version
        reason = bytes.copy(head.reason)
        fields = head.fields.lines.map { FieldCopy($0, in: bytes) }
        framing = head.framing
        isPersistent = head.isPersistent
        length = head.length
    }
}

extension [UInt8] {
    func copy(_ range: ByteRange) -> [UInt8] {
        Array(self[Int(range.start)..<range.end])
    }
}

/// Feeds bytes to a parser as a connection would: `pieces` says how many bytes have come at each
/// call.
///
/// The parser and the head are used again for every piece, so what one call leaves behind shows.
public func outcomeOfRequest(
    _ bytes: [UInt8], limits: HeadLimits, arrivals: some Sequence<Int>
) -> MessageOutcome<RequestCopy> {
    var parser = RequestParser(limits: limits)
    var head = RequestHead()
    for count in arrivals {
        let arrived = Array(bytes[..<count])
        do throws(MalformedMessage) {
            if try parser.parse(arrived.span, into: &head) {
                return .message(RequestCopy(head, in: arrived))
            }
        } catch {
            return .malformed(error.kind)
        }
    }
    return .incomplete
}

/// The same for responses.
public func outcomeOfResponse(
    _ bytes: [UInt8], to method: Method, limits: HeadLimits, arrivals: some Sequence<Int>
) -> MessageOutcome<ResponseCopy> {
    var parser = ResponseParser(limits: limits)
    var head = ResponseHead()
    for count in arrivals {
        let arrived = Array(bytes[..<count])
        do throws(MalformedMessage) {
            if try parser.parse(arrived.span, requestMethod: method, into: &head) {
                return .message(ResponseCopy(head, in: arrived))
            }
        } catch {
            return .malformed(error.kind)
        }
    }
    return .incomplete
}
