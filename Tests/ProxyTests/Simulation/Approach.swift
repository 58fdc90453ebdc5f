#if DEBUG
    import Policy
    import Proxy
    import TestKit

    /// How a client comes to the proxy: by itself, or by way of a load balancer that says whom it passes
    /// on (the PROXY protocol), or of somebody who would like to be taken for one.
    struct Approach {
        /// The network of the balancers that the proxy trusts.
        static let balancers = "10.9.0.0/16"

        /// Where it connects.
        var port = SimulatedWorld.port
        /// Where the connection comes from.
        var host: String
        /// What stands in front of everything else.
        var header: [UInt8] = []
        /// Whom the proxy has to take it for; nil where it must not serve it.
        var client: String?
        /// How the wait for the header ends, unless the connection does; nil where there is none.
        var result: ProxyHeaderResult?
        /// The rest of the header never comes.
        var isUnfinished = false
        /// The proxy believes what the connection says about addresses.
        var isTrusted = false

        /// By itself.
        static func direct(_ kernel: SimulatedKernel) -> Approach {
            let host = "10.0.\(kernel.random(0, 3)).\(kernel.random(1, 20))"
            return Approach(host: host, client: host)
        }

        /// To the listener that expects a header.
        static func balanced(_ kernel: SimulatedKernel) -> Approach {
            var approach = Approach(host: "10.9.0.\(kernel.random(1, 3))")
            approach.port = SimulatedWorld.balancedPort
            let isIPv6 = kernel.happens(oneIn: 4)
            let client =
                isIPv6
                ? "2001:db8::\(kernel.random(1, 9))"
                : "203.0.113.\(kernel.random(1, 200))"
            let written = kernel.happens(oneIn: 2) ? line(client) : binary(client, kernel)
            switch kernel.random(0, 11) {
            case 0: approach.deviate(kernel, binary(client, kernel))
            case 1: approach.deviate(kernel, line(client))
            case 2:
                // The header is perfect, and nobody asked for it.
                approach.host = "10.0.0.\(kernel.random(1, 20))"
                approach.header = written
                approach.result = .untrusted
            case 3:
                approach.header = Array(written.prefix(kernel.random(0, written.count - 1)))
                approach.isUnfinished = true
                approach.result = .timedOut
            case 4:
                // The balancer itself wants to know whether somebody is there.
                approach.header = block(command: 0x20, family: 0, [])
                approach.client = approach.host
                approach.isTrusted = true
                approach.result = .balancer
            case 5:
                approach.header =
                    kernel.happens(oneIn: 2)
                    ? Array("PROXY UNKNOWN who knows\r\n".utf8)
                    : block(command: 0x21, family: 0, [1, 2, 3])
                approach.client = approach.host
                approach.result = .unknown
            default:
                approach.header = written
                approach.client = client
                approach.result = .client
            }
            return approach
        }

        // MARK: Headers

        private static let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)

        private static func block(command: UInt8, family: UInt8, _ rest: [UInt8]) -> [UInt8] {
            signature + [command, family, UInt8(rest.count >> 8), UInt8(rest.count & 0xFF)] + rest
        }

        private static func line(_ client: String) -> [UInt8] {
            let isIPv6 = client.contains(":")
            let other = isIPv6 ? "2001:db8::ffff" : "192.0.2.1"
            return Array("PROXY TCP\(isIPv6 ? 6 : 4) \(client) \(other) 40000 443\r\n".utf8)
        }

        /// Version 2, with attributes behind the addresses and sometimes their checksum.
        private static func binary(_ client: String, _ kernel: SimulatedKernel) -> [UInt8] {
            let source = Array(client.utf8).span
            let address = IPAddress(text: source)?.bytes ?? []
            var rest = address + [UInt8](repeating: 9, count: address.count) + [0, 1, 1, 187]
            if kernel.happens(oneIn: 3) {
                let count = kernel.random(0, 900)
                rest += [0xE0, UInt8(count >> 8), UInt8(count & 0xFF)]
                rest += [UInt8](repeating: 0x0A, count: count)
            }
            let family: UInt8 = address.count == 4 ? 0x11 : 0x21
            if kernel.happens(oneIn: 2) { return block(command: 0x21, family: family, rest) }
            var whole = block(command: 0x21, family: family, rest + [3, 0, 4, 0, 0, 0, 0])
            whole.replaceSubrange((whole.count - 4)..., with: checksum(whole))
            return whole
        }

        /// Castagnoli's (RFC 9260, appendix A).
        private static func checksum(_ bytes: [UInt8]) -> [UInt8] {
            var sum = UInt32.max
            for byte in bytes {
                sum ^= UInt32(byte)
                for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0x82F6_3B78 }
            }
            return HTTP2Wire.bytes(of: ~sum)
        }

        /// Makes a header wrong in one place.
        private mutating func deviate(_ kernel: SimulatedKernel, _ written: [UInt8]) {
            var bytes = written
            let isText = bytes[0] == UInt8(ascii: "P")
            switch kernel.random(0, 5) {
            case 0:
                // What clients say when they were sent to the wrong port.
                bytes = Array("GET /open/999999999 HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
                result = .signature
            case 1:
                bytes[isText ? 3 : 11] ^= 0x20
                result = .signature
            case 2 where isText:
                bytes.replaceSubrange(6..<10, with: Array("UDP4".utf8))
                result = .family
            case 2:
                bytes[12] = 0x31
                result = .version
            case 3 where isText:
                bytes.replaceSubrange(10..<11, with: Array("  ".utf8))
                result = .address
            case 3:
                bytes[13] = 0x41
                result = .family
            case 4 where isText:
                bytes = Array("PROXY TCP4 \(String(repeating: "1", count: 120))\r\n".utf8)
                result = .tooLong
            case 4:
                (bytes[14], bytes[15]) = (0xFF, 0xFF)
                result = .tooLong
            case _ where isText:
                bytes[bytes.count - 2] = UInt8(ascii: "x")
                bytes[bytes.count - 1] = UInt8(ascii: "\n")
                result = .address
            default:
                // One attribute, of which a part is not there.
                let (count, start) = (bytes[13] == 0x11 ? 12 : 36, 16)
                bytes = Array(bytes.prefix(start + count)) + [3, 0, 4, 1, 2, 3, 4]
                bytes[14] = 0
                bytes[15] = UInt8(count + 7)
                result = .checksum
                if kernel.happens(oneIn: 2) {
                    bytes[bytes.count - 5] = 9
                    result = .attribute
                }
            }
            header = bytes
        }
    }
#endif
