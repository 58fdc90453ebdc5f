/// What `--help` prints.
enum Help {
    static let version = "0.1.0"

    /// One line below a usage error.
    static func pointer(_ command: String?) -> String {
        let topic = command.flatMap(Invocation.Topic.init(rawValue:)) ?? .everything
        return topic == .everything
            ? "Try \"portcullis --help\"." : "Try \"portcullis \(topic.rawValue) --help\"."
    }

    /// The help of a command.
    static func text(_ topic: Invocation.Topic) -> String {
        switch topic {
        case .everything: everything
        case .run: run
        case .check: check
        case .explain: explain
        case .demo: demo
        case .health: health
        case .status: status
        case .drain: drain
        case .undrain: drain
        }
    }

    private static let everything = """
        portcullis: a reverse proxy that verifies Firebase App Check tokens

        usage: portcullis COMMAND [OPTION]…

          run -c FILE                     serve what the configuration says
          check -c FILE                   validate the configuration and print the route table
          explain -c FILE METHOD URL      say what would happen to a request, and why
          demo                            a backend, a token issuer and the proxy on loopback
          status                          what is going on in a running proxy
          drain UPSTREAM SERVER           give a server no new requests; undrain takes that back
          health                          ask a running proxy whether it lives

        Every command has --help and --version.
        Exit codes: 0 done, 1 the configuration or the request is wrong, 2 usage, 70 internal.
        """

    private static let run = """
        usage: portcullis run -c FILE

        Serves what the configuration says until it is stopped.

          -c, --config FILE    the configuration; proxy.conf.example explains every key

        Signals: SIGHUP reads the configuration again (a broken one changes nothing), SIGUSR2 starts
        the program's file, which may be a new one, and hands the listeners over to it (a broken one
        changes nothing), SIGTERM and SIGINT finish the requests in flight and stop.
        Exit codes: 0 stopped, 1 the configuration is wrong, 2 usage, 70 internal.
        """

    private static let check = """
        usage: portcullis check -c FILE

        Validates a configuration. Lists every mistake with file, line and column on the standard
        error, or prints the route table, most specific route first, on the standard output.

          -c, --config FILE    the configuration

        Exit codes: 0 the configuration is good, 1 it is not, 2 usage, 70 internal.
        """

    private static let explain = """
        usage: portcullis explain -c FILE METHOD URL [OPTION]…

        Says what would happen to a request: which route serves it, which rules that route has, what
        each step of verification says about the token, and what the answer would be. Sends the
        backend nothing, and uses no token up.

          -c, --config FILE      the configuration
          -H, --header FIELD     a field of the request, "Name: value"; may be repeated
          --token TOKEN          the App Check token; "-" reads it from the standard input,
                                 where the list of processes does not show it
          --client-ip ADDRESS    who asks, for the enforced share (default 127.0.0.1)
          --fetch-keys           fetch key sets that are configured as a URL; without it, signatures
                                 are checked only where the key set is a file

        Exit codes: 0 the request would be forwarded, 1 it would be refused or the configuration is
        wrong, 2 usage, 70 internal.
        """

    private static let health = """
        usage: portcullis health [--admin ADDRESS]

        Asks the admin listener of a running proxy for /healthz: a container's health check that
        needs no shell.

          --admin ADDRESS      host:port or unix:/path (default 127.0.0.1:9090)

        Exit codes: 0 the proxy lives, 1 nobody healthy answers, 2 usage, 70 internal.
        """

    private static let status = """
        usage: portcullis status [-c FILE | --admin ADDRESS] [--json]

        Asks the admin listener of a running proxy what is going on: problems first, then traffic and
        verdicts of the last 1, 5 and 15 minutes, upstreams and their servers, key sets, the replay
        store, certificates, listeners. It shows no secret and no token.

          -c, --config FILE    the proxy's configuration, which says where its admin listener is
          --admin ADDRESS      host:port or unix:/path (default 127.0.0.1:9090)
          --json               the document of GET /status instead of tables

        Exit codes: 0 the proxy answered, 1 it did not, 2 usage, 70 internal.
        """

    private static let drain = """
        usage: portcullis drain UPSTREAM SERVER [-c FILE | --admin ADDRESS] [--token-file FILE]
               portcullis undrain UPSTREAM SERVER …

        Has a running proxy give one server of an upstream no new requests, or give it requests again.
        What is under way goes on. It stays so over reloads and upgrades while the server is in the
        configuration, and over no restart.

          -c, --config FILE    the proxy's configuration: where its admin listener and token_file are
          --admin ADDRESS      host:port or unix:/path (default 127.0.0.1:9090)
          --token-file FILE    holds the admin token

        UPSTREAM and SERVER are what "portcullis status" shows; a host name means all its addresses.
        Exit codes: 0 done (also when it was so before), 1 refused or nobody answers, 2 usage,
        70 internal.
        """

    private static let demo = """
        usage: portcullis demo

        Runs an echo backend, a development token issuer and the proxy in one process on loopback,
        with a monitored route, an enforced one, and one that takes each token once, and prints curl
        lines to try. Needs no network. Stop it with Ctrl-C.
        """
}
