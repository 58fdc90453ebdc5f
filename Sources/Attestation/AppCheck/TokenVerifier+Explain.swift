extension TokenVerifier {
    /// Every step of ``verify(_:now:keys:admits:)`` with its outcome.
    ///
    /// Other than `verify` it goes on after a failure as far as it can: whoever looks for a mistake
    /// wants to see all of them. All steps hold exactly when the verdict is `verified`.
    public func explain(
        _ token: Span<UInt8>, now: Int64, keys: (Int) -> KeySet?
    ) -> [VerificationStep] {
        switch NotAToken.recognize(token) {
        case .placeholder:
            return formFails("the SDK's placeholder: attestation failed in the app")
        case .debugSecret:
            return formFails("a debug secret, not a token: exchange it for one first")
        case nil: break
        }
        do throws(TokenFormFault) {
            return steps(of: try DecodedToken(token), token, now: now, keys: keys)
        } catch {
            return formFails(error.rawValue)
        }
    }

    /// What ``verify(_:now:keys:admits:)`` would come to if the signature held. For people who have
    /// no keys at hand, never for a decision about a request.
    public func assumingSignature(_ token: Span<UInt8>, now: Int64) -> TokenVerdict {
        let verdict = verify(token, now: now) { _ in nil }
        guard case .keysUnavailable(let project) = verdict, let decoded = try? DecodedToken(token)
        else { return verdict }
        return self.verdict(on: decoded.claims, project: project, key: nil, now: now)
    }

    private func steps(
        of decoded: borrowing DecodedToken, _ token: Span<UInt8>, now: Int64,
        keys: (Int) -> KeySet?
    ) -> [VerificationStep] {
        let header = HeaderCheck.inOrder.map { check in
            VerificationStep(
                name: check.rawValue, holds: check.fault(in: decoded.header) == nil,
                check.detail(of: decoded.header))
        }
        let issuing = project(issuing: decoded.claims)
        // With one project there is no doubt whose rules were meant.
        let project = issuing ?? (rules.count == 1 ? 0 : nil)
        return [VerificationStep(name: "form", holds: true, "a JWS of \(token.count) bytes")]
            + header
            + [issuerStep(decoded.claims, isServed: issuing != nil)]
            + keySteps(decoded, token, project: project, keys: keys)
            + claimSteps(decoded.claims, project: project, now: now)
    }

    private func issuerStep(_ claims: borrowing TokenClaims, isServed: Bool) -> VerificationStep {
        let served = rules.prefix(8).map { "\"\(String(decoding: $0.issuer, as: UTF8.self))\"" }
        return VerificationStep(
            name: "issuer", holds: isServed,
            "expected \(served.joined(separator: " or "))\(rules.count > 8 ? " or …" : ""), "
                + "got \(claims.document.display("iss"))")
    }

    private func keySteps(
        _ decoded: borrowing DecodedToken, _ token: Span<UInt8>, project: Int?,
        keys: (Int) -> KeySet?
    ) -> [VerificationStep] {
        guard let project else {
            return skipped(["key", "signature"], "the issuer chooses the project")
        }
        guard let keySet = keys(project) else {
            return [
                VerificationStep(
                    name: "key", holds: false, "no key set of project \(rules[project].name)")
            ] + skipped(["signature"], "no key")
        }
        guard HeaderCheck.keyID.fault(in: decoded.header) == nil,
            let key = Self.key(for: decoded, in: keySet)
        else {
            let known = keySet.keyIDs.prefix(8).joined(separator: ", ")
            return [
                VerificationStep(
                    name: "key", holds: false,
                    "\(decoded.header.document.display("kid")) is not in the key set of project "
                        + "\(rules[project].name): \(known)")
            ] + skipped(["signature"], "no key")
        }
        return [
            VerificationStep(
                name: "key", holds: true,
                "\(key.keyID), RSA of \(key.modulusBitCount) bits, project \(rules[project].name)"),
            VerificationStep(
                name: "signature", holds: Self.isSigned(decoded, token, by: key),
                "\(decoded.signature.count) bytes, expected \(key.publicKey.signatureByteCount)"),
        ]
    }

    private func claimSteps(
        _ claims: borrowing TokenClaims, project: Int?, now: Int64
    ) -> [VerificationStep] {
        guard let project else {
            return skipped(
                ClaimCheck.inOrder.map(\.rawValue), "the issuer chooses the project")
        }
        return ClaimCheck.inOrder.map { check in
            VerificationStep(
                name: check.rawValue,
                holds: check.fault(in: claims, of: rules[project], now: now) == nil,
                check.detail(of: claims, for: rules[project], now: now))
        }
    }

    private func formFails(_ detail: String) -> [VerificationStep] {
        [VerificationStep(name: "form", holds: false, detail)]
            + skipped(
                HeaderCheck.inOrder.map(\.rawValue) + ["issuer", "key", "signature"]
                    + ClaimCheck.inOrder.map(\.rawValue), "no token to look into")
    }

    private func skipped(_ names: [String], _ reason: String) -> [VerificationStep] {
        names.map { VerificationStep(name: $0, outcome: .skipped(reason)) }
    }
}
