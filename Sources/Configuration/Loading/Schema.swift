/// Which keys each table may have. The one list that unknown keys, suggestions and the example file
/// are held against.
struct Schema {
    let keys: [String]

    static let root = Schema(keys: [
        "server", "log", "admin", "tracing", "listener", "project", "upstream", "replay", "route",
    ])

    static let server = Schema(keys: [
        "workers", "state_directory", "drain_delay", "drain_timeout", "upgrade_timeout",
        "token_cache", "max_connections", "memory_limit", "verifications",
    ])

    static let verifications = Schema(keys: [
        "per_second", "burst", "ipv4_prefix", "ipv6_prefix", "max_entries",
    ])

    static let log = Schema(keys: ["level", "format", "access"])

    static let admin = Schema(keys: ["listen", "token_file"])

    static let tracing = Schema(keys: [
        "otlp", "service_name", "sample", "parents", "headers", "ca", "egress_proxy", "timeout",
        "queue",
    ])

    static let listener = Schema(
        keys: [
            "listen", "tls", "protocols", "proxy_protocol", "trusted_proxies",
            "forwarding_fields", "limits",
        ])

    static let listenerTLS = Schema(keys: ["certificates", "client_ca", "min_version", "kernel"])

    static let certificate = Schema(keys: ["certificate", "key", "ocsp"])

    static let limits = Schema(keys: [
        "header_bytes", "headers", "url", "body", "header_timeout", "idle_timeout", "connections",
        "connections_per_network", "requests_per_connection", "pipelined", "body_rate",
        "answer_rate", "rate_grace",
    ])

    static let project = Schema(keys: [
        "number", "id", "issuer", "jwks", "jwks_ca", "jwks_headers", "egress_proxy", "apps",
        "leeway", "client_fingerprints",
    ])

    static let secret = Schema(keys: ["file", "env"])

    static let fingerprints = Schema(keys: ["fields", "user_agents"])

    static let upstream = Schema(
        keys: [
            "servers", "balance", "protocol", "timeouts", "idle_connections", "tls", "health",
            "ejection", "panic_threshold", "slow_start", "resolve_interval", "retries", "hash_by",
            "limits", "forwarded",
        ])

    static let upstreamLimits = Schema(keys: ["connections", "queue", "queue_timeout"])

    static let retries = Schema(keys: ["attempts", "budget", "idempotent"])

    static let health = Schema(keys: [
        "path", "host", "interval", "timeout", "healthy_after", "unhealthy_after", "status",
    ])

    static let ejection = Schema(keys: ["failures", "error_share", "time", "longest"])

    static let upstreamTLS = Schema(keys: ["ca", "name", "certificate", "key"])

    static let timeouts = Schema(keys: ["connect", "response_header", "idle"])

    static let replay = Schema(keys: [
        "store", "when_unavailable", "limited_use_max_lifetime", "max_entries", "timeout",
        "monitor_patience", "redis", "redis_password", "redis_sentinel_password", "redis_ca",
        "redis_key_prefix", "redis_eviction", "google",
    ])

    static let google = Schema(keys: ["credentials", "url", "ca", "egress_proxy"])

    static let route = Schema(keys: [
        "name", "hosts", "path", "methods", "upstream", "projects", "apps", "app_check",
        "enforce_percent", "sticky_by", "share_seed", "replay", "when_unavailable",
        "rate_limit", "websocket_token", "forward_token", "cors",
    ])

    static let rateLimit = Schema(keys: [
        "requests", "per", "burst", "key", "ipv4_prefix", "ipv6_prefix", "mode", "max_entries",
    ])

    static let cors = Schema(keys: [
        "allow_origins", "allow_credentials", "answer_preflights", "allow_methods",
        "allow_headers", "max_age",
    ])

    /// Every table, with the name that tests report.
    static let all: [(name: String, schema: Schema)] = [
        ("root", root), ("server", server), ("log", log), ("admin", admin), ("tracing", tracing),
        ("listener", listener), ("listener.tls", listenerTLS), ("certificates", certificate),
        ("upstream.tls", upstreamTLS), ("limits", limits), ("project", project), ("secret", secret),
        ("client_fingerprints", fingerprints), ("upstream", upstream), ("timeouts", timeouts),
        ("health", health), ("ejection", ejection), ("retries", retries),
        ("upstream.limits", upstreamLimits),
        ("replay", replay), ("google", google), ("route", route), ("cors", cors),
        ("verifications", verifications), ("rate_limit", rateLimit),
    ]
}
