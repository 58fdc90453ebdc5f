# Builds the proxy on Debian 12 and puts it, alone, into a small image.
FROM swift:6.3-bookworm AS build
WORKDIR /src

# The same list that `make setup` installs, in a layer that source changes leave alone.
COPY scripts/packages-build.txt scripts/
RUN apt-get update \
    && sed 's/#.*//' scripts/packages-build.txt | xargs apt-get install -y --no-install-recommends \
    && rm -rf /var/lib/apt/lists/*

# The tests are never built here, but the package names their folders and does not load without them.
COPY Package.swift ./
COPY Sources Sources
COPY Tests Tests
RUN swift build -c release --static-swift-stdlib --product portcullis -Xlinker -s \
    && install -D "$(swift build -c release --show-bin-path)/portcullis" /out/usr/bin/portcullis

FROM debian:12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libhiredis0.14 liblmdb0 libnghttp2-14 libssl3 libstdc++6 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 65532 portcullis \
    && useradd --system --uid 65532 --gid 65532 --home-dir /var/lib/portcullis --shell /usr/sbin/nologin portcullis \
    && install -d -o portcullis -g portcullis -m 0750 /var/lib/portcullis \
    && install -d -m 0755 /etc/portcullis

COPY --from=build /out/ /

# A number, so that an orchestrator can see that it is not root's.
USER 65532:65532
WORKDIR /var/lib/portcullis
VOLUME /var/lib/portcullis
EXPOSE 8080

# SIGTERM drains. The health check asks the admin listener of the configuration's default and needs no shell.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/bin/portcullis", "health", "--admin", "127.0.0.1:9090"]
ENTRYPOINT ["/usr/bin/portcullis"]
CMD ["run", "-c", "/etc/portcullis/proxy.conf"]
