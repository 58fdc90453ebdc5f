import Configuration
import Proxy

extension RequestRecorder {
    /// Records a request that a configuration served, without upstream addresses.
    func record(_ record: RequestRecord, configuration: Configuration) {
        self.record(
            record,
            serving: ServingConfiguration(
                configuration, addresses: configuration.upstreams.map { _ in [] }))
    }
}
