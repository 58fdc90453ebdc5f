import Attestation
import Configuration
import Replay
import TestKit

@testable import portcullis

/// A run of the program on files that exist only in memory, and what it said.
final class Transcript {
    private(set) var output: [String] = []
    private(set) var errors: [String] = []
    private(set) var exitCode = ExitCode.failure

    var text: String { output.joined(separator: "\n") }
    var errorText: String { errors.joined(separator: "\n") }

    init(
        _ arguments: [String], files: [String: String] = [:], input: String? = nil,
        fetched: (any KeySetSource)? = nil, claims: any ClaimInspector = NoClaims(),
        now: Int64 = TestIssuer.now
    ) {
        let surroundings = Surroundings(
            file: { path in files[path].map { Array($0.utf8) } }, environment: { _ in nil })
        let console = Console(
            print: { self.output.append($0) }, complain: { self.errors.append($0) },
            readInput: { input }, surroundings: surroundings, now: { now },
            fetchedKeySets: fetched ?? LocalKeySets(surroundings: surroundings),
            claims: claims)
        exitCode = Invocation.perform(arguments, console: console)
    }
}

/// For tests in which nothing was ever claimed.
struct NoClaims: ClaimInspector {
    func inspect(_ claim: Claim, in configuration: Configuration) -> ClaimInspection {
        .answered(.claimed)
    }
}
