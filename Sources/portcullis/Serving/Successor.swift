internal import Glibc
internal import Proxy
internal import Reactor

/// Why an upgrade changed nothing.
struct UpgradeError: Error, CustomStringConvertible {
    let description: String
    /// This process cannot hand over, whatever the new program is; nothing was started.
    let isRefusal: Bool

    init(_ description: String) {
        self.description = description
        isRefusal = false
    }

    init(refusal: String) {
        description = refusal
        isRefusal = true
    }
}

/// A process that is to take the place of this one, from its start to its end or ours. Belongs to
/// the control loop.
///
/// It says `prepared` when it could serve; told `go` it accepts, and says `serving` with the
/// descriptors that it accepts from; told `yours` it is the one.
final class Successor {
    /// How long a process that has accepted connections may take to end them.
    private static let partingTime = Duration.seconds(2)
    private static let step = Duration.milliseconds(10)

    /// Its number.
    let process: Int32
    private let channel: Channel
    private let waiter: Waiter
    private let loop: EventLoop
    /// It may have accepted connections.
    private(set) var mayServe = false
    /// Somebody wants this to end.
    private var isCancelled = false
    private var isReaped = false

    /// Starts a program.
    ///
    /// - Parameter handover: What it is told; its `channel` is filled in here.
    init(_ program: Program, _ handover: Handover, loop: EventLoop) throws(UpgradeError) {
        var handover = handover
        do throws(Errno) {
            let ends = try Channel.pair()
            handover.channel = ends.far
            defer { Syscalls.close(ends.far) }
            let waiter = Waiter(loop: loop)
            let channel = try Channel(owning: ends.near, waiter: waiter)
            process = try Syscalls.spawn(
                program.path, arguments: program.arguments,
                environment: Self.environment(handover),
                keeping: handover.sockets.map(\.number) + [ends.far])
            self.waiter = waiter
            self.channel = channel
            self.loop = loop
        } catch {
            throw UpgradeError("cannot start \(program.path): \(error)")
        }
    }

    /// What ours says, without what is meant for this process alone.
    private static func environment(_ handover: Handover) -> [String] {
        let own = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]
        let watchdog = "WATCHDOG_PID"
        return Syscalls.environment().filter { entry in
            let name = String(entry.prefix { $0 != "=" })
            // The manager watches whoever is the main process.
            if name == watchdog { return entry != "\(watchdog)=\(handover.process)" }
            return !own.contains(name) && !name.hasPrefix(Handover.variable)
        } + handover.variables
    }

    /// Waits for a line that begins with a word.
    ///
    /// - Returns: the words behind it.
    /// - Throws: that it ended, said something else, or said nothing until `deadline`.
    func expect(_ word: String, until deadline: MonotonicInstant) async throws(UpgradeError)
        -> [String]
    {
        while true {
            if isCancelled { throw UpgradeError("this process is ending") }
            switch channel.next() {
            case .line(let line):
                let words = line.split(separator: " ").map(String.init)
                if words.first == word { return Array(words.dropFirst()) }
                if words.first == "failed" {
                    throw UpgradeError("the new process cannot serve: \(line.dropFirst(7))")
                }
                throw UpgradeError("the new process talks nonsense")
            case .end: throw await ended()
            case .nothing:
                if await waiter.wait(until: deadline) == .timedOut {
                    throw UpgradeError("the new process was not \(word) in time")
                }
            }
        }
    }

    /// Has it accept connections.
    func go() {
        mayServe = true
        channel.send("go")
    }

    /// Tells it that it has taken this process's place; nothing is expected of it any more.
    func letGo() {
        channel.send("yours")
        channel.close()
        waiter.invalidate()
    }

    /// Ends every wait for it.
    func cancel() {
        isCancelled = true
        waiter.wake()
    }

    /// Ends the process. One that may have accepted connections has a moment to finish.
    func end() async {
        if mayServe {
            Syscalls.kill(process, SIGTERM)
            await reap(within: Self.partingTime)
        }
        if !isReaped {
            Syscalls.kill(process, SIGKILL)
            await reap(within: Self.partingTime)
        }
        // Only now: it would take an end of the conversation for the end of this process.
        channel.close()
        waiter.invalidate()
    }

    /// - Returns: how it ended; nil when it runs on.
    @discardableResult
    private func reap(within time: Duration) async -> ProcessEnd? {
        let deadline = loop.now.advanced(by: time)
        while !isReaped {
            do throws(Errno) {
                if let end = try Syscalls.reap(process) {
                    isReaped = true
                    return end
                }
            } catch {
                isReaped = true
                return nil
            }
            if loop.now >= deadline { return nil }
            // The channel may have an end to tell all the time: no wake-up ends this wait early.
            let pause = Waiter(loop: loop)
            _ = await pause.wait(until: loop.now.advanced(by: Self.step))
            pause.invalidate()
        }
        return nil
    }

    private func ended() async -> UpgradeError {
        guard let end = await reap(within: .seconds(1)) else {
            return UpgradeError("the new process closed its channel: it may not know of upgrades")
        }
        return UpgradeError("the new process \(end); what it wrote says why")
    }
}
