internal import CPlatform

/// A descriptor that a loop watches, and what is known about it. Edge-triggered: a flag stays set
/// until a call would have blocked.
class Registration {
    let descriptor: Int32
    let loop: EventLoop
    var slot = 0
    var generation: UInt32 = 0
    /// Woken by every event.
    final var waiter: Waiter?
    final var isReadable = true
    final var isWritable = true
    /// The peer will send nothing more, or the connection broke.
    final var isPeerClosed = false
    final var isBroken = false

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
