internal import Attestation
internal import Configuration

/// Where `explain` gets a project's keys from.
protocol KeySetSource {
    /// The key set, or in words why there is none.
    func keySet(of project: ProjectSource) -> Result<KeySet, KeysNotLoaded>
}

/// Why there are no keys to check a signature with.
struct KeysNotLoaded: Error, Equatable {
    var reason: String
}

/// Key sets from files; those behind URLs are left where they are.
struct LocalKeySets: KeySetSource {
    let surroundings: Surroundings

    func keySet(of project: ProjectSource) -> Result<KeySet, KeysNotLoaded> {
        switch project.keys {
        case .url(let url):
            let reason = "its keys are at \(redacted(url)); --fetch-keys fetches them"
            return .failure(KeysNotLoaded(reason: reason))
        case .file(let path):
            guard let bytes = surroundings.file(path) else {
                return .failure(KeysNotLoaded(reason: "\(path) cannot be read"))
            }
            return KeySet.read(bytes, from: path)
        }
    }
}

extension KeySet {
    /// Parses a key set that came from `place`.
    static func read(_ bytes: [UInt8], from place: String) -> Result<KeySet, KeysNotLoaded> {
        do {
            return .success(try KeySet.parse(bytes.span))
        } catch {
            return .failure(KeysNotLoaded(reason: "\(place) is no key set: \(error.word)"))
        }
    }
}
