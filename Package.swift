// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
    // A fifth of the instructions of a request went into run-time exclusivity checks. Debug builds,
    // and with them all tests, keep them (docs/decisions/0002-exclusivity.md).
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release)),
]

/// A module of the house, and the modules above its own line that it may import
/// (docs/decisions/0001-modules.md).
func module(_ name: String, imports: [String]) -> Target {
    .target(
        name: name, dependencies: imports.map { .init(stringLiteral: $0) }, swiftSettings: settings)
}

func tests(of name: String, imports: [String] = [], exclude: [String] = []) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: ([name] + imports).map { .init(stringLiteral: $0) },
        path: "Tests/\(name)Tests",
        exclude: exclude,
        swiftSettings: settings)
}

let package = Package(
    name: "portcullis",
    products: [
        .executable(name: "portcullis", targets: ["portcullis"]),
        // For the package in Fuzz/; nothing is meant to be used outside this repository.
        .library(name: "HTTP", targets: ["HTTP"]),
        .library(name: "Attestation", targets: ["Attestation"]),
        .library(name: "Configuration", targets: ["Configuration"]),
        .library(name: "TestKit", targets: ["TestKit"]),
    ],
    targets: [
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"])]),
        // Without pkg-config: the flags of hiredis hold one that the package description forbids.
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .systemLibrary(
            name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .target(name: "CPlatform"),
        .target(name: "CTOML"),

        module("Reactor", imports: ["CPlatform"]),
        module("TLS", imports: ["Reactor", "COpenSSL"]),
        module("HTTP", imports: ["Reactor", "TLS", "CNGHTTP2", "COpenSSL"]),
        module("Attestation", imports: ["COpenSSL"]),
        module("Policy", imports: ["Attestation"]),
        module(
            "Replay", imports: ["Reactor", "TLS", "HTTP", "Attestation", "CLMDB", "CHiredis"]),
        module("Configuration", imports: ["Policy", "Attestation", "CTOML"]),
        module(
            "Proxy",
            imports: [
                "Reactor", "TLS", "HTTP", "Attestation", "Policy", "Replay", "Configuration",
            ]),
        module(
            "Operations",
            imports: [
                "Reactor", "TLS", "HTTP", "Attestation", "Policy", "Replay", "Configuration",
                "Proxy",
            ]),
        .executableTarget(
            name: "portcullis",
            dependencies: [
                "Reactor", "TLS", "HTTP", "Attestation", "Policy", "Replay", "Configuration",
                "Proxy", "Operations",
            ],
            swiftSettings: settings),

        module(
            "TestKit",
            imports: [
                "Reactor", "TLS", "HTTP", "Attestation", "COpenSSL", "Policy", "Replay",
                "Configuration",
            ]),
        tests(of: "Reactor", imports: ["TestKit"]),
        tests(of: "TLS", imports: ["Reactor", "TestKit"]),
        tests(of: "HTTP", imports: ["Reactor", "TLS", "TestKit", "CNGHTTP2"]),
        tests(of: "Attestation", imports: ["TestKit", "COpenSSL"]),
        tests(of: "Policy", imports: ["Attestation", "TestKit"]),
        tests(
            of: "Replay",
            imports: ["Reactor", "TLS", "HTTP", "Attestation", "TestKit", "claim-hammer"]),
        // A process that the tests of the file store kill.
        .executableTarget(
            name: "claim-hammer", dependencies: ["Reactor", "Replay"], path: "Tests/ClaimHammer",
            swiftSettings: settings),
        tests(
            of: "Configuration", imports: ["Policy", "Attestation", "TestKit"],
            exclude: ["Golden"]),
        tests(
            of: "portcullis",
            imports: [
                "Configuration", "Policy", "Attestation", "Reactor", "Replay", "Operations",
                "TestKit",
            ]),
        tests(
            of: "Proxy",
            imports: [
                "Reactor", "HTTP", "Attestation", "Policy", "Replay", "Configuration", "TestKit",
                "CNGHTTP2",
            ]),
        tests(
            of: "Operations",
            imports: [
                "Proxy", "Policy", "Replay", "Configuration", "Reactor", "HTTP", "Attestation",
                "TestKit",
            ]),
    ],
    cxxLanguageStandard: .cxx17
)
