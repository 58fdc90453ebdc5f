// swift-tools-version: 6.2
import PackageDescription

// libFuzzer targets, one product each. `Fuzz/run.sh TARGET SECONDS` builds a target and runs it with
// Corpus/TARGET as its seeds; `make fuzz` runs them all.
//
// To add one:
// 1. Write its body as a function of bytes in `Sources/TestKit`, so that an ordinary test can replay
//    the corpus through it: it traps (`precondition`) when an invariant does not hold.
// 2. Add `fuzzer("its-name", …)` below and `Targets/ItsName/Target.swift`, like the ones there.
// 3. Put one small file per case into `Corpus/its-name`, and a test that reads them all.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
    // libFuzzer brings `main`.
    .unsafeFlags(["-parse-as-library"]),
]

/// A fuzzer of the name that `run.sh` takes, with its source in `Targets/FOLDER`.
func fuzzer(_ name: String, in folder: String, imports: [String]) -> Target {
    .executableTarget(
        name: name,
        dependencies: imports.map { .product(name: $0, package: "portcullis") },
        path: "Targets/\(folder)",
        swiftSettings: settings)
}

let package = Package(
    name: "fuzz",
    dependencies: [.package(name: "portcullis", path: "..")],
    targets: [
        fuzzer("toml", in: "TOML", imports: ["TestKit"]),
        fuzzer("jws", in: "JWS", imports: ["TestKit"]),
        fuzzer("keyset", in: "KeySet", imports: ["TestKit"]),
        fuzzer("http1-request", in: "HTTP1Request", imports: ["TestKit"]),
        fuzzer("http1-response", in: "HTTP1Response", imports: ["TestKit"]),
        fuzzer("http1-chunked", in: "HTTP1Chunked", imports: ["TestKit"]),
        fuzzer("proxy-header", in: "ProxyHeader", imports: ["TestKit"]),
        fuzzer("forwarded", in: "Forwarded", imports: ["TestKit"]),
        fuzzer("http2-server", in: "HTTP2Server", imports: ["TestKit"]),
        fuzzer("http2-upstream", in: "HTTP2Upstream", imports: ["TestKit"]),
        fuzzer("http2-translation", in: "HTTP2Translation", imports: ["TestKit"]),
    ]
)
