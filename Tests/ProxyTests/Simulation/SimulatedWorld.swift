#if DEBUG
    import Proxy
    import TestKit

    /// Everything around the proxy: clients that come and go, servers, storms of faults, and the ledger
    /// in which all of it is kept.
    ///
    /// Safe to be Sendable: it is for the one thread of its simulation.
    final class SimulatedWorld: @unchecked Sendable {
        /// Where the proxy listens.
        static let port: UInt16 = 8080
        /// The same, behind a load balancer.
        static let balancedPort: UInt16 = 8081
        static let serverPorts: [UInt16] = [9001, 9002, 9003]
        /// Of servers that speak HTTP/2.
        static let sharedPorts: [UInt16] = [9011, 9012]
        /// What the two upstreams are asked for by.
        static let host = "api.example.test"
        static let sharedHost = "shared.example.test"
        private static let wrongHeads = [
            "GET /open/bad HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET /open/bad HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET /open/bad\u{0} HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /open/bad HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "POST /open/bad HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
            "GET /open/bad HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}",
            "GET /open/bad HTTP/3.7\r\nHost: a\r\n\r\n",
            "GET /open/../bad%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        ]

        let kernel: SimulatedKernel
        let ledger: Ledger
        let tokens = SimulatedTokens()
        /// No clients come any more.
        private(set) var isOver = false
        private var clients: [ObjectIdentifier: any SimulatedPeer] = [:]
        private var servers: [SimulatedServer] = []
        private var usedTokens: [String] = []
        /// What the proxy says about its client connections.
        var headers = HeaderCount()
        var connections = ConnectionCount()

        init(seed: UInt64, keepsTrace: Bool) {
            kernel = SimulatedKernel(
                seed: seed, wallSeconds: TestIssuer.now, keepsTrace: keepsTrace)
            ledger = Ledger(kernel: kernel)
        }

        /// Clients that are there.
        var clientCount: Int { clients.count }

        /// Life begins.
        func begin() {
            servers = Self.serverPorts.map {
                SimulatedServer(world: self, port: $0, speaksHTTP2: false)
            }
            servers += Self.sharedPorts.map {
                SimulatedServer(world: self, port: $0, speaksHTTP2: true)
            }
            sendClients()
            planStorm()
        }

        /// No more clients come; those that are there go on to their end.
        func end() {
            isOver = true
            kernel.faults.isExhausted = false
        }

        func ended(_ client: any SimulatedPeer) {
            clients[ObjectIdentifier(client)] = nil
        }

        /// Where the proxy serves nobody, it ends the connection in bounded time.
        func planRefusal(of approach: Approach, isOver: @escaping () -> Bool) {
            kernel.plan(after: 120_000_000_000) { [self] in
                if isOver() { return }
                kernel.report(
                    "a connection whose PROXY header is \(approach.result?.rawValue ?? "") stays")
            }
        }

        private func sendClients() {
            if isOver { return }
            let isBalanced = kernel.happens(oneIn: 4)
            let approach = isBalanced ? Approach.balanced(kernel) : Approach.direct(kernel)
            if let result = approach.result { headers.sent[result, default: 0] += 1 }
            if kernel.happens(oneIn: 4) {
                let client = SimulatedHTTP2Client(world: self, approach)
                clients[ObjectIdentifier(client)] = client
                client.begin()
            } else {
                let client = SimulatedClient(world: self, approach)
                clients[ObjectIdentifier(client)] = client
                client.begin()
            }
            let pause = kernel.happens(oneIn: 30) ? kernel.random(0, 30_000) : kernel.random(0, 800)
            kernel.plan(after: Int64(pause) * 1_000_000) { [self] in sendClients() }
        }

        /// For a while, there are no descriptors left.
        private func planStorm() {
            if isOver { return }
            kernel.plan(after: Int64(kernel.random(10_000, 120_000)) * 1_000_000) { [self] in
                if isOver { return }
                kernel.note("no descriptor is left")
                kernel.faults.isExhausted = true
                kernel.plan(after: Int64(kernel.random(10, 3_000)) * 1_000_000) { [self] in
                    kernel.faults.isExhausted = false
                    planStorm()
                }
            }
        }

        // MARK: Requests

        /// A request as the ledger knows it.
        struct Request {
            let id: Int
            let method: String
            let path: String
            let host: String
            let token: String?
            let length: Int
            let isBroken: Bool
            /// A field that a client has no right to write; nil where it does not.
            let forwardedFor: String?
        }

        /// A request of some kind, and its bytes in HTTP/1.1.
        ///
        /// - Parameters:
        ///   - approach: How its client came.
        ///   - isForbidden: It must not be read any more.
        /// - Returns: its number, nil when it has none.
        func makeRequest(
            _ approach: Approach, isLast: Bool, isMalformed: Bool, isForbidden: Bool = false
        ) -> (Int?, [UInt8]) {
            if isMalformed && kernel.happens(oneIn: 2) {
                let head = Self.wrongHeads[kernel.random(0, Self.wrongHeads.count - 1)]
                return (nil, Array(head.utf8))
            }
            let request = beginRequest(
                approach, isBroken: isMalformed, longest: 200_000, isForbidden: isForbidden)
            var text = "\(request.method) \(request.path) HTTP/1.1\r\nHost: \(request.host)\r\n"
            if let token = request.token { text += "X-Firebase-AppCheck: \(token)\r\n" }
            if let field = request.forwardedFor { text += "X-Forwarded-For: \(field)\r\n" }
            if isLast && kernel.happens(oneIn: 2) { text += "Connection: close\r\n" }
            return (request.id, bytes(text, request.id, request.length, isBroken: request.isBroken))
        }

        /// A request of some kind.
        ///
        /// - Parameters:
        ///   - approach: How its client came.
        ///   - isBroken: If it has content, that does not follow HTTP.
        ///   - longest: Bytes of content at most.
        ///   - isForbidden: It must not be read any more, because of what came before it.
        func beginRequest(
            _ approach: Approach, isBroken: Bool, longest: Int, isForbidden: Bool = false
        ) -> Request {
            let route = Ledger.Route.allCases[kernel.random(0, 3)]
            let kind = chooseToken(for: route, isForbidden)
            let token = text(of: kind)
            let methods = ["GET", "GET", "GET", "HEAD", "POST", "POST", "PUT", "DELETE"]
            let method = methods[kernel.random(0, methods.count - 1)]
            var length = 0
            if method == "POST" || method == "PUT" {
                length = kernel.random(0, kernel.happens(oneIn: 15) ? longest : min(longest, 2_000))
            }
            let isBroken = isBroken && length > 0
            let isOnce = kind == .limitedUse || kind == .replayed
            let isShared = kernel.happens(oneIn: 3)
            let isForbidden = isForbidden || approach.client == nil
            let id = ledger.begin(
                Ledger.Entry(
                    route: route, method: method, token: kind,
                    limitedUseToken: isOnce ? token : nil, contentLength: length,
                    isBroken: isBroken, isShared: isShared, client: approach.client ?? "",
                    isForbidden: isForbidden))
            kernel.note(
                "request \(id): \(method) /\(route), token \(kind), \(length) bytes"
                    + "\(isShared ? ", shared" : "")\(isForbidden ? ", forbidden" : "")")
            let hasField = !approach.isTrusted && kernel.happens(oneIn: 6)
            return Request(
                id: id, method: method, path: "/\(route)/\(id)",
                host: isShared ? Self.sharedHost : Self.host, token: token, length: length,
                isBroken: isBroken, forwardedFor: hasField ? "198.51.100.66" : nil)
        }

        private func bytes(_ head: String, _ id: Int, _ length: Int, isBroken: Bool) -> [UInt8] {
            if length == 0 { return Array("\(head)\r\n".utf8) }
            var text = head
            if kernel.happens(oneIn: 6) { text += "Expect: 100-continue\r\n" }
            let content = Ledger.content(id, count: length, salt: 0)
            if !isBroken && kernel.happens(oneIn: 2) {
                return Array("\(text)Content-Length: \(length)\r\n\r\n".utf8) + content
            }
            var bytes = Array("\(text)Transfer-Encoding: chunked\r\n\r\n".utf8)
            var start = 0
            while start < length {
                let end = min(length, start + kernel.random(1, 30_000))
                bytes += Array("\(String(end - start, radix: 16))\r\n".utf8)
                bytes += content[start..<end]
                bytes += Array((isBroken && end == length ? "!!" : "\r\n").utf8)
                start = end
            }
            return bytes + Array("0\r\n\r\n".utf8)
        }

        private func chooseToken(for route: Ledger.Route, _ isForbidden: Bool) -> TokenKind {
            // A token of a request that never was is as good as before, and the ledger would have to
            // know who used it next.
            if isForbidden { return .session }
            if route == .once && kernel.happens(oneIn: 2) {
                return usedTokens.isEmpty || kernel.happens(oneIn: 2) ? .limitedUse : .replayed
            }
            if kernel.happens(oneIn: 2) { return .session }
            let kind = TokenKind.allCases[kernel.random(0, TokenKind.allCases.count - 1)]
            return kind == .replayed && usedTokens.isEmpty ? .limitedUse : kind
        }

        private func text(of kind: TokenKind) -> String? {
            let now = kernel.wallSeconds
            switch kind {
            case .none: return nil
            case .session: return tokens.sessionToken(at: now)
            case .limitedUse:
                let token = tokens.limitedUseToken(at: now)
                usedTokens.append(token)
                // Those that have expired are of no use to anybody.
                if usedTokens.count > 20 { usedTokens.removeFirst() }
                return token
            case .replayed: return usedTokens[kernel.random(0, usedTokens.count - 1)]
            default: return tokens.badToken(kind, at: now)
            }
        }
    }

    /// PROXY headers by how the wait for them ended.
    struct HeaderCount {
        /// What clients sent that ends so.
        var sent: [ProxyHeaderResult: Int] = [:]
        /// What the proxy says.
        var told: [ProxyHeaderResult: Int] = [:]

        /// What the proxy says and nobody did; nil when there is nothing.
        var invention: String? {
            // Any wait may end so, for want of luck.
            let chances: [ProxyHeaderResult] = [.closed, .timedOut]
            for result in ProxyHeaderResult.allCases where !chances.contains(result) {
                let (told, sent) = (told[result, default: 0], sent[result, default: 0])
                if told > sent { return "\(told) headers are \(result.rawValue), and \(sent) were" }
            }
            return nil
        }
    }

    /// Client connections, as the proxy counts them.
    struct ConnectionCount {
        var open = 0
        var active = 0
    }
#endif
