/// What the demo says to a newcomer: lines to paste, and what each will show.
enum DemoTour {
    /// The tour, with the ports that were free.
    static func text(_ places: DemoPlaces) -> String {
        """

        Portcullis is running, offline, in front of an echo backend.

          proxy    http://\(places.proxy)      /enforced/* wants a token, /once/* a new one each time,
                                              everything else is monitored
          issuer   http://\(places.issuer)      development tokens: /token, /limited-use-token
          backend  http://\(places.backend)      shows what reached it
          admin    http://\(places.admin)      /metrics, /readyz

        Paste into another terminal:

          # 1. No token on a monitored route: it passes, and the backend is told what would have happened.
          curl -i http://\(places.proxy)/hello

          # 2. No token on an enforced route: 401 token_missing.
          curl -i http://\(places.proxy)/enforced/hello

          # 3. A good token: 200. The token itself does not reach the backend.
          TOKEN=$(curl -s http://\(places.issuer)/token)
          curl -i -H "X-Firebase-AppCheck: $TOKEN" http://\(places.proxy)/enforced/hello

          # 4. The same token, tampered with: 401 token_invalid.
          curl -i -H "X-Firebase-AppCheck: ${TOKEN%????????}AAAAAAAA" http://\(places.proxy)/enforced/hello

          # 5. A token in the URL is refused, and the log does not repeat it.
          curl -i "http://\(places.proxy)/enforced/hello?appCheckToken=$TOKEN"

          # 6. A limited-use token where each is good for one request: 200, and 401 token_already_used.
          ONCE=$(curl -s http://\(places.issuer)/limited-use-token)
          curl -i -H "X-Firebase-AppCheck: $ONCE" http://\(places.proxy)/once/hello
          curl -i -H "X-Firebase-AppCheck: $ONCE" http://\(places.proxy)/once/hello

          # 7. A token that can be used again and again is not good enough there: 401 limited_use_required.
          curl -i -H "X-Firebase-AppCheck: $TOKEN" http://\(places.proxy)/once/hello

          # 8. What happened so far.
          curl -s http://\(places.admin)/metrics | grep '^portcullis_requests_total'

        Each request writes one line below. Ctrl-C ends the demo.

        """
    }
}
