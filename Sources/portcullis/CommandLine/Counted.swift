/// "1 request", "2 requests": for nouns whose plural has an s.
func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}
