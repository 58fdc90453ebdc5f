internal import CPlatform

/// The heap of the process.
public enum Memory {
    /// Gives free pages inside the heap back to the system (malloc_trim(3)). It looks at the whole
    /// heap, a millisecond for some ten megabytes: for the end of a burst, not for every free.
    public static func releaseFreePages() {
        CPlatform_release_free_pages()
    }
}
