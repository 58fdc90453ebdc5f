internal import CPlatform

/// A descriptor that a loop watches, and what is known about it. Edge-triggered: a flag stays set
/// until a call would have blocked.
///
/// There is one for each idle connection, so its members are small and lie close.
final class Registration {
    /// Owned by whoever made the registration.
    let descriptor: Int32
    /// Its place in the loop's table.
    var slot: UInt32 = 0
    /// The loop that watches.
    let loop: EventLoop
    /// Tells its events from those of an earlier registration in the same slot.
    var generation: UInt32 = 0
    /// Woken by every event.
    var waiter: Waiter?
    /// A read may bring something.
    var isReadable = true
    /// A write may take something.
    var isWritable = true
    /// The peer will send nothing more, or the connection broke.
    var isPeerClosed = false
    /// The connection is over in both directions.
    var isBroken = false
    /// The owner has not closed the descriptor.
    var isOpen = true

    /// A registration that no loop knows yet.
    init(descriptor: Int32, loop: EventLoop) {
        self.descriptor = descriptor
        self.loop = loop
    }

    @inline(__always)
    func signal(_ events: UInt32) {
        if events & CPlatform_EPOLLIN != 0 { isReadable = true }
        if events & CPlatform_EPOLLOUT != 0 { isWritable = true }
        if events & (CPlatform_EPOLLRDHUP | CPlatform_EPOLLHUP | CPlatform_EPOLLERR) != 0 {
            isReadable = true
            isPeerClosed = true
            if events & (CPlatform_EPOLLHUP | CPlatform_EPOLLERR) != 0 {
                isBroken = true
                isWritable = true
            }
        }
        waiter?.wake()
    }
}
