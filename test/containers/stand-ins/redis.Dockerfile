# Debian's Redis under the official image's conventions: data in /data, the command is the server with its arguments, other containers may connect.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/* && mkdir -p /data && chown redis:redis /data
VOLUME /data
WORKDIR /data
USER redis
ENTRYPOINT ["sh", "-c", "exec \"$@\" --protected-mode no", "--"]
CMD ["redis-server"]
