internal import Attestation
internal import Glibc
internal import HTTP
internal import Reactor

/// Who asks Google: what a service account's key file says.
struct ServiceAccount: Sendable {
    /// Member `client_email`: the account's name.
    let email: String
    /// Member `private_key_id`.
    let keyID: String
    /// Member `token_uri`: where access tokens come from, as it is written there.
    let tokenURI: String
    /// The same, taken apart.
    let tokenURL: HTTPURL
    /// Member `private_key`.
    let key: SigningKey

    private static let longestFile = 64 << 10
    private static let remedy =
        "get a JSON key of a service account (Google Cloud console, IAM, Service Accounts, Keys) "
        + "and name its file in \"credentials\""

    /// Reads a key file. What it throws never quotes the file's content.
    static func read(file path: String) throws(StoreOpenError) -> ServiceAccount {
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try contents(of: path)
        } catch {
            let reason =
                error == .invalidArgument ? "it is no regular file" : error.description
            throw StoreOpenError(
                "cannot read the service account's key file \(path): \(reason)",
                hint: "check the path in \"credentials\" and that this user may read it")
        }
        return try ServiceAccount(bytes, path: path)
    }

    /// - Parameter path: For messages.
    init(_ bytes: [UInt8], path: String) throws(StoreOpenError) {
        func fault(_ what: String, _ hint: String = Self.remedy) -> StoreOpenError {
            StoreOpenError("the service account's key file \(path) \(what)", hint: hint)
        }
        if bytes.count > Self.longestFile { throw fault("is longer than 64 KiB") }
        let document: JSONDocument
        do throws(JSONError) {
            document = try JSONDocument(bytes)
        } catch {
            throw fault("is no JSON object (\(error.rawValue))")
        }
        func text(_ name: StaticString) throws(StoreOpenError) -> String {
            guard let text = document.text(name), !text.isEmpty else {
                throw fault("has no text \"\(name)\"")
            }
            return text
        }
        if document.member("type") != nil, try text("type") != "service_account" {
            throw fault("is for another kind of account: its \"type\" is not \"service_account\"")
        }
        email = try text("client_email")
        keyID = try text("private_key_id")
        tokenURI = try text("token_uri")
        do throws(HTTPURLError) {
            tokenURL = try HTTPURL(tokenURI)
        } catch {
            throw fault("has a \"token_uri\" that \(error)")
        }
        if !tokenURL.isSecure && !tokenURL.isLoopback {
            throw fault("has a \"token_uri\" that is not https")
        }
        let pem = try text("private_key")
        guard pem.hasPrefix("-----BEGIN PRIVATE KEY-----") else {
            throw fault("has a \"private_key\" that is no PEM text of an unencrypted PKCS #8 key")
        }
        do throws(SigningKeyError) {
            key = try SigningKey(pem: pem)
            // A damaged key may be readable all the same.
            _ = try key.signature(of: Array("probe".utf8).span)
        } catch {
            throw fault("has a \"private_key\" that is no RSA key, or a damaged one")
        }
    }

    private static func contents(of path: String) throws(Errno) -> [UInt8] {
        // Not to wait for the writer of a named pipe.
        let descriptor = try Syscalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { Syscalls.close(descriptor) }
        if try !Syscalls.status(of: descriptor).isRegularFile { throw .invalidArgument }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count <= longestFile {
            let count = try Self.read(descriptor, into: &chunk)
            if count == 0 { break }
            bytes.append(contentsOf: chunk.prefix(count))
        }
        return bytes
    }

    private static func read(
        _ descriptor: Int32, into chunk: inout [UInt8]
    ) throws(Errno) -> Int {
        let result = chunk.withUnsafeMutableBytes { chunk -> Result<Int, Errno> in
            do throws(Errno) {
                return .success(try Syscalls.read(descriptor, chunk))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

extension HTTPURL {
    /// A loopback address, spelt out: a name could be anybody's.
    var isLoopback: Bool { host == "::1" || hasLiteralHost && host.hasPrefix("127.") }
}
