/// The 16384 hash slots of a Redis Cluster.
enum RedisSlot {
    static let count = 16384

    /// The slot of a key: CRC16 of the key, or of its hash tag when it has one.
    static func slot(of key: [UInt8]) -> UInt16 {
        checksum((hashTag(of: key) ?? key[...])) % UInt16(count)
    }

    /// What is between the first brace and the first closing one behind it, if it is not empty.
    static func hashTag(of key: [UInt8]) -> ArraySlice<UInt8>? {
        guard let open = key.firstIndex(of: UInt8(ascii: "{")) else { return nil }
        let rest = key[(open + 1)...]
        guard let close = rest.firstIndex(of: UInt8(ascii: "}")), close > open + 1 else {
            return nil
        }
        return rest[..<close]
    }

    /// The first of the texts "aaaa", "aaab", … whose slot it is.
    static func tag(in slot: UInt16) -> [UInt8] {
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        for first in letters {
            let one = step(0, first)
            for second in letters {
                let two = step(one, second)
                for third in letters {
                    let three = step(two, third)
                    for fourth in letters where step(three, fourth) % UInt16(count) == slot {
                        return [first, second, third, fourth]
                    }
                }
            }
        }
        preconditionFailure("the 456,976 tags of four letters are in all slots")
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        bytes.reduce(0, step)
    }

    /// CRC-16/XMODEM: polynomial 0x1021, no reflection.
    private static func step(_ checksum: UInt16, _ byte: UInt8) -> UInt16 {
        checksum << 8 ^ table[Int(UInt8(truncatingIfNeeded: checksum >> 8) ^ byte)]
    }

    private static let table: [UInt16] = (0..<256).map { index in
        (0..<8).reduce(UInt16(index) << 8) { value, _ in
            value & 0x8000 == 0 ? value << 1 : value << 1 ^ 0x1021
        }
    }
}
