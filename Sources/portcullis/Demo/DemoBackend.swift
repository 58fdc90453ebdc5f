/// The demo's backend: shows what reached it.
enum DemoBackend {
    /// Echoes the request's head.
    static func answer(_ request: LoopbackRequest) -> LoopbackAnswer {
        let head = request.head.split(separator: "\r\n").joined(separator: "\n  ")
        let body = request.bodyCount > 0 ? "\nand a body of \(request.bodyCount) bytes\n" : ""
        return LoopbackAnswer(body: "The backend received:\n\n  \(head)\n\(body)")
    }
}
