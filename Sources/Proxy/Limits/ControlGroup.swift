/// The memory limit of the process's control group (cgroups(7)).
///
/// What is read is the kernel's text; what has another form than the manual says counts as no limit.
public struct ControlGroup {
    private let read: (String) -> String?

    /// - Parameter read: The text of a file; nil when it cannot be read.
    public init(read: @escaping (_ path: String) -> String?) {
        self.read = read
    }

    /// Bytes that the group, or one around it, may take; nil without a limit.
    public var memoryLimit: UInt64? {
        guard let membership = read("/proc/self/cgroup") else { return nil }
        var limits: [UInt64] = []
        for line in membership.split(separator: "\n") {
            // hierarchy:controllers:path
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            if parts[0] == "0" && parts[1].isEmpty {
                limits += self.limits("/sys/fs/cgroup", String(parts[2]), "memory.max")
            } else if parts[1].split(separator: ",").contains("memory") {
                limits += self.limits(
                    "/sys/fs/cgroup/memory", String(parts[2]), "memory.limit_in_bytes")
            }
        }
        return limits.min()
    }

    /// Those of a group and of all around it, up to the root. In a container the path may be the
    /// host's, of which only the root is to be seen.
    private func limits(_ root: String, _ path: String, _ file: String) -> [UInt64] {
        var limits: [UInt64] = []
        var path = path[...]
        while true {
            let folder = path == "/" ? "" : path
            if let limit = read("\(root)\(folder)/\(file)").flatMap(parse) { limits.append(limit) }
            guard let slash = path.lastIndex(of: "/"), !folder.isEmpty else { return limits }
            path = path[..<slash]
        }
    }

    /// "max" is no limit, and so is what version 1 has for it: nearly all of 63 bits.
    private func parse(_ text: String) -> UInt64? {
        let number = text.prefix { $0 != "\n" }
        guard let bytes = UInt64(number), bytes < 1 << 60 else { return nil }
        return bytes
    }
}
