internal import Reactor

/// What is asked of every loop, one of which may be stuck.
extension ProxyServer {
    /// Tells every loop which servers get no new requests.
    ///
    /// - Returns: whether all of them have taken note within `patience`; one that is stuck does so
    ///   when it goes on.
    public func adopt(_ drains: DrainSnapshot, patience: Duration = .seconds(1)) async -> Bool {
        let answers = await ask(within: patience) { worker in
            await worker.adopt(drains)
            return true
        }
        return answers.allSatisfy { $0 != nil }
    }

    /// How the upstreams are on each loop; nil for one that does not answer within `patience`.
    public func upstreams(patience: Duration = .seconds(1)) async -> [[LoopUpstreamStatus]?] {
        await ask(within: patience) { await $0.upstreams }
    }

    /// Returns when every loop has done something for the asker: never, while one is stuck.
    public func awaitLoops() async {
        for worker in workers { await worker.answer() }
    }

    /// Asks every loop, and waits for those that answer in time.
    private func ask<Answer: Sendable>(
        within patience: Duration, _ question: @escaping @Sendable (Worker) async -> Answer
    ) async -> [Answer?] {
        let round = QuestionRound<Answer>(workers.count, loop: loop)
        for (index, worker) in workers.enumerated() {
            Task.immediate(executorPreference: loop) {
                note(await question(worker), of: index, in: round)
            }
        }
        let deadline = loop.now.advanced(by: patience)
        while !round.isComplete {
            if await round.waiter.wait(until: deadline) == .timedOut { break }
        }
        return round.answers
    }

    private func note<Answer>(
        _ answer: Answer, of worker: Int, in round: QuestionRound<Answer>
    ) {
        round.answers[worker] = answer
        round.waiter.wake()
    }
}

/// What loops said so far. Belongs to the control loop.
private final class QuestionRound<Answer> {
    let waiter: Waiter
    var answers: [Answer?]
    var isComplete: Bool { answers.allSatisfy { $0 != nil } }

    init(_ count: Int, loop: EventLoop) {
        waiter = Waiter(loop: loop)
        answers = Array(repeating: nil, count: count)
    }
}
