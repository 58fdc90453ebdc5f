import Attestation
import Configuration
import HTTP
import Policy
import Reactor
import TestKit

@testable import Proxy

/// A recorder that keeps nothing.
final class SilentRecorder: RequestRecorder {
    func record(_ record: RequestRecord, serving: ServingConfiguration) {}
    func connection(_ event: ConnectionEvent, listener: String) {}
    func upstream(_ event: UpstreamEvent, _ name: String) {}
    func flush() {}
}

extension LoopState {
    /// The state of a loop that serves `configuration`, whose upstreams are IP addresses.
    convenience init(
        serving configuration: Configuration, keys: KeySnapshot = KeySnapshot(sets: []),
        loop: EventLoop
    ) {
        self.init(
            loop: loop, serving: ServingConfiguration(literal: configuration), keys: keys,
            recorder: SilentRecorder(), log: LogCollector(), requestRefetch: { _ in })
    }
}

extension ServingConfiguration {
    /// Serves a configuration whose upstreams are IP addresses.
    convenience init(literal configuration: Configuration) {
        let addresses = configuration.upstreams.map { upstream in
            upstream.servers.compactMap { server in
                if case .tcp(let host, let port) = server {
                    SocketAddress(literal: host, port: port)
                } else {
                    nil
                }
            }
        }
        self.init(configuration, addresses: addresses)
    }
}

/// One request on its way to the upstream, without either connection being used.
struct RequestHeadRig {
    /// Settings of the only route.
    var route = Route(name: "all", path: "/*", upstream: 0)
    var verdict = Verdict.missing(.unknownOrigin)
    var token: VerifiedToken?
    /// Whose forwarding fields are believed; the peer is 127.0.0.1.
    var trustedProxies: [IPNetwork] = []

    /// The head that goes upstream for a request; nil when the parser refuses it.
    func upstreamHead(of request: String) async throws -> String {
        let rig = self
        return try await TestLoop().run { loop in
            try await rig.write(request, on: loop.loop)
        }
    }

    private func write(_ request: String, on loop: EventLoop) async throws -> String {
        var configuration = Configuration(routes: try RouteTable([route]))
        configuration.projects = [
            ProjectSource(project: TestIssuer.project, keys: .file("keys.json"))
        ]
        configuration.upstreams = [
            Upstream(name: "api", servers: [.tcp(host: "127.0.0.1", port: 9)])
        ]
        var listener = Listener(name: "l", listen: .tcp(host: "127.0.0.1", port: 1))
        listener.trustedProxies = trustedProxies
        let state = LoopState(serving: configuration, loop: loop)
        defer { state.abortAll() }

        let waiter = Waiter(loop: loop)
        let pair = try await SocketPair.connect(loop: loop, waiter: waiter)
        guard let peer = SocketAddress(literal: "127.0.0.1", port: 4711) else {
            throw Errno.invalidArgument
        }
        let client = ClientConnection(
            pair.far, peer: peer, listener: ServedListener(listener), state: state)
        let exchange = Exchange(state)
        exchange.input.append(request)
        var parser = RequestParser(limits: HeadLimits())
        let input = exchange.input
        guard try parser.parse(input.bytes, into: &exchange.head) else {
            throw Errno.invalidArgument
        }
        input.pin(exchange.head.length)
        exchange.record.requestID = Array("0123456789abcdef".utf8)
        exchange.record.verdict = verdict
        exchange.record.token = token
        exchange.identify(client)
        guard
            case .forward(let permit) = route.enforcement(storeDefault: .reject).decide(
                verdict, isInShare: { false })
        else {
            throw Errno.invalidArgument
        }
        exchange.writeRequestHead(client, permit, exchange.serving.routes[0])
        return exchange.upstreamOutput.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}
