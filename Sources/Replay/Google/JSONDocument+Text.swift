internal import Attestation

extension JSONDocument {
    /// A member's text; nil when `object` has no such member, or none that is a text.
    func text(_ name: StaticString, of object: Int = 0) -> String? {
        guard let member = member(name, of: object), let span = string(member) else { return nil }
        return span.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }
}
