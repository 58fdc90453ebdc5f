/// Version 2 of the PROXY protocol: addresses in binary, and attributes behind them (section 2.2).
enum BinaryProxyHeader {
    /// What a header of this version begins with.
    static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    private static let fixedLength = 16

    /// Attribute types that say something to us. Authority and ALPN do not: the request's own `Host`
    /// and bytes decide, and nobody shall have to compare the two.
    private enum Attribute {
        static let checksum: UInt8 = 0x03
        static let tls: UInt8 = 0x20
    }

    /// As `ProxyHeader.parse`. What is wrong is told in the order of the bytes.
    static func parse(_ bytes: Span<UInt8>) throws(ProxyHeaderError) -> ProxyHeader? {
        for index in 0..<min(bytes.count, signature.count) where bytes[index] != signature[index] {
            throw .signature
        }
        guard bytes.count > 12 else { return nil }
        let command = bytes[12] & 0x0F
        guard bytes[12] >> 4 == 2, command <= 1 else { throw .version }
        guard bytes.count > 13 else { return nil }
        let (family, transport) = (bytes[13] >> 4, bytes[13] & 0x0F)
        guard family <= 3, transport <= 2 else { throw .family }
        guard bytes.count >= fixedLength else { return nil }
        let length = fixedLength + Int(bytes[14]) << 8 + Int(bytes[15])
        guard length <= ProxyHeader.longest else { throw .tooLong }
        guard bytes.count >= length else { return nil }
        let header = bytes.extracting(0..<length)
        // What a balancer says about its own connection is to be skipped, whatever it is; and behind
        // a family without addresses nobody knows where attributes begin.
        if command == 0 { return ProxyHeader(origin: .balancer, length: length) }
        if family == 0 { return ProxyHeader(origin: .unknown, length: length) }
        return try parse(header, family: family, transport: transport)
    }

    private static func parse(_ header: Span<UInt8>, family: UInt8, transport: UInt8)
        throws(ProxyHeaderError) -> ProxyHeader
    {
        let size =
            switch family {
            case 1: 4
            case 2: 16
            default: 108
            }
        let ports = family == 3 ? 0 : 4
        let attributes = fixedLength + 2 * size + ports
        guard header.count >= attributes else { throw .address }
        var result = ProxyHeader(origin: .unknown, length: header.count)
        let source = header.extracting(fixedLength..<(fixedLength + size))
        if transport != 0, let address = IPAddress(bytes: source) {
            result.origin = .client(address)
        }
        var position = attributes
        while position < header.count {
            guard header.count - position >= 3 else { throw .attribute }
            let start = position + 3
            let length = Int(header[position + 1]) << 8 + Int(header[position + 2])
            guard length <= header.count - start else { throw .attribute }
            let value = start..<(start + length)
            switch header[position] {
            case Attribute.checksum: try check(header, checksum: value)
            case Attribute.tls:
                // The flags, and four bytes about a certificate.
                guard length >= 5 else { throw .attribute }
                result.isEncrypted = header[start] & 1 != 0
            default: break
            }
            position = value.upperBound
        }
        return result
    }

    /// The checksum is that of the header with zeros in its own place (RFC 9260, appendix A).
    private static func check(_ header: Span<UInt8>, checksum range: Range<Int>)
        throws(ProxyHeaderError)
    {
        guard range.count == 4 else { throw .attribute }
        var expected: UInt32 = 0
        var sum = CRC32C()
        for index in header.indices {
            if range.contains(index) {
                expected = expected << 8 | UInt32(header[index])
                sum.add(0)
            } else {
                sum.add(header[index])
            }
        }
        guard sum.value == expected else { throw .checksum }
    }
}
