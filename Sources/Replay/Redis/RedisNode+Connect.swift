internal import Reactor

extension RedisNode {
    /// Finds the server, connects, and makes sure that it can be used.
    func connect() async throws(RedisFailure) -> RedisConnection {
        let deadline = loop.now.advanced(by: context.settings.connectTimeout)
        let address = try await locator.locate(waiter: waiter, until: deadline)
        let link = try await context.connector.connect(
            to: address, on: loop, waiter: waiter, until: deadline)
        do throws(RedisFailure) {
            let setUp = try await RedisSetUp(
                link, server: name, markerKeys: markerKeys, context: context, loop: loop,
                until: deadline)
            context.notices.connected(name, address: address)
            return RedisConnection(link, setUp, server: name, context: context, loop: loop)
        } catch {
            link.close()
            // A sentinel that does not know yet of a failover sends us to the old master.
            if case .sentinels(let sentinels) = locator { sentinels.distrustFirst() }
            throw error
        }
    }
}
