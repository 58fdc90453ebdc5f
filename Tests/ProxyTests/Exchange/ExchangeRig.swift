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
    func secured(upstream name: String, isResumed: Bool) {}
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
    /// Whose forwarding fields are believed.
    var trustedProxies: [IPNetwork] = []
    var forwardingFields = ForwardingFields.xForwarded
    /// The upstream wants `Forwarded`.
    var sendsForwarded = false
    /// Who connected; nil is somebody on a local socket, whom the listener believes.
    var peer: String? = "127.0.0.1"
    /// What stands in front of the connection.
    var header: ProxyHeader?

    /// The head that goes upstream for a request, and what is known about the client.
    struct Result: Sendable {
        var head = ""
        /// What policy uses, and what the log shows: one and the same.
        var client = ""
        var loggedClient = ""
        var loggedPeer = ""
        var isForwardedMalformed = false
    }

    /// The head that goes upstream for a request; throws when the parser refuses it.
    func upstreamHead(of request: String) async throws -> String {
        try await forward(request).head
    }

    /// All that can be told of a request on its way.
    func forward(_ request: String) async throws -> Result {
        let rig = self
        return try await TestLoop().run { loop in
            try await rig.write(request, on: loop.loop)
        }
    }

    private func write(_ request: String, on loop: EventLoop) async throws -> Result {
        var configuration = Configuration(routes: try RouteTable([route]))
        configuration.projects = [
            ProjectSource(project: TestIssuer.project, keys: .file("keys.json"))
        ]
        configuration.upstreams = [
            Upstream(name: "api", servers: [.tcp(host: "127.0.0.1", port: 9)])
        ]
        configuration.upstreams[0].sendsForwarded = sendsForwarded
        var listener = Listener(name: "l", listen: .tcp(host: "127.0.0.1", port: 1))
        listener.trustedProxies = trustedProxies
        listener.trustsLocalPeers = true
        listener.forwardingFields = forwardingFields
        let state = LoopState(serving: configuration, loop: loop)
        defer { state.abortAll() }

        let waiter = Waiter(loop: loop)
        let pair = try await SocketPair.connect(loop: loop, waiter: waiter)
        let address = self.peer.map { SocketAddress(literal: $0, port: 4711) }
        guard let peer = address ?? SocketAddress(unixPath: "/peer") else {
            throw Errno.invalidArgument
        }
        let client = ClientConnection(
            pair.far, peer: peer, listener: ServedListener(listener), state: state)
        if let header { _ = client.adopt(header) }
        let exchange = Exchange(state)
        exchange.input.append(request)
        var parser = RequestParser(limits: HeadLimits())
        let input = exchange.input
        guard try parser.parse(input.bytes, into: &exchange.head) else {
            throw Errno.invalidArgument
        }
        input.pin(exchange.head.length)
        exchange.begin(client)
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
        let record = exchange.record
        return Result(
            head: exchange.upstreamOutput.withUnsafeBytes { String(decoding: $0, as: UTF8.self) },
            client: exchange.clientAddress?.description ?? "none",
            loggedClient: record.clientAddress, loggedPeer: record.peerAddress,
            isForwardedMalformed: record.isForwardedMalformed)
    }
}
