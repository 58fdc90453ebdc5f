import Attestation
import Glibc
import TestKit
import Testing

@testable import Replay

@Suite("Google's service account")
struct ServiceAccountTests {
    private func failure(_ text: String, url: String? = nil) throws -> StoreOpenError {
        let folder = try TemporaryFolder()
        _ = try folder.write(text, to: "key.json")
        var settings = GoogleSettings(credentials: folder.path(of: "key.json"))
        if let url { settings.url = url }
        let error = try #require(
            #expect(throws: StoreOpenError.self) {
                _ = try GoogleStore.open(settings: settings, events: { _ in })
            })
        #expect(!error.hint.isEmpty)
        #expect(!error.description.contains("BEGIN"))
        for line in try FakeGoogle.key.pem().split(separator: "\n").dropFirst().dropLast() {
            #expect(!error.description.contains(line))
        }
        return error
    }

    @Test("a good key file opens the store")
    func success() throws {
        let folder = try TemporaryFolder()
        _ = try folder.write(try FakeGoogle.keyFile(), to: "key.json")
        let settings = GoogleSettings(credentials: folder.path(of: "key.json"))
        _ = try GoogleStore.open(settings: settings, events: { _ in })
    }

    @Test("a file that is not there is named")
    func missing() throws {
        let error = try #require(
            #expect(throws: StoreOpenError.self) {
                _ = try GoogleStore.open(
                    settings: GoogleSettings(credentials: "/nowhere/key.json"), events: { _ in })
            })
        #expect(
            error.message
                == "cannot read the service account's key file /nowhere/key.json: "
                + "No such file or directory")
    }

    @Test("what is no regular file is refused, without waiting for it")
    func pipe() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "key.json")
        try #require(mkfifo(path, 0o600) == 0)
        for path in [path, folder.path(of: ".")] {
            let error = #expect(throws: StoreOpenError.self) {
                _ = try GoogleStore.open(
                    settings: GoogleSettings(credentials: path), events: { _ in })
            }
            #expect(error?.message.hasSuffix(": it is no regular file") == true)
        }
    }

    @Test(
        "says what is wrong with a key file",
        arguments: [
            ("client_email", nil, "has no text \"client_email\""),
            ("client_email", "7", "has no text \"client_email\""),
            ("private_key_id", "\"\"", "has no text \"private_key_id\""),
            ("private_key", nil, "has no text \"private_key\""),
            ("private_key", "\"secret-but-no-pem\"", "no PEM text"),
            (
                "private_key", "\"-----BEGIN ENCRYPTED PRIVATE KEY-----\\nMIIB\"", "no PEM text"
            ),
            ("private_key", "\"-----BEGIN PRIVATE KEY-----\\nMIIB\"", "damaged"),
            (
                "private_key",
                "\"-----BEGIN PRIVATE KEY-----\\nProc-Type: 4,ENCRYPTED\\n"
                    + "DEK-Info: DES-EDE3-CBC,0102030405060708\\n\\nMIIB\\n-----END PRIVATE KEY-----\"",
                "damaged"
            ),
            ("token_uri", "\"http://oauth2.googleapis.com/token\"", "not https"),
            ("token_uri", "\"http://127.example.com/token\"", "not https"),
            ("token_uri", "\"ftp://x\"", "does not start with https:// or http://"),
            ("type", "\"authorized_user\"", "another kind of account"),
        ] as [(String, String?, String)])
    func member(name: String, json: String?, words: String) throws {
        let error = try failure(try FakeGoogle.keyFile(replacing: [name: json]))
        #expect(error.message.contains("key.json \(words.hasPrefix("has") ? words : "")"))
        #expect(error.message.contains(words))
        #expect(!error.description.contains("secret-but-no-pem"))
    }

    @Test(
        "a file that is no JSON object is told",
        arguments: ["", "{", "-----BEGIN PRIVATE KEY-----"])
    func noJSON(text: String) throws {
        #expect(try failure(text).message.contains("is no JSON object"))
    }

    @Test("plain http is for loopback addresses, not for names")
    func plainURL() throws {
        let key = try FakeGoogle.keyFile()
        #expect(try failure(key, url: "http://localhost/v1").message.contains("not https"))
        #expect(try failure(key, url: "//x").message.contains("does not start with https://"))
    }
}
