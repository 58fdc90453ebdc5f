#if DEBUG
    import TestKit

    /// An end of a connection that is not the proxy's: it is over once, whoever ended it.
    protocol FarEnd: SimulatedPeer {
        /// Nothing that comes counts any more.
        var isOver: Bool { get set }

        /// Lets go of what was under way; called once.
        func settle()
    }

    extension FarEnd {
        /// It is over.
        func end() {
            if isOver { return }
            isOver = true
            settle()
        }

        /// Says that nothing more is sent, and is over: what was on its way to it counts no more.
        func finish(_ stream: SimulatedStream) {
            stream.finish()
            end()
        }

        func finished(_ stream: SimulatedStream) {
            if !isOver { finish(stream) }
        }

        func reset(_ stream: SimulatedStream) {
            end()
        }
    }
#endif
