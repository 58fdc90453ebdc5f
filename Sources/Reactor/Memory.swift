internal import CPlatform

/// The heap of the process.
public enum Memory {
    /// Gives free pages inside the heap back to the system (malloc_trim(3)). It looks at the whole
    /// heap, a millisecond for some ten megabytes: for the end of a burst, not for every free.
    public static func releaseFreePages() {
        CPlatform_release_free_pages()
    }

    /// Gives back what starting, or reading a configuration, needed once: free pages of the heap,
    /// and code. Half of the pages of code that are resident by then never run again; the others
    /// come back from the page cache at their next use, sixteen at a time and without a read.
    public static func releaseStartUp() {
        CPlatform_release_free_pages()
        CPlatform_release_code_pages()
    }
}
