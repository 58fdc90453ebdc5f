internal import Configuration
internal import Operations
internal import Proxy
internal import Reactor

/// How long a start or a reload waits for names that were never looked up. Those that are not found
/// by then get no requests until they are.
private let resolveTime = Duration.seconds(5)

/// Why a reload was given up.
struct EndingError: Error, CustomStringConvertible {
    var description: String { "the process is ending" }
}

/// Names of upstream servers: looked up at the start, for each new configuration, and regularly.
extension Service {
    /// Waits until the names of a configuration were looked up, and not for long: addresses that
    /// are known are good enough, and whoever wants the process to end does not care for others.
    func resolve(_ configuration: Configuration, _ waiter: Waiter) async {
        names.add(configuration)
        let deadline = loop.now.advanced(by: resolveTime)
        while !names.knows(configuration), !isEndDue {
            if await waiter.wait(until: deadline) == .timedOut { break }
            while let signal = signals.next() { signalsToCome.append(signal) }
        }
    }

    var isEndDue: Bool { signalsToCome.contains(where: Self.isEnd) }

    /// Looks names up again, and has the loops use what came of it.
    ///
    /// - Parameter observer: Is woken whenever a look-up may have ended.
    func resolveRegularly(_ observer: Waiter) async {
        while !isDraining {
            if names.advance() { areAddressesNew = true }
            observer.wake()
            // A reload takes the newest addresses by itself, but may have done so before these.
            if areAddressesNew && isServing && !isReloading {
                areAddressesNew = false
                await adopt(
                    ServingConfiguration(
                        serving.configuration,
                        addresses: names.addresses(of: serving.configuration),
                        tls: serving.tls, previous: serving))
                continue
            }
            _ = await names.waiter.wait(until: names.nextDue)
        }
        names.waiter.invalidate()
    }
}
