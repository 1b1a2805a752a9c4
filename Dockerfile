# Muster in a small image: the executable on glibc, not as root. Data is in the volume /data; game servers run inside
# the container, so publish their ports as well as the API's:
#   docker build -t muster . && docker run --init --stop-timeout 40 -p 8080:8080 -p 26000-26099:26000-26099/tcp -p 26000-26099:26000-26099/udp -v muster-data:/data muster
FROM oven/bun:1.4.5-debian AS build
WORKDIR /muster
COPY package.json bun.lock bunfig.toml ./
COPY patches patches
RUN bun install --frozen-lockfile
COPY . .
RUN bun run build

FROM debian:bookworm-slim
RUN useradd --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin muster && install -d -o muster -m 0711 /data
COPY --from=build /muster/dist/muster /usr/local/bin/muster
USER muster
WORKDIR /data
VOLUME /data
# What is printed stays in the container's log: the administrator's token is in /data/administrator-token.
ENV MUSTER_HOST=0.0.0.0 MUSTER_DATA=/data MUSTER_SERVER_PORTS=26000-26099 MUSTER_PRINT_SECRETS=off
EXPOSE 8080 26000-26099/tcp 26000-26099/udp
STOPSIGNAL SIGINT
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${MUSTER_PORT:-8080}; printf 'GET /health/live HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["muster"]
