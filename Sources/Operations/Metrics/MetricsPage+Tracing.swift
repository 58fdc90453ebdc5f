extension MetricsPage {
    /// What became of spans.
    func appendTracing(_ queue: SpanQueue, to text: inout MetricsText) {
        let totals = queue.totals
        text.family(
            "portcullis_trace_spans_total", .counter,
            "Spans of recorded traces: exported, failed (no collector took them), or dropped (too "
                + "many waited).")
        text.sample([("result", "exported")], totals.exported)
        text.sample([("result", "failed")], totals.failed)
        text.sample([("result", "dropped")], totals.dropped)
        text.family("portcullis_trace_spans_waiting", .gauge, "Spans that wait to be exported.")
        text.sample([], UInt64(clamping: queue.waiting))
    }
}
