# Builds what deploy/setup-debian.sh and meson build, and runs the daemon as an ordinary user.
FROM debian:12 AS build
WORKDIR /src
COPY deploy/setup-debian.sh deploy/
RUN deploy/setup-debian.sh build
COPY . .
RUN meson setup /build --prefix=/usr --libdir=lib -Dbuildtype=release -Db_lto=true \
 && meson compile -C /build && DESTDIR=/out meson install -C /build

FROM debian:12-slim
COPY deploy/setup-debian.sh /tmp/
# Loaded when they are needed: libpq5 by --store postgresql://, the others by --logdir s3://.
RUN /tmp/setup-debian.sh run \
 && apt-get install -y -q --no-install-recommends libpq5 libcurl4 libexpat1 ca-certificates \
 && rm -rf /var/lib/apt/lists/* /tmp/setup-debian.sh \
 && useradd --system --create-home --home-dir /var/lib/xplaned xplaned
COPY --from=build /out/ /
USER xplaned
VOLUME ["/profiles", "/var/lib/xplaned"]
EXPOSE 50551 8795
# A container's own network needs a listener that is not loopback; put TLS in front or use --tls-cert.
ENTRYPOINT ["xplaned", "--logdir", "/profiles", "--state-dir", "/var/lib/xplaned"]
CMD ["--listen", "0.0.0.0:50551", "--http", "0.0.0.0:8795", "--insecure"]
