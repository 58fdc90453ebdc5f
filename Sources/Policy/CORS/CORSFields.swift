/// The response fields that a route's `cors` asks for, made once for each route.
public final class CORSFields: Sendable {
    /// What is answered by the proxy itself.
    public enum Answer: Sendable {
        case rejection
        case preflight
    }

    private struct Field {
        let name: StaticString
        let value: [UInt8]
    }

    private let cors: CORS
    private let rejection: [Field]
    private let preflight: [Field]

    /// Prepares the fields of a route.
    public init(_ route: Route, _ cors: CORS) {
        self.cors = cors
        let credentials =
            cors.allowCredentials
            ? [Field(name: "Access-Control-Allow-Credentials", value: Array("true".utf8))] : []
        rejection =
            credentials + [
                Field(
                    name: "Access-Control-Expose-Headers",
                    value: Array(Self.exposed.utf8))
            ]
        preflight =
            credentials + [
                Field(name: "Access-Control-Allow-Methods", value: Self.methods(route, cors)),
                Field(name: "Access-Control-Allow-Headers", value: Self.headers(cors)),
                Field(name: "Access-Control-Max-Age", value: Array(String(cors.maxAge).utf8)),
            ]
    }

    /// Hands over each field of an answer. `Vary: Origin` always is among them, as the answer to
    /// another origin differs; the others only where the origin is allowed.
    ///
    /// - Parameter origin: Value of the field Origin; empty when there is none.
    public func write(
        _ answer: Answer, origin: Span<UInt8>, to field: (StaticString, Span<UInt8>) -> Void
    ) {
        field("Vary", Self.vary.span)
        switch cors.allowedOrigin(for: origin) {
        case .refused: return
        case .named: field("Access-Control-Allow-Origin", origin)
        case .anyone: field("Access-Control-Allow-Origin", Self.anyone.span)
        }
        switch answer {
        case .rejection: for each in rejection { field(each.name, each.value.span) }
        case .preflight: for each in preflight { field(each.name, each.value.span) }
        }
    }

    /// What browser code may read of a refusal; gRPC-Web reads its status there.
    private static let exposed =
        "WWW-Authenticate, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Grpc-Status, "
        + "Grpc-Message"
    private static let vary = Array("Origin".utf8)
    private static let anyone = Array("*".utf8)

    private static func methods(_ route: Route, _ cors: CORS) -> [UInt8] {
        let methods = cors.allowMethods.isEmpty ? route.methods : cors.allowMethods
        return list(methods.isEmpty ? ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] : methods)
    }

    /// A browser sends the token only where the preflight allows its field, so that is never
    /// missing.
    private static func headers(_ cors: CORS) -> [UInt8] {
        let token = "X-Firebase-AppCheck"
        let others =
            cors.allowHeaders.isEmpty ? ["Authorization", "Content-Type"] : cors.allowHeaders
        return list(others.filter { $0.lowercased() != token.lowercased() } + [token])
    }

    private static func list(_ items: [String]) -> [UInt8] {
        Array(items.joined(separator: ", ").utf8)
    }
}
