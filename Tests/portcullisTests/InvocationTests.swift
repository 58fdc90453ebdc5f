import Testing

@testable import portcullis

@Suite("Command line")
struct InvocationTests {
    @Test(
        "understands",
        arguments: [
            (["run", "-c", "a.conf"], Invocation.run(configuration: "a.conf")),
            (["run", "--config", "a.conf"], .run(configuration: "a.conf")),
            (["check", "--config=a.conf"], .check(configuration: "a.conf")),
            (["check", "-ca.conf"], .check(configuration: "a.conf")),
            (["demo"], .demo),
            (["--help"], .help(.everything)), (["-h"], .help(.everything)),
            (["help"], .help(.everything)), (["help", "explain"], .help(.explain)),
            (["--version"], .version), (["check", "--version"], .version),
            (["run", "--help"], .help(.run)), (["check", "-h", "-c", "x"], .help(.check)),
            (["explain", "--help"], .help(.explain)), (["demo", "--help"], .help(.demo)),
            (["status", "--help"], .help(.status)), (["drain", "-h"], .help(.drain)),
            (["help", "undrain"], .help(.undrain)),
        ])
    func understands(arguments: [String], invocation: Invocation) throws {
        #expect(try Invocation(arguments) == invocation)
    }

    @Test(
        "refuses with exit code 2, and says why",
        arguments: [
            ([], "which command?"),
            (["chekc"], "unknown command \"chekc\"; did you mean \"check\"?"),
            (["frobnicate"], "unknown command \"frobnicate\""),
            (["status", "x"], "unexpected argument \"x\""),
            (["statsu"], "unknown command \"statsu\"; did you mean \"status\"?"),
            (["status", "--admin", "x"], "\"x\" is no address; write host:port or unix:/path"),
            (["drain"], "drain needs UPSTREAM and SERVER, as \"portcullis status\" names them"),
            (
                ["undrain", "api", "s:1"],
                "undrain needs the admin token: -c FILE, or --token-file FILE"
            ),
            (["drain", "a/b", "s:1"], "\"a/b\" cannot be the name of an upstream"),
            (["rollout", "show"], "\"rollout\" is not supported yet"),
            (["check"], "check needs -c FILE"),
            (["run", "-c"], "-c needs a value"),
            (["run", "--confg", "x"], "unknown option \"--confg\"; did you mean --config?"),
            (["run", "-x"], "unknown option \"-x\""),
            (["run", "-c", "a", "-c", "b"], "--config is there more than once"),
            (["check", "-c", "a", "b"], "unexpected argument \"b\""),
            (["demo", "--help=yes"], "--help takes no value"),
            (["explain", "-c", "a", "GET"], "explain needs METHOD and URL"),
            (["explain", "GET", "http://x/"], "explain needs -c FILE"),
            (
                ["explain", "-c", "a", "GET", "/x"],
                "the URL must start with https:// or http://, not \"/x\""
            ),
            (["explain", "-c", "a", "GET", "http:///x"], "the URL has no host: \"http:///x\""),
            (
                ["explain", "-c", "a", "GET", "http://x/", "-H", "nonsense"],
                "-H needs \"Name: value\", not \"nonsense\""
            ),
            (
                ["explain", "-c", "a", "GET", "http://x/", "--client-ip", "me"],
                "--client-ip needs an IP address, not \"me\""
            ),
            (
                [
                    "explain", "-c", "a", "GET", "http://x/", "--token", "t", "-H",
                    "X-Firebase-AppCheck: u",
                ],
                "--token and -H x-firebase-appcheck are two ways to say the same"
            ),
        ])
    func refuses(arguments: [String], reason: String) {
        let run = Transcript(arguments)
        #expect(run.exitCode == .usage)
        #expect(run.errors.first == "portcullis: " + reason)
        #expect(run.errors.last?.hasPrefix("Try \"portcullis ") == true)
        #expect(run.output == [])
    }

    @Test(
        "help and version go to the standard output, with exit code 0",
        arguments: [
            "--help", "--version", "help",
        ])
    func helps(argument: String) {
        let run = Transcript([argument])
        #expect(run.exitCode == .done)
        #expect(run.text.contains("portcullis"))
        #expect(run.errors == [])
    }

    @Test(
        "splits a URL as clients do",
        arguments: [
            ("https://api.example.com/v1?x=1#f", "api.example.com", "/v1?x=1", true),
            ("HTTP://[::1]:8080", "[::1]:8080", "/", false),
            ("http://x?y", "x", "/?y", false),
            ("http://x/a/../b", "x", "/a/../b", false),
        ])
    func urls(text: String, authority: String, target: String, hadFragment: Bool) throws {
        let url = try RequestURL(text)
        #expect(url.authority == authority)
        #expect(url.target == target)
        #expect(url.hadFragment == hadFragment)
    }
}
