internal import Reactor

/// The process whose place this one is to take, seen from this one. Belongs to the control loop.
final class Predecessor {
    /// What it told.
    let handover: Handover
    private let channel: Channel

    /// - Parameter waiter: Is woken when it says something.
    /// - Throws: when there is no channel where it said.
    init(_ handover: Handover, waiter: Waiter) throws(Errno) {
        self.handover = handover
        channel = try Channel(inherited: handover.channel, waiter: waiter)
    }

    /// Says that this process could serve.
    func tellPrepared() { channel.send("prepared") }

    /// Says that it does, from these descriptors.
    func tellServing(_ numbers: [Int32]) {
        channel.send((["serving"] + numbers.map(String.init)).joined(separator: " "))
    }

    /// Says why it never will.
    func tellFailure(_ reason: String) {
        // One line, whatever the reason is.
        channel.send("failed " + reason.split(separator: "\n").joined(separator: "; "))
    }

    /// What it says next.
    func next() -> Channel.Message { channel.next() }

    /// Nothing more is to be said.
    func close() { channel.close() }
}
