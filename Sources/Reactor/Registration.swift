internal import CPlatform

/// A descriptor that a loop watches, and what is known about it. Edge-triggered: a flag stays set
/// until a call would have blocked.
class Registration {
    /// Owned by whoever made the registration.
    let descriptor: Int32
    /// The loop that watches.
    let loop: EventLoop
    /// Its place in the loop's table.
    var slot = 0
    /// Tells its events from those of an earlier registration in the same slot.
    var generation: UInt32 = 0
    /// Woken by every event.
    final var waiter: Waiter?
    /// A read may bring something.
    final var isReadable = true
    /// A write may take something.
    final var isWritable = true
    /// The peer will send nothing more, or the connection broke.
    final var isPeerClosed = false
    /// The connection is over in both directions.
    final var isBroken = false

    /// A registration that no loop knows yet.
    init(descriptor: Int32, loop: EventLoop) {
        self.descriptor = descriptor
        self.loop = loop
    }

    @inline(__always)
    final func signal(_ events: UInt32) {
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
