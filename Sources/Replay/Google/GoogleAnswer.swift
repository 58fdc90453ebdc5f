internal import Attestation
internal import HTTP

/// What Google's answer to `verifyAppCheckToken` means for a claim (pitfall R16).
///
/// Only what is surely about the token is held against it. Everything else is our or Google's
/// trouble: a client cannot help it by getting a new token.
struct GoogleAnswer {
    /// For the request.
    let outcome: ClaimOutcome
    /// For operators; nil when nothing is wrong with the service.
    var trouble: (subject: GoogleNotices.Subject, reason: String, hint: String)?
    /// Says something about the service's health.
    var isFailure: Bool {
        guard case .unavailable = outcome else { return false }
        return trouble?.subject != .token
    }

    static let role = "roles/firebaseappcheck.tokenVerifier"

    init(_ response: HTTPResponse) {
        let document = try? JSONDocument(response.body)
        if response.status == 200 {
            outcome = document.flatMap(Self.consumption) ?? .unavailable(.protocolError)
            if case .unavailable = outcome {
                trouble = (
                    .service, "it answered 200 with a content that makes no sense",
                    "check \"url\" in google"
                )
            }
            return
        }
        let error = document.flatMap(APIError.init)
        switch response.status {
        case 403 where error?.isAboutToken == true:
            outcome = .refused
        case 400 where error?.isAboutArgument == true:
            outcome = .unsupported
        case 401, 403:
            outcome = .unavailable(.denied)
            trouble = (
                .permission, Self.reason(response, error),
                "grant the service account \(Self.role) in the project, and enable "
                    + "firebaseappcheck.googleapis.com there"
            )
        case 400:
            outcome = .unavailable(.protocolError)
            // One client's token can bring this about again and again: no sign of the service's.
            trouble = (.token, Self.reason(response, error), "check the project's number or id")
        case 429:
            outcome = .unavailable(.overloaded)
            trouble = (
                .service, Self.reason(response, error),
                "claim on fewer routes, or ask Google for more quota"
            )
        case 404:
            outcome = .unavailable(.protocolError)
            trouble = (
                .service, Self.reason(response, error),
                "check \"url\" in google and the project's number or id"
            )
        case 504:
            outcome = .unavailable(.timeout)
            trouble = (.service, Self.reason(response, error), "nothing: it is Google's trouble")
        default:
            outcome = .unavailable(.protocolError)
            trouble = (
                .service, Self.reason(response, error),
                "check \"url\" in google if this goes on"
            )
        }
    }

    private static func consumption(_ document: JSONDocument) -> ClaimOutcome? {
        guard document.kind(of: 0) == .object, document.member("error") == nil else { return nil }
        guard let member = document.member("alreadyConsumed") else { return .claimed }
        switch document.kind(of: member) {
        case .false: return .claimed
        case .true: return .reused
        default: return nil
        }
    }

    private static func reason(_ response: HTTPResponse, _ error: APIError?) -> String {
        let said = error.map { [$0.status, $0.reason, $0.message] } ?? []
        let words = said.filter { !$0.isEmpty }.map { ForeignText.bounded($0) }
            .joined(separator: ": ")
        return "it answered \(response.status)" + (words.isEmpty ? "" : " (\(words))")
    }
}

/// The `error` object of Google's APIs (google.rpc.Status as JSON).
private struct APIError {
    let status: String
    let message: String
    /// Of google.rpc.ErrorInfo.
    var reason = ""
    /// Of google.rpc.ErrorInfo: who says so.
    var domain = ""
    /// A google.rpc.BadRequest names a field that is not the token.
    var blamesOtherField = false

    init?(_ document: JSONDocument) {
        guard let error = document.member("error"), document.kind(of: error) == .object else {
            return nil
        }
        status = document.text("status", of: error) ?? ""
        // What it repeats of ours, a token that happens to spell a word, says nothing.
        message = ForeignText.bounded(document.text("message", of: error) ?? "", to: 2000)
        guard let details = document.member("details", of: error) else { return }
        for detail in document.elements(of: details) {
            if reason.isEmpty, document.member("reason", of: detail) != nil {
                reason = document.text("reason", of: detail) ?? ""
                domain = document.text("domain", of: detail) ?? ""
            }
            if let violations = document.member("fieldViolations", of: detail) {
                for violation in document.elements(of: violations) {
                    let field = document.text("field", of: violation) ?? ""
                    if field != "app_check_token" && field != "appCheckToken" {
                        blamesOtherField = true
                    }
                }
            }
        }
    }

    /// Google's front ends and IAM give reasons of their own domains; about a token only the
    /// service itself can speak.
    private var isOfInfrastructure: Bool {
        if !reason.isEmpty && domain != "firebaseappcheck.googleapis.com" { return true }
        let words = [
            "permission", "caller", "not authorized", "credential", "scope", "billing", "quota",
            "disabled", "has not been used", "consumer", "policy", "prohibited", "api key",
            "blocked", "json payload", "unknown name",
        ]
        let message = message.lowercased()
        return words.contains { message.contains($0) }
    }

    /// A 403 that says so. A bare "forbidden" may be anybody's, a proxy's on the way included.
    var isAboutToken: Bool {
        if isOfInfrastructure { return false }
        if !reason.isEmpty { return true }
        let message = message.lowercased()
        return ["token", "attest", "app check"].contains { message.contains($0) }
    }

    /// A 400 for a token that is genuine, but of a provider that the method does not support.
    var isAboutArgument: Bool {
        (status == "INVALID_ARGUMENT" || status == "FAILED_PRECONDITION") && !isOfInfrastructure
            && !blamesOtherField
    }
}
